"""Notes on what looks reversed, and on metrics that lack values."""

import numpy as np
import pytest

from tests.evaluation.alignment.samples import rated
from vlscore.cli.output import print_failures
from vlscore.evaluation import MeasuredMetric, align, alignment_of, all_tables
from vlscore.evaluation.alignment.notes import direction_notes, unequal_note


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3))


def _pairs(quality, meaning):
    ratings = {"errors": -quality, "quality": quality}.get(meaning)
    if ratings is None:
        ratings = (-quality).argsort(1).argsort(1) + 1.0
    names = [f"s{k}" for k in range(len(quality)) for _ in "abc"]
    return rated({"rating": ratings.reshape(1, -1)}, names, meaning=meaning)


def _result(pairs, **values):
    metrics = [MeasuredMetric(name, each.ravel()) for name, each in values.items()]
    return alignment_of(metrics, pairs, resamples=100)


@pytest.mark.parametrize("meaning", ["errors", "quality", "ranks"])
def test_a_metric_from_a_table_that_looks_reversed_is_named(sample, meaning):
    pairs = _pairs(sample, meaning)
    result = _result(pairs, good=sample, radcliq=-sample)
    (note,) = direction_notes(result, pairs, ["good", "radcliq"])
    assert note.startswith("radcliq disagrees with the raters: are its smaller values better?")
    assert direction_notes(result, pairs, []) == []
    lower = [MeasuredMetric("good", sample.ravel(), higher_is_better=False)]
    notes = direction_notes(alignment_of(lower, pairs, resamples=100), pairs, ["good"])
    assert "are its larger values better? Then leave it out of --lower-is-better" in notes[1]


@pytest.mark.parametrize(
    ("meaning", "words"),
    [
        ("errors", "Then give --ratings-are quality"),
        ("quality", "Then give --ratings-are errors"),
        ("ranks", "is 1 the worst"),
    ],
)
def test_ratings_that_every_metric_contradicts_are_noted(sample, meaning, words):
    pairs = _pairs(sample, meaning)
    (note,) = direction_notes(_result(pairs, one=-sample, other=-sample + 0.1), pairs, [])
    assert words in note
    assert not direction_notes(_result(pairs, one=sample), pairs, [])


def test_a_metric_with_fewer_values_is_named_below_the_table(sample):
    pairs = _pairs(sample, "errors")
    fewer = sample.copy()
    fewer[::4] = np.nan
    note = unequal_note(result := _result(pairs, good=sample, mine=fewer), pairs)
    assert "some of the 120 pairs: mine 90; their rows are of fewer pairs. Compare" in note
    captions = [table.caption for table in all_tables(result, note)]
    assert [note in caption for caption in captions[:2]] == [True, False]
    assert unequal_note(_result(pairs, good=fewer, mine=fewer), pairs) == ""
    ranks = _pairs(sample, "ranks")
    note = unequal_note(result := _result(ranks, good=sample, mine=fewer), ranks)
    assert "differences" not in note
    assert note in all_tables(result, note)[0].caption


def test_a_missing_value_is_listed_with_its_metric_and_all_are_counted(sample, tmp_path, capsys):
    pairs = _pairs(sample[:10], "errors")
    rows = "".join(
        f"{s},{c},1,2\n" for s, c in list(zip(pairs.studies, pairs.candidates, strict=True))[2:]
    )
    table = tmp_path / "values.csv"
    table.write_text("study_id,candidate_id,mine,other\n" + rows, encoding="utf-8")
    run = align(pairs, tmp_path / "out", values=table, resamples=20)
    print_failures(run.first_failures(1000), len(run.content["failures"]), "values are missing")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "4 values are missing:"
    assert len(lines) == 3
    assert ": mine: " in lines[1]
    assert ": other: " in lines[2]
