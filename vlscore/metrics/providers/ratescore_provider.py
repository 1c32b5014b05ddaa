"""RaTEScore by our own inference over the two published checkpoints."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.definitions.ratescore import (
    DENIED,
    MATRICES,
    NER_VARIABLE,
    SYNONYMS_VARIABLE,
    TYPES,
)
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.local_weights import (
    LocalWeightsProvider,
    name_and_digest,
    weights_place,
)

if TYPE_CHECKING:
    from torch import Tensor

    from vlscore.annotators.ratescore import RaTEEntity

# The released code's value for a pair of which one report has no entities.
_WITHOUT_ENTITIES = 0.5
_OPPOSITES = {
    frozenset((denied, stated))
    for denied in ("NON-DISEASE", "NON-ABNORMALITY")
    for stated in ("DISEASE", "ABNORMALITY")
}


class RaTEScoreProvider(LocalWeightsProvider):
    """Each distinct report is read once, and each distinct entity encoded once."""

    library = "transformers"
    supports = ("ratescore",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        if not len(batch):
            return Computed([np.empty(0) for _ in metric.columns])
        from vlscore.annotators.memory import remembered_ratescore

        assert batch.references is not None
        reader, reports = remembered_ratescore(*self.files(metric))
        read = reports.annotate([*batch.candidates, *batch.references])
        names = list(dict.fromkeys(entity.text for entities in read for entity in entities))
        rows = {name: row for row, name in enumerate(names)}
        vectors = reader.vectors(names) if names else None
        affinity = str(metric.settings["affinity"])
        found = np.full((len(batch), 3), _WITHOUT_ENTITIES)
        for row, (g, r) in enumerate(zip(read[: len(batch)], read[len(batch) :], strict=True)):
            if vectors is None or not g or not r:
                continue
            of_g, of_r = (vectors[[rows[entity.text] for entity in each]] for each in (g, r))
            precision = agreement(r, of_r, g, of_g, affinity)
            recall = agreement(g, of_g, r, of_r, affinity)
            both = precision + recall
            found[row] = (2 * precision * recall / both if both else 0.0, precision, recall)
        return Computed(list(found.T))

    def conventions(self, metric: Metric) -> dict[str, str]:
        from vlscore.annotators.folders import files_of_model

        ner, synonyms = self.present_files(metric)
        return {
            "ner": name_and_digest(ner, files_of_model(ner)),
            "synonyms": name_and_digest(synonyms, files_of_model(synonyms)),
            "affinity": f"{metric.settings['affinity']}-0.6.0",
            "sentences": "rush-1.0.13",
            "transformers": self.version(),
        }

    def files(self, metric: Metric) -> tuple[Path, Path]:
        from vlscore.annotators.folders import check_model_folder

        places = (
            weights_place(metric, NER_VARIABLE, "a folder with RaTE-NER-Deberta", "ner"),
            weights_place(metric, SYNONYMS_VARIABLE, "a folder with BioLORD-2023-C", "synonyms"),
        )
        return check_model_folder(places[0]), check_model_folder(places[1])


def agreement(
    others: "Sequence[RaTEEntity]",
    of_others: "Tensor",
    entities: "Sequence[RaTEEntity]",
    of_entities: "Tensor",
    affinity: str,
) -> float:
    """Weighted mean over `entities` of the cosine to the nearest of the others (paper, eq. 3).

    Args:
        of_others, of_entities: (n, d) and (m, d) unit vectors.
        affinity: "long" or "short".
    """
    import torch

    matrix = MATRICES[affinity]
    total = weighed = 0.0
    for entity, vector in zip(entities, of_entities, strict=True):
        values, positions = torch.topk(of_others @ vector, 1)
        other = others[int(positions[0])].type
        weight = matrix[TYPES.index(entity.type)][TYPES.index(other)]
        is_denied = frozenset((entity.type, other)) in _OPPOSITES
        # Rounding of float32 may end just above 1.
        total += min(float(values[0]), 1.0) * weight * (DENIED[affinity] if is_denied else 1)
        weighed += weight
    return total / weighed if weighed else 0.0
