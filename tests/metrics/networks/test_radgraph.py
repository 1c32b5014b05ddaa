"""RadGraph against the released package radgraph on the same pseudo-random archive."""

import numpy as np
import pytest

from tests.metrics.networks.constructed import REPORTS, UNUSUAL, golden, pack, write_radgraph
from vlscore.metrics import RadGraph
from vlscore.metrics.networks.radgraph_network import words_of

TOLERANCE = 1e-5
SPLITTINGS = ("radgraph", "radgraph-xl")


@pytest.fixture(scope="module")
def radgraph(radgraph_weights):
    return RadGraph(radgraph_weights)


@pytest.fixture(scope="module")
def expected():
    return golden("radgraph")


@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_words_entities_and_relations_are_those_of_the_package(
    radgraph_weights, expected, splitting
):
    found = RadGraph(radgraph_weights, splitting=splitting).annotate(REPORTS)
    for annotation, theirs in zip(found, expected[splitting], strict=True):
        ours = annotation.to_dict()
        assert ours["text"] == theirs["text"]
        assert ours["entities"] == theirs["entities"]
    # The material has something to find, and something to leave out.
    entities = [entity for annotation in found for entity in annotation.entities]
    assert len(entities) > 50
    assert any(not annotation.entities for annotation in found)
    assert len({label for entity in entities for label, _ in entity.relations}) > 1


def test_scores_are_those_of_the_package(radgraph, expected):
    _, found = radgraph.scores(REPORTS)
    for ours, theirs in zip(found, expected["scores"], strict=True):
        assert ours.kept.tolist() == theirs["kept"]
        entities = np.array(theirs["entities"])
        assert ours.entities[:, 1:].numpy() == pytest.approx(entities, abs=TOLERANCE)
        assert not ours.entities[:, 0].any()
        mentions, k = np.array(theirs["mentions"]), len(theirs["kept"])
        pairs = np.array(theirs["pairs"]).reshape(k, k, -1)
        pairs = pairs + (mentions[:, None] + mentions[None])[..., None]
        assert ours.relations[..., 1:].numpy() == pytest.approx(pairs, abs=TOLERANCE)


def test_the_data_set_of_the_archive_says_how_words_are_split(tmp_path):
    second = write_radgraph(tmp_path, "some/bert-uncased", dataset="radgraph-xl")
    assert RadGraph(second).splitting == "radgraph-xl"
    report = "Opacity (30%). Edema/effusion - it's new."
    assert words_of(report, "radgraph") != words_of(report, "radgraph-xl")


def test_a_packed_archive_reads_the_same(radgraph, radgraph_weights, tmp_path):
    archive = pack(radgraph_weights, tmp_path / "model.tar.gz")
    packed = RadGraph(archive, radgraph_weights / "vocab.txt")
    assert packed.annotate(REPORTS) == radgraph.annotate(REPORTS)


def test_other_reports_change_nothing_that_is_read(radgraph):
    together = radgraph.annotate([*UNUSUAL, *REPORTS])
    alone = [radgraph.annotate([text])[0] for text in [*UNUSUAL, *REPORTS]]
    assert together == alone


def test_a_report_without_words_has_no_entities(radgraph):
    assert [each.entities for each in radgraph.annotate(UNUSUAL)] == [(), (), ()]
    assert radgraph.annotate([]) == []


def test_pairs_taken_a_part_at_a_time_score_the_same(radgraph, monkeypatch):
    _, whole = radgraph.scores(REPORTS[-1:])
    monkeypatch.setattr("vlscore.metrics.networks.radgraph_model._NUMBERS_AT_ONCE", 1)
    _, parts = radgraph.scores(REPORTS[-1:])
    assert parts[0].relations.numpy() == pytest.approx(whole[0].relations.numpy(), abs=TOLERANCE)
