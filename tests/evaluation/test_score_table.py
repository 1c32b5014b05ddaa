"""Rows become values in one place: as many rows out as in, in order; a failed row fails alone."""

import numpy as np
import pytest

from vlscore.embedding import StudyViews
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.evaluation import score_table
from vlscore.metrics import Item, Scorer


def items(count):
    return [
        Item(f"no effusion {k % 7}", f"small effusion {k % 5} on the left") for k in range(count)
    ]


def test_batches_give_the_values_of_one_call():
    scorer = Scorer(metrics="rouge-l,bleu-4")
    rows = items(2500)
    progress = []
    table = score_table(rows, scorer, on_progress=lambda *counts: progress.append(counts))
    whole = scorer.score_items(rows)
    for metric, values in whole.values.items():
        found = table.values[metric]
        assert np.array_equal(found.columns, values.columns)
        if values.statistics is not None:
            assert np.array_equal(found.statistics, values.statistics)
        assert found.signature == values.signature
    assert progress == [(0, 0), (1000, 0), (2000, 0), (2500, 0)]


def test_a_metric_is_fitted_to_the_references_of_all_rows():
    rows = items(1500)
    table = score_table(rows, Scorer(metrics="cider-d"))
    (values,) = table.values.values()
    assert np.array_equal(values.columns[0], Scorer(metrics="cider-d").score_items(rows).scores)


def test_a_row_that_cannot_be_read_fails_alone():
    rows = [*items(3), InvalidStudy("there is no report"), Item("", "effusion"), *items(2)]
    table = score_table(rows, Scorer(metrics="rouge-l"))
    assert len(table) == 7
    assert {k: str(error) for k, error in table.failures.items()} == {3: "there is no report"}
    assert np.isnan(table.scores).tolist() == [False] * 3 + [True] + [False] * 3


def test_rows_that_all_fail_for_one_reason_are_refused_unless_it_goes_on():
    rows = [InvalidStudy(f"{k}.png: no such file") for k in range(100)]
    scorer = Scorer(metrics="rouge-l")
    with pytest.raises(InvalidSetting, match=r"first 100 rows all fail .* row 0: 0.png: no such"):
        score_table(rows, scorer, keep_going=False)
    assert len(score_table(rows, scorer).failures) == 100
    assert len(score_table(rows[:99], scorer, keep_going=False).failures) == 99
    assert len(score_table([*rows, *items(1)], scorer, keep_going=False).failures) == 100


def test_no_rows_give_an_empty_table():
    assert len(score_table([], Scorer(metrics="rouge-l,cider-d"))) == 0


def test_each_image_is_embedded_once_without_a_cache(tmp_path, monkeypatch):
    pil = pytest.importorskip("PIL.Image")
    paths = [tmp_path / f"{k}.png" for k in range(3)]
    for k, path in enumerate(paths):
        pixels = np.random.default_rng(k).integers(0, 255, (64, 64), np.uint8)
        pil.fromarray(pixels).save(path)
    scorer = Scorer("phantom", metrics="cosine,image-gain-cosine", cache=False, batch_size=1)
    engine = scorer.embedder
    rows = [
        Item(f"effusion {k}", "no effusion", StudyViews((paths[k % 3],)))
        for k in range(3 * engine.rows_at_once)
    ]
    table = score_table(rows, scorer)
    assert engine.work.images_embedded == 3
    assert all(np.isfinite(values.columns[0]).all() for values in table.values.values())
