"""Numbers of alignments are those that were stored."""

import json

import pandas as pd

from tests.evaluation.alignment.samples import aligned
from tests.evaluation.golden import assert_same, stored
from tests.evaluation.golden_inputs import long_table, values_table, wide_table
from vlscore.evaluation import read_ratings, split_values
from vlscore.metrics import Scorer

KEYS = {
    "agreements": ["metric", "rating"],
    "differences": ["metric", "other", "rating"],
    "raters": ["metric", "rater", "rating"],
    "ceilings": ["rating"],
    "rankings": ["metric", "rating"],
    "composite": ["metric"],
}


def _check(run, name):
    expected = stored("alignment")[name]
    for frame, keys in KEYS.items():
        if frame in expected:
            assert_same(run.frame(frame), expected[frame], keys)
    assert {(f.row, f.id) for f in run.failures} == {(r, i or "") for r, i in expected["failures"]}


def test_a_table_of_quality_with_values_and_a_composite(tmp_path):
    table = long_table(tmp_path)
    metrics, columns = split_values(["bleu-4", "rouge-l", "findings-f1.recall"])
    run = aligned(
        read_ratings(table, meaning="quality"),
        tmp_path / "out",
        scorer=Scorer(metrics=metrics),
        columns=columns,
        values=values_table(tmp_path, table),
        lower_is_better=["two"],
        fit="rating",
        resamples=60,
        seed=2,
    )
    _check(run, "long")
    written = json.loads((run.folder / "composite.json").read_text())
    expected = stored("alignment")["long"]["composite.json"]["inputs"]
    assert_same(pd.DataFrame(written["inputs"]), expected, ["metric"])


def test_a_column_for_each_rater(tmp_path):
    table = wide_table(tmp_path)
    pairs = read_ratings(table, by_rater=("ann", "bob"), meaning="ranks")
    values = values_table(tmp_path, table)
    _check(aligned(pairs, tmp_path / "out", values=values, resamples=60), "wide")
