"""Agreement of two RadGraph annotations.

`reward` equals compute_reward of the package radgraph 0.1.18, its case included: a report's tokens
are compared as they are written, except the tokens of relations in "complete". `combined` equals
evaluate_radgraph of CXR-Report-Metric (Yu et al. 2023).
"""

from collections.abc import Hashable
from typing import Literal

from vlscore.annotators.radgraph import Entity, RadGraphAnnotation

Level = Literal["simple", "partial", "complete"]


def reward(candidate: RadGraphAnnotation, reference: RadGraphAnnotation, level: Level) -> float:
    """F1 of what two reports state; 0 where either states no entity.

    Args:
        level: "simple": entities by tokens and label; "partial": also by whether they begin a
            relation; "complete": also by each relation and what it leads to.
    """
    if not candidate.entities or not reference.entities:
        return 0.0
    return f1(_facts(candidate, level), _facts(reference, level))


def combined(
    candidate: RadGraphAnnotation, reference: RadGraphAnnotation
) -> tuple[float, float, float]:
    """Mean of the F1 of entities and the F1 of relations, and both.

    Where neither report has relations their F1 is 0, so that a report without relations reaches .5
    at most, also against itself.
    """
    entities = f1(_facts(candidate, "simple"), _facts(reference, "simple"))
    relations = f1(_relations(candidate), _relations(reference))
    return (entities + relations) / 2, entities, relations


def f1(candidate: set[Hashable], reference: set[Hashable]) -> float:
    """Harmonic mean of precision and recall; 0 where nothing is shared.

    >>> f1({"a", "b"}, {"a"}), f1(set(), set())
    (0.6666666666666666, 0.0)
    """
    shared = len(candidate & reference)
    if not shared:
        return 0.0
    precision, recall = shared / len(candidate), shared / len(reference)
    return 2 * precision * recall / (precision + recall)


def _facts(annotation: RadGraphAnnotation, level: Level) -> set[Hashable]:
    if level == "simple":
        return {_named(entity) for entity in annotation.entities}
    if level == "partial":
        return {(*_named(e), bool(e.relations)) for e in annotation.entities}
    facts: set[Hashable] = set()
    for entity in annotation.entities:
        if not entity.relations:
            facts.add(_named(entity))
        for label, target in entity.relations:
            led_to = annotation.entities[target].tokens.lower()
            facts.add((entity.tokens.lower(), entity.label, label, led_to))
    return facts


def _relations(annotation: RadGraphAnnotation) -> set[Hashable]:
    return {
        (_named(entity), _named(annotation.entities[target]), label)
        for entity in annotation.entities
        for label, target in entity.relations
    }


def _named(entity: Entity) -> tuple[str, str]:
    return entity.tokens, entity.label
