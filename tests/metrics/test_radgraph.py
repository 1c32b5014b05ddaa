"""RadGraph's metrics over a constructed archive."""

import pytest

from tests.metrics.contract import check_metric
from tests.metrics.networks.constructed import REPORTS, golden, write_radgraph
from vlscore.errors import MissingDependency
from vlscore.metrics import Plan, compute, find_metric, signature

LEVELS = ("simple", "partial", "complete")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_radgraph(tmp_path_factory.mktemp("radgraph"), "some/bert-uncased")


@pytest.mark.parametrize("name", ["radgraph-f1", *(f"radgraph-{level}" for level in LEVELS)])
def test_it_keeps_the_contract(name, weights):
    check_metric(find_metric(name)(weights=str(weights)))


def test_values_are_the_packages_rewards(weights):
    expected = golden("radgraph")
    candidates, references = ([REPORTS[p[k]] for p in expected["pairs"]] for k in (0, 1))
    for level in LEVELS:
        metric = find_metric(f"radgraph-{level}")(weights=str(weights))
        found = compute(metric, candidates, references)[str(metric)]
        assert found == pytest.approx(expected[level], abs=1e-12)


def test_f1_is_the_mean_of_entities_and_relations(weights):
    metric = find_metric("radgraph-f1")(weights=str(weights))
    found = compute(metric, [*REPORTS[:3], ""], [REPORTS[0]] * 4)
    entities, relations = (found[f"{metric}.{name}"] for name in ("entities", "relations"))
    assert found[str(metric)] == pytest.approx((entities + relations) / 2)
    assert found[str(metric)][[0, 3]].tolist() == [1.0, 0.0]


def test_each_report_is_read_once_for_all_metrics(weights, monkeypatch):
    from vlscore.metrics import RadGraph

    read: list[str] = []
    annotate = RadGraph.annotate
    monkeypatch.setattr(
        RadGraph, "annotate", lambda self, reports: read.extend(reports) or annotate(self, reports)
    )
    texts = [f"{text} once" for text in REPORTS[:3]]
    metrics = [find_metric(f"radgraph-{level}")(weights=str(weights)) for level in LEVELS]
    for _ in range(2):
        compute(metrics, texts, texts[::-1])
    assert sorted(read) == sorted(texts)


def test_a_changed_archive_is_read_again(tmp_path):
    folder = write_radgraph(tmp_path, "some/bert-uncased")
    metric = find_metric("radgraph-f1")(weights=str(folder))
    before = signature(metric)
    labels = folder / "vocabulary" / "radgraph__ner_labels.txt"
    labels.write_text(labels.read_text().replace("OBS-U", "OBS-UNSURE"))
    assert signature(metric) != before


def test_what_is_missing_is_said_before_anything_is_computed(monkeypatch, tmp_path, weights):
    monkeypatch.delenv("VLSCORE_RADGRAPH", raising=False)
    with pytest.raises(MissingDependency, match="set VLSCORE_RADGRAPH"):
        Plan("radgraph-f1").require()
    monkeypatch.setenv("VLSCORE_RADGRAPH", str(tmp_path / "absent.tar.gz"))
    with pytest.raises(MissingDependency, match="no such RadGraph archive"):
        Plan("radgraph-f1").require()
    monkeypatch.setenv("VLSCORE_RADGRAPH", str(weights))
    Plan("radgraph-f1").require()
