"""Annotations that are kept between runs: equal to those read, and never read twice."""

import json
import sqlite3

import numpy as np
import pytest

from tests.metrics.networks.constructed import LONG, REPORTS, UNUSUAL
from vlscore.core import Entry, open_cache
from vlscore.metrics import CheXbert, RadGraph
from vlscore.metrics.networks.model_files import AnnotationCache, json_entry

TEXTS = [*REPORTS, *UNUSUAL, LONG]


def files():
    return {"weights": "0" * 64, "vocabulary": "1" * 64}


@pytest.fixture(params=["radgraph", "chexbert"])
def annotator(request):
    weights = request.getfixturevalue(f"{request.param}_weights")
    return {"radgraph": RadGraph, "chexbert": CheXbert}[request.param](weights)


@pytest.fixture
def never_read(annotator, monkeypatch):
    def refuse(self, reports):
        raise AssertionError("a network was asked for what lies in the cache")

    def begin():
        monkeypatch.setattr(type(annotator), "annotate", refuse)

    return begin


def _as_plain(annotation):
    if hasattr(annotation, "classes"):
        cut = annotation.is_truncated
        return annotation.classes.tolist(), annotation.embedding.tobytes(), cut
    return annotation


def test_a_second_run_reads_nothing_and_finds_the_same(annotator, tmp_path, never_read):
    cold = AnnotationCache(open_cache(tmp_path / "cache"))
    first = cold.annotated(annotator, files, [*TEXTS, *TEXTS])
    assert cold.to_dict() == {"reports_annotated": len(TEXTS), "annotations_from_cache": 0}
    never_read()
    warm = AnnotationCache(open_cache(tmp_path / "cache"))
    again = warm.annotated(annotator, files, TEXTS)
    assert warm.to_dict() == {"reports_annotated": 0, "annotations_from_cache": len(TEXTS)}
    for text in TEXTS:
        assert _as_plain(again[text]) == _as_plain(first[text])


def test_only_what_is_new_is_read(annotator, tmp_path):
    kept = AnnotationCache(open_cache(tmp_path / "cache"))
    kept.annotated(annotator, files, TEXTS[:3])
    found = kept.annotated(annotator, files, TEXTS[:5])
    assert kept.to_dict() == {"reports_annotated": 5, "annotations_from_cache": 3}
    assert set(found) == set(TEXTS[:5])


@pytest.mark.parametrize("change", ["weights", "vocabulary", "precision"])
def test_other_weights_or_another_precision_is_read_anew(annotator, tmp_path, change, monkeypatch):
    kept = AnnotationCache(open_cache(tmp_path / "cache"))
    kept.annotated(annotator, files, TEXTS[:2])
    other = files() | ({change: "2" * 64} if change != "precision" else {})
    if change == "precision":
        identity = {**annotator.identity, "precision": "bf16"}
        monkeypatch.setattr(annotator, "identity", identity)
    kept.annotated(annotator, lambda: other, TEXTS[:2])
    assert kept.to_dict() == {"reports_annotated": 4, "annotations_from_cache": 0}


def test_without_a_cache_nothing_is_kept(annotator, tmp_path):
    def asked():
        raise AssertionError("digests were taken for nothing")

    kept = AnnotationCache()
    kept.annotated(annotator, asked, TEXTS[:2])
    kept.annotated(annotator, asked, TEXTS[:2])
    assert kept.to_dict() == {"reports_annotated": 4, "annotations_from_cache": 0}


def test_a_damaged_entry_is_thrown_away_and_read_anew(annotator, tmp_path):
    cache = open_cache(tmp_path / "cache")
    expected = AnnotationCache(cache).annotated(annotator, files, TEXTS)
    cache.embeddings.close()
    with sqlite3.connect(cache.embeddings.path) as db:
        db.execute("UPDATE entries SET value = zeroblob(length(value)) WHERE id = 2")
    db.close()
    kept = AnnotationCache(cache)
    with pytest.warns(RuntimeWarning, match="1 damaged entries"):
        found = kept.annotated(annotator, files, TEXTS)
    assert kept.to_dict() == {
        "reports_annotated": 1,
        "annotations_from_cache": len(TEXTS) - 1,
    }
    again, before = found[TEXTS[1]], expected[TEXTS[1]]
    if isinstance(annotator, CheXbert):
        # Read alone it differs by the rounding of float32.
        assert again.labels == before.labels
        assert again.embedding == pytest.approx(before.embedding, abs=1e-5)
    else:
        assert again == before


def test_no_word_of_a_report_lies_in_the_cache(annotator, tmp_path):
    cache = open_cache(tmp_path / "cache")
    AnnotationCache(cache).annotated(annotator, files, TEXTS)
    cache.embeddings.close()
    held = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    assert b"annotations" in held
    for word in (b"effusion", b"lung", b"heart", b"opacity"):
        assert word not in held.lower()


@pytest.mark.parametrize(
    "content",
    [
        None,
        [["ANAT-DP", 0, 999, []]],
        [["ANAT-DP", 1, 0, []]],
        [["ANAT-DP", 0, 0, [["modify", 1]]]],
        [["ANAT-DP", 0]],
        {"entities": 1},
        "text",
        [["ANAT-DP", "0", "0", []]],
    ],
)
def test_what_is_no_annotation_of_the_report_is_not_taken_for_one(radgraph_weights, content):
    assert RadGraph(radgraph_weights).annotation_of(json_entry(content), REPORTS[0]) is None


def test_an_entry_that_is_no_json_or_of_another_width_is_none(radgraph_weights, chexbert_weights):
    assert RadGraph(radgraph_weights).annotation_of(Entry(b"\xff[", (2,)), REPORTS[0]) is None
    short = np.zeros(3, "<f4")
    assert CheXbert(chexbert_weights).annotation_of(Entry(short.tobytes(), (3,)), "") is None


def test_entities_are_kept_as_positions(radgraph_weights):
    radgraph = RadGraph(radgraph_weights)
    annotation = radgraph.annotate([REPORTS[0]])[0]
    rows = json.loads(radgraph.entry_of(annotation).value)
    assert len(rows) == len(annotation.entities) > 0
    for (label, start, end, _), entity in zip(rows, annotation.entities, strict=True):
        assert (label, start, end) == (entity.label, entity.start, entity.end)
