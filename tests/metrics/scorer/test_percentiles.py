"""Percentile of image scores, against a count over all pairs of studies, one by one."""

import json

import numpy as np
import pytest
import torch

from tests.demonstration import demo_rows
from tests.doubles import HashEncoder
from tests.evaluation.samples import read_scores
from vlscore import metrics as similarity
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.evaluation import evaluate
from vlscore.metrics import OTHERS, Scorer
from vlscore.metrics.others import drawn_others

KERNELS = {
    "vlscore": (1, lambda i, g, r: similarity.vlscore(i, g, r, 20.0)),
    "clipscore": (1, lambda i, g, r: similarity.clipscore(i, g)),
    "image-gain-distance": (-1, similarity.image_gain_distance),
    "bounding-sphere": (-1, similarity.bounding_sphere_radius),
}
METRICS = f"{','.join(KERNELS)},cosine,bleu-1"


@pytest.fixture
def rows():
    rows = demo_rows(12)
    # Two studies have one candidate; one reference is empty, and has the values without it.
    rows[7]["candidate"] = rows[3]["candidate"]
    rows[5]["reference"] = ""
    return rows


def _table(folder, rows):
    path = folder / "studies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _scorer(batch_size=4, metrics=METRICS):
    return Scorer(HashEncoder(), metrics=metrics, device="cpu", batch_size=batch_size, cache=False)


def _column(result, name):
    return result.rows("scores.parquet")[name].to_numpy(dtype=float)


def _one_by_one(rows, name):
    """Of each study, the share of other studies' candidates that score worse in its place."""
    sign, kernel = KERNELS[name]
    encoder = StudyEmbedder(HashEncoder(), device="cpu", cache=False)
    texts = {row["candidate"]: None for row in rows} | {row["reference"]: None for row in rows}
    vectors = dict(zip(texts, encoder.embed_texts(list(texts)).vectors.double(), strict=True))
    images = encoder.embed_studies([StudyViews((row["image"],)) for row in rows]).vectors.double()
    found = []
    for image, row in zip(images, rows, strict=True):
        if not row["reference"] and name != "clipscore":
            found.append(np.nan)
            continue

        def score(text, image=image, row=row):
            triple = (image, vectors[text], vectors[row["reference"]])
            return float(kernel(*(x[None] for x in triple))[0])

        worse = [
            sign * score(other["candidate"]) < sign * score(row["candidate"]) - 1e-12
            for other in rows
            if other["candidate"] != row["candidate"]
        ]
        found.append(sum(worse) / len(worse))
    return found


@pytest.mark.parametrize("batch_size", [2, 64])
def test_percentiles_are_counts_over_all_other_candidates(tmp_path, rows, batch_size):
    result = evaluate(_table(tmp_path, rows), tmp_path / "out", _scorer(batch_size))
    scores = read_scores(result)
    for name in KERNELS:
        found = _column(result, f"{name}.percentile")
        np.testing.assert_allclose(found, _one_by_one(rows, name), atol=1e-12)
    assert not {"cosine.percentile", "bleu-1.percentile"} & set(scores[0])
    summary = result.frame("summary").set_index("metric")
    record = summary.loc["vlscore.percentile"]
    assert record["mean"] == pytest.approx(np.nanmean(_one_by_one(rows, "vlscore")))
    assert (record["n"], record["of"], bool(record["primary"])) == (11, "vlscore", False)
    assert bool(summary.loc["image-gain-distance.percentile", "higher_is_better"])


def test_other_numbers_are_those_of_a_run_without_percentiles(tmp_path, rows, monkeypatch):
    table = _table(tmp_path, rows)
    ranked = read_scores(evaluate(table, tmp_path / "ranked", _scorer()))
    monkeypatch.setattr("vlscore.metrics.scorer.has_percentile", lambda metric: False)
    plain = read_scores(evaluate(table, tmp_path / "plain", _scorer()))
    left = [{k: v for k, v in row.items() if not k.endswith(".percentile")} for row in ranked]
    assert str(left) == str(plain)


def test_parts_have_the_percentiles_of_the_whole(tmp_path, rows):
    table = _table(tmp_path, rows)
    whole = read_scores(evaluate(table, tmp_path / "whole", _scorer()))
    parts = {}
    for part in ("1/2", "2/2"):
        run = evaluate(table, tmp_path / part[0], _scorer(), part=part)
        parts |= {row["row"]: row["vlscore.percentile"] for row in read_scores(run)}
    assert {k: str(v) for k, v in parts.items()} == {
        row["row"]: str(row["vlscore.percentile"]) for row in whole
    }


@pytest.mark.parametrize("batch_size", [5, 7])
def test_rounding_of_embeddings_makes_no_score_worse(tmp_path, rows, batch_size):
    """The same words in another order have the same vector, but for its last digits."""
    words = list("abcdefghijkl")
    same = [{**row, "candidate": " ".join(words[k:] + words[:k])} for k, row in enumerate(rows)]

    class Rounding(HashEncoder):
        def embed_reports(self, tokens):
            return super().embed_reports(tokens) * (1 + 1e-7 * len(tokens))

    scorer = Scorer(Rounding(), metrics=METRICS, device="cpu", batch_size=batch_size, cache=False)
    result = evaluate(_table(tmp_path, same), tmp_path / "out", scorer)
    for name in KERNELS:
        found = _column(result, f"{name}.percentile")
        assert set(found[np.isfinite(found)]) == {0}


def test_one_and_the_same_report_for_all_has_no_percentile(tmp_path, rows):
    same = [{**row, "candidate": "No effusion."} for row in rows]
    result = evaluate(_table(tmp_path, same), tmp_path / "out", _scorer(metrics="vlscore"))
    assert np.isnan(_column(result, "vlscore.percentile")).all()
    alone = evaluate(_table(tmp_path, rows[:1]), tmp_path / "one", _scorer(metrics="vlscore"))
    assert "vlscore.percentile" not in read_scores(alone)[0]


def test_the_others_are_a_bounded_sample_that_does_not_change():
    texts = [f"report {k % 700}" for k in range(1000)]
    drawn = drawn_others(texts)
    assert len(drawn) == OTHERS
    assert drawn == drawn_others(list(texts))
    assert set(drawn) <= set(texts)
    # Of random scores, about half of a sample is worse, whichever is drawn.
    places = [int(text.split()[1]) for text in drawn]
    assert 250 < np.mean(places) < 450
    assert drawn_others(texts[:7]) == texts[:7]
    assert drawn_others(texts[:1]) == []


def test_a_table_of_texts_embeds_nothing(tmp_path, rows, monkeypatch):
    def refuse(*_):
        raise AssertionError("percentiles of a metric of texts")

    monkeypatch.setattr("vlscore.metrics.scorer.percentiles", refuse)
    monkeypatch.setattr("vlscore.metrics.scorer.drawn_others", refuse)
    evaluate(_table(tmp_path, rows), tmp_path / "out", _scorer(metrics="bleu-1,cosine"))


def test_blocks_of_studies_change_nothing(tmp_path, rows, monkeypatch):
    table = _table(tmp_path, rows)
    before = read_scores(evaluate(table, tmp_path / "one block", _scorer(64)))
    monkeypatch.setattr("vlscore.metrics.others._AT_ONCE", 5)
    after = read_scores(evaluate(table, tmp_path / "blocks", _scorer(64)))
    assert str(before) == str(after)
    assert torch.get_default_dtype() == torch.float32
