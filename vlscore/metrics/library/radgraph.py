"""RadGraph F1: agreement of the entities and relations that RadGraph reads in two reports.

vlscore runs a published archive with its own inference code. `reward` equals compute_reward of the
package radgraph 0.1.18, upper and lower case included: tokens are compared as written, except the
tokens of relations in "complete". `combined` equals evaluate_radgraph of CXR-Report-Metric
(Yu et al. 2023).
"""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.chexbert import PRECISION
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import (
    LocalWeightsProvider,
    name_and_digest,
    one_column,
    precision_of,
    vocabulary_place,
    weights_place,
)

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

_PARAMETERS = (
    Parameter(
        "weights",
        None,
        "RadGraph's .tar.gz, or the folder that it unpacks to; default: "
        f"{WEIGHTS_VARIABLE}; nothing is fetched",
        kind=str,
    ),
    Parameter(
        "vocabulary",
        None,
        "vocab.txt of the BERT that the model uses; default: beside the archive",
        kind=str,
    ),
    PRECISION,
)


class RadGraphProvider(LocalWeightsProvider):
    """Provider of all RadGraph metrics; it reads every distinct report once for all of them."""

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        if not len(batch):
            return Computed([np.empty(0) for _ in metric.columns])
        from vlscore.metrics.library import radgraph as agreement
        from vlscore.metrics.networks.radgraph_network import remembered_radgraph

        assert batch.references is not None
        annotator = remembered_radgraph(*self.files(metric), precision_of(metric))
        read = self.annotated(annotator, metric, batch)
        pairs = list(zip(read[: len(batch)], read[len(batch) :], strict=True))
        if metric.name == "radgraph-f1":
            return Computed(list(np.array([agreement.combined(g, r) for g, r in pairs]).T))
        level: Any = metric.name.removeprefix("radgraph-")
        return one_column([agreement.reward(g, r, level) for g, r in pairs])

    def conventions(self, metric: Metric) -> dict[str, str]:
        weights, vocabulary = self.present_files(metric)
        return {
            "weights": name_and_digest(weights, beside=(vocabulary.name,)),
            "vocabulary": name_and_digest(vocabulary),
        }

    def files(self, metric: Metric) -> tuple[Path, Path]:
        from vlscore.metrics.networks.model_files import radgraph_files

        what = "a RadGraph archive, as the package radgraph or PhysioNet offers it,"
        return radgraph_files(
            weights_place(metric, WEIGHTS_VARIABLE, what), vocabulary_place(metric)
        )


def _metric(name: str, title: str, description: str, citation: str, *further: Output) -> Metric:
    return Metric(
        provider=RadGraphProvider(),
        name=name,
        title=title,
        description=description,
        higher_is_better=True,
        bounds=(0.0, 1.0),
        citation=f"Jain et al. 2021, RadGraph, NeurIPS; {citation}",
        parameters=_PARAMETERS,
        further=further,
        cost="model",
    )


RADGRAPH = (
    _metric(
        "radgraph-f1",
        "RadGraph F1",
        "mean of the F1 of entities and the F1 of relations; .5 at most for reports without "
        "relations",
        "Yu et al. 2023, Patterns",
        Output("entities", "F1 of entities, by tokens and label"),
        Output("relations", "F1 of relations, by both entities and label; 0 where there are none"),
    ),
    *(
        _metric(
            f"radgraph-{level}",
            f"RadGraph {level}",
            f"F1 of entities by tokens and label{more}; 0 where a report has none",
            "Delbrouck et al. 2022, EMNLP Findings",
        )
        for level, more in (
            ("simple", ""),
            ("partial", " and by whether they begin a relation"),
            ("complete", " and by each relation that they begin"),
        )
    ),
)
RADGRAPH_F1, RADGRAPH_SIMPLE, RADGRAPH_PARTIAL, RADGRAPH_COMPLETE = RADGRAPH
