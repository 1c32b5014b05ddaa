"""Numbers of alignments and of failure modes are those that were stored."""

import json

import pytest

from tests.evaluation.alignment.samples import aligned
from tests.evaluation.golden import assert_same, stored
from tests.evaluation.golden_inputs import (
    RADPREF,
    long_table,
    refisco,
    rexval,
    values_table,
    wide_table,
)
from vlscore.evaluation import failure_modes, read_ratings, split_values
from vlscore.metrics import Scorer

KEYS = {
    "agreements": ["metric", "rating"],
    "differences": ["metric", "other", "rating"],
    "raters": ["metric", "rater", "rating"],
    "ceilings": ["rating"],
    "rankings": ["metric", "rating"],
    "composite": ["metric"],
}
needs_radpref = pytest.mark.skipif(not RADPREF.is_dir(), reason=f"{RADPREF} is not public")


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
    assert written["inputs"] == stored("alignment")["long"]["composite.json"]["inputs"]


@pytest.mark.parametrize(("name", "meaning"), [("wide", "ranks"), ("wide quality", "quality")])
def test_a_column_for_each_rater(tmp_path, name, meaning):
    table = wide_table(tmp_path)
    pairs = read_ratings(table, by_rater=("ann", "bob"), meaning=meaning)
    _check(
        aligned(pairs, tmp_path / "out", values=values_table(tmp_path, table), resamples=60), name
    )  # fmt: skip


def test_rexval(tmp_path):
    folder, values = rexval(tmp_path)
    pairs = read_ratings(folder)
    _check(aligned(pairs, tmp_path / "out", values=values, resamples=60), "rexval")
    run = failure_modes(pairs, tmp_path / "failures", resamples=60)
    expected = stored("failure_modes")["rexval"]
    assert_same(run.frame("means"), expected["means"], ["candidate", "which", "category"])
    assert_same(run.frame("tests"), expected["tests"], ["candidate", "other", "which", "category"])


def test_refisco(tmp_path):
    scorer = Scorer(metrics="rouge-l,bleu-1")
    run = aligned(read_ratings(refisco(tmp_path)), tmp_path / "out", scorer=scorer, resamples=60)
    _check(run, "refisco")


@needs_radpref
def test_radpref(tmp_path):
    pairs = read_ratings(RADPREF)
    scorer = Scorer(metrics="rouge-l,bleu-2")
    _check(aligned(pairs, tmp_path / "out", scorer=scorer, resamples=30), "radpref")
