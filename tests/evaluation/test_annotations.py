"""A second run over the same reports asks no network of annotations, and writes the same."""

import json

import pytest

from tests.metrics.networks.constructed import REPORTS, write_chexbert, write_radgraph
from vlscore.evaluation import evaluate
from vlscore.metrics import CheXbert, RadGraph, Scorer, find_metric, memo

# Each of the six is a candidate of one study and the reference of another.
TEXTS = REPORTS[:6]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    radgraph = write_radgraph(tmp_path_factory.mktemp("radgraph"), "some/bert-uncased")
    chexbert = write_chexbert(tmp_path_factory.mktemp("chexbert"))
    return [
        find_metric("radgraph-f1")(weights=str(radgraph)),
        find_metric("radgraph-partial")(weights=str(radgraph)),
        find_metric("chexbert-f1")(weights=str(chexbert)),
        find_metric("chexbert-similarity")(weights=str(chexbert)),
    ]


@pytest.fixture
def table(tmp_path):
    rows = [
        {"id": k, "candidate": TEXTS[k], "reference": TEXTS[(k + 1) % len(TEXTS)]}
        for k in range(len(TEXTS))
    ]
    path = tmp_path / "studies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def forgetful(monkeypatch):
    """Forgets what is remembered in memory, and notes what the networks are asked."""
    asked = []
    for kind in (RadGraph, CheXbert):
        annotate = kind.annotate
        monkeypatch.setattr(
            kind,
            "annotate",
            lambda self, reports, annotate=annotate: (
                asked.extend(reports) or annotate(self, reports)
            ),
        )

    def forget():
        memo.forget()
        asked.clear()
        return asked

    yield forget
    forget()


def _run(table, out, metrics, **options):
    result = evaluate(table, out, Scorer(metrics=metrics, **options), format="csv")
    return (out / "scores.csv").read_bytes(), result.record["work"]


@pytest.mark.usefixtures("cache_folder")
def test_a_second_run_asks_no_network_and_writes_the_same_bytes(
    table, metrics, tmp_path, forgetful
):
    asked = forgetful()
    cold, work = _run(table, tmp_path / "cold", metrics)
    assert sorted(asked) == sorted([*TEXTS, *TEXTS])
    assert work == {"reports_annotated": 12, "annotations_from_cache": 0}
    asked = forgetful()
    warm, work = _run(table, tmp_path / "warm", metrics)
    assert asked == []
    assert work == {"reports_annotated": 0, "annotations_from_cache": 12}
    assert warm == cold


@pytest.mark.usefixtures("cache_folder")
def test_the_scorer_of_some_metrics_counts_with_the_whole(metrics, forgetful):
    forgetful()
    whole = Scorer(metrics=metrics, cache=False)
    some = whole.with_metrics(metrics[:1])
    assert some.memo is whole.memo
    assert some.memo.cache is None
