"""RadGraph's metrics over a constructed archive."""

import pytest

from tests.metrics.contract import check_metric
from tests.metrics.networks.constructed import REPORTS, write_radgraph
from vlscore.metrics import compute, find_metric, signature

LEVELS = ("simple", "partial", "complete")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_radgraph(tmp_path_factory.mktemp("radgraph"), "some/bert-uncased")


@pytest.mark.parametrize("name", ["radgraph-f1", *(f"radgraph-{level}" for level in LEVELS)])
def test_it_keeps_the_contract(name, weights):
    check_metric(find_metric(name)(weights=str(weights)))


def test_f1_is_the_mean_of_entities_and_relations(weights):
    metric = find_metric("radgraph-f1")(weights=str(weights))
    found = compute(metric, [*REPORTS[:3], ""], [REPORTS[0]] * 4)
    entities, relations = (found[f"{metric}.{name}"] for name in ("entities", "relations"))
    assert found[str(metric)] == pytest.approx((entities + relations) / 2)
    assert found[str(metric)][[0, 3]].tolist() == [1.0, 0.0]


def test_a_changed_archive_is_read_again(tmp_path):
    folder = write_radgraph(tmp_path, "some/bert-uncased")
    metric = find_metric("radgraph-f1")(weights=str(folder))
    before = signature(metric)
    labels = folder / "vocabulary" / "radgraph__ner_labels.txt"
    labels.write_text(labels.read_text().replace("OBS-U", "OBS-UNSURE"))
    assert signature(metric) != before
