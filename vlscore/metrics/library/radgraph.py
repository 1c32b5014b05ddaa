"""RadGraph F1: agreement of the entities and relations that RadGraph reads in two reports.

vlscore runs a published archive with its own inference code. `reward` equals compute_reward of the
package radgraph 0.1.18, upper and lower case included: tokens are compared as written, except the
tokens of relations in "complete". `combined` equals evaluate_radgraph of CXR-Report-Metric
(Yu et al. 2023).
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from vlscore.metrics.batch import Batch, Values
from vlscore.metrics.library.file_metric import FileMetric, path_parameter
from vlscore.metrics.memo import name_and_digest
from vlscore.metrics.metric import Output

if TYPE_CHECKING:
    from vlscore.metrics.networks.radgraph_network import Entity, RadGraphAnnotation

Level = Literal["simple", "partial", "complete"]


def reward(candidate: "RadGraphAnnotation", reference: "RadGraphAnnotation", level: Level) -> float:
    """Compute the F1 of two annotations; 0 if either has no entity.

    Args:
        level: "simple": entities by tokens and label; "partial": also by whether they begin a
            relation; "complete": also by each relation and what it leads to.
    """
    if not candidate.entities or not reference.entities:
        return 0.0
    return f1(_facts(candidate, level), _facts(reference, level))


def combined(
    candidate: "RadGraphAnnotation", reference: "RadGraphAnnotation"
) -> tuple[float, float, float]:
    """Compute the mean of the F1 of entities and the F1 of relations, and both.

    If neither report has relations their F1 is 0, so that a report without relations reaches .5
    at most, even against itself.
    """
    entities = f1(_facts(candidate, "simple"), _facts(reference, "simple"))
    relations = f1(_relations(candidate), _relations(reference))
    return (entities + relations) / 2, entities, relations


def f1(candidate: set[Hashable], reference: set[Hashable]) -> float:
    """Compute the harmonic mean of precision and recall of two sets; 0 if they share nothing.

    >>> f1({"a", "b"}, {"a"}), f1(set(), set())
    (0.6666666666666666, 0.0)
    """
    shared = len(candidate & reference)
    if not shared:
        return 0.0
    precision, recall = shared / len(candidate), shared / len(reference)
    return 2 * precision * recall / (precision + recall)


def _facts(annotation: "RadGraphAnnotation", level: Level) -> set[Hashable]:
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


def _relations(annotation: "RadGraphAnnotation") -> set[Hashable]:
    return {
        (_named(entity), _named(annotation.entities[target]), label)
        for entity in annotation.entities
        for label, target in entity.relations
    }


def _named(entity: "Entity") -> tuple[str, str]:
    return entity.tokens, entity.label


WEIGHTS_VARIABLE = "VLSCORE_RADGRAPH"


class _RadGraphMetric(FileMetric):
    """Base of all RadGraph metrics; every distinct report is read once for all of them."""

    citation = "Jain et al. 2021, RadGraph, NeurIPS; Delbrouck et al. 2022, EMNLP Findings"
    bounds = (0.0, 1.0)
    level: ClassVar[Level]

    weights: str | None = path_parameter(
        "RadGraph's .tar.gz, or the folder that it unpacks to, or radgraph-xl for what `vlscore "
        f"weights fetch radgraph-xl` downloads; default: {WEIGHTS_VARIABLE}, else what `vlscore "
        "weights fetch radgraph` downloads"
    )
    vocabulary: str | None = path_parameter(
        "vocab.txt of the BERT that the model uses; default: next to the archive, else the hub's "
        "cache"
    )

    def compute(self, batch: Batch) -> "Values | Sequence[Values]":
        return np.array([reward(g, r, self.level) for g, r in self._read(batch)])

    def facts(self) -> dict[str, Any]:
        weights, vocabulary = self.present_files()
        return {
            "precision": "fp32",
            "weights": name_and_digest(weights, excluded=(vocabulary.name,)),
            "vocabulary": name_and_digest(vocabulary),
        }

    def files(self) -> tuple[Path, Path]:
        from vlscore.metrics.networks.model_files import radgraph_files

        weights = self.path_of("weights", WEIGHTS_VARIABLE, "radgraph")
        return radgraph_files(weights, self.vocabulary)

    def _read(self, batch: Batch) -> "list[tuple[RadGraphAnnotation, RadGraphAnnotation]]":
        from vlscore.metrics.networks.radgraph_network import annotations

        return batch.read(annotations, batch.memo, *self.files())


class RadGraphF1(_RadGraphMetric):
    """RadGraph F1 of Yu et al. 2023."""

    name = "radgraph-f1"
    title = "RadGraph F1"
    description = (
        "mean of the F1 of entities and the F1 of relations; at most .5 for reports without "
        "relations"
    )
    citation = "Jain et al. 2021, RadGraph, NeurIPS; Yu et al. 2023, Patterns"
    further = (
        Output("entities", "F1 of entities, by tokens and label"),
        Output("relations", "F1 of relations, by both entities and label; 0 where there are none"),
    )

    def compute(self, batch: Batch) -> list[Values]:
        found = np.array([combined(g, r) for g, r in self._read(batch)])
        return list(found.reshape(-1, 3).T)


class RadGraphSimple(_RadGraphMetric):
    """Reward of entities."""

    name = "radgraph-simple"
    title = "RadGraph simple"
    description = "F1 of entities by tokens and label; 0 if a report has none"
    level = "simple"


class RadGraphPartial(_RadGraphMetric):
    """Reward of entities with whether they have relations."""

    name = "radgraph-partial"
    title = "RadGraph partial"
    description = (
        "F1 of entities by tokens, label, and whether they begin a relation; 0 if a report has none"
    )
    level = "partial"


class RadGraphComplete(_RadGraphMetric):
    """Reward of entities and relations."""

    name = "radgraph-complete"
    title = "RadGraph complete"
    description = (
        "F1 of entities by tokens, label, and the relations that they begin; 0 if a report has none"
    )
    level = "complete"
