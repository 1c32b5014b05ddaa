"""Agreement of annotations, by hand and as the released package gives it."""

import pytest

from tests.metrics.networks.constructed import REPORTS, golden
from vlscore.metrics import Entity, RadGraph, RadGraphAnnotation
from vlscore.metrics.library.radgraph import combined, reward


def _annotation(*entities: Entity) -> RadGraphAnnotation:
    return RadGraphAnnotation((), entities)


EFFUSION = Entity("effusion", "OBS-DP", 1, 1)
SMALL = Entity("small", "OBS-DP", 0, 0, (("modify", 1),))
LEFT = Entity("left", "ANAT-DP", 2, 2)


@pytest.mark.parametrize("level", ["simple", "partial", "complete"])
def test_rewards_are_those_of_the_package(radgraph_weights, level):
    expected = golden("radgraph")
    read = RadGraph(radgraph_weights).annotate(REPORTS)
    found = [reward(read[g], read[r], level) for g, r in expected["pairs"]]
    assert found == pytest.approx(expected[level], abs=1e-12)
    assert len({round(value, 6) for value in found}) > 2


def test_a_report_of_two_entities_and_a_relation():
    reference = _annotation(SMALL, EFFUSION)
    without = _annotation(Entity("small", "OBS-DP", 0, 0), EFFUSION)
    assert reward(without, reference, "simple") == 1.0
    assert reward(without, reference, "partial") == 0.5
    assert reward(without, reference, "complete") == 0.5
    assert combined(without, reference) == (0.5, 1.0, 0.0)
    assert combined(reference, reference) == (1.0, 1.0, 1.0)


def test_without_relations_a_report_reaches_half_of_itself():
    lone = _annotation(EFFUSION, LEFT)
    assert combined(lone, lone) == (0.5, 1.0, 0.0)
    assert [reward(lone, lone, x) for x in ("simple", "partial", "complete")] == [1.0] * 3


def test_case_counts_but_in_relations():
    upper = _annotation(Entity("Small", "OBS-DP", 0, 0, (("modify", 1),)), EFFUSION)
    lower = _annotation(SMALL, EFFUSION)
    assert reward(upper, lower, "simple") == 0.5
    assert reward(upper, lower, "complete") == 1.0


def test_an_empty_report_agrees_with_none():
    assert reward(_annotation(), _annotation(), "simple") == 0.0
    assert combined(_annotation(), _annotation(EFFUSION)) == (0.0, 0.0, 0.0)
