"""RaTEScore: matches each entity to the most similar one of the other report.

vlscore runs the two published checkpoints with its own inference code.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.metrics.batch import Batch, Values
from vlscore.metrics.library.file_metric import FileMetric, path_parameter
from vlscore.metrics.memo import name_and_digest
from vlscore.metrics.metric import Output, parameter
from vlscore.metrics.networks.categories import TYPES
from vlscore.metrics.networks.clinical_sentences import sentences_fact

if TYPE_CHECKING:
    from torch import Tensor

    from vlscore.metrics.networks.ratescore_network import RaTEEntity


NER_VARIABLE = "VLSCORE_RATESCORE_NER"
SYNONYMS_VARIABLE = "VLSCORE_RATESCORE_SYNONYMS"

# Weights of a matched pair of entities by their types. "neg_weight" multiplies the similarity if
# one of the two types denies what the other affirms. The authors found the weights by a search
# against ratings of whole reports ("long") and of sentences ("short"); RaTEScore 0.6.0, scorer.py,
# DEFAULT_MATRIX_LONG and DEFAULT_MATRIX_SHORT. Rows are the types of the entities that are matched,
# columns the types of the entities to which they are matched, in this order.
MATRICES = {
    "long": (
        (0.4276119164393705, 0.6240929990607657, 0.0034478181112993847, 0.5431049700217344,
         0.27005425386213877),
        (0.7487824274337533, 0.2856134859160784, 0.4592143222158069, 0.02097055139911715,
         0.00013736314126696204),
        (0.8396510075734789, 0.9950209388542061, 0.8460555030578727, 0.9820689020512646,
         0.3789136708096537),
        (0.16546764653692908, 0.018670610691852826, 0.719397354576018, 0.0009357166071730684,
         0.0927333564267591),
        (0.7759420231214385, 0.1839139293714062, 0.10073046076318157, 0.03860183811876373,
         0.34065681486566446),
    ),
    "short": (
        (0.4070293318365468, 0.6952639610605605, 0.28342529466226446, 0.9479148658006686,
         0.23875064111146294),
        (0.5829759950441763, 0.7709590751917746, 0.0006059634829551632, 0.794672584951181,
         0.27982942400798977),
        (0.8840397619834857, 0.9637659445696822, 0.19018958438059513, 0.6962283914800402,
         0.943727057946997),
        (0.1712744286898638, 0.4485149671497294, 0.00045065329822896076, 0.0007887930317199857,
         0.8555432840895761),
        (0.9555801066212176, 0.13122106162635216, 0.6072996585919443, 0.05650711141169969,
         0.3214769399791204),
    ),
}  # fmt: skip
DENIED = {"long": 0.8716553966489615, "short": 0.3611577852354489}


# The released code's value for a pair in which one report has no entities.
_WITHOUT_ENTITIES = 0.5
_OPPOSITES = {
    frozenset((denied, stated))
    for denied in ("NON-DISEASE", "NON-ABNORMALITY")
    for stated in ("DISEASE", "ABNORMALITY")
}


class RaTEScore(FileMetric):
    """Reads each distinct report, and encodes each entity, once."""

    name = "ratescore"
    title = "RaTEScore"
    description = (
        "F1 of the similarity of each entity to the most similar one of the other report, "
        "weighted by type; .5 if a report has no entities"
    )
    citation = "Zhao et al. 2024, RaTEScore, EMNLP"
    # Cosines of the published encoder are positive, and the number is then in [0, 1].
    bounds = (None, None)
    further = (
        Output("precision", "of the candidate's entities", bounds=(-1.0, 1.0)),
        Output("recall", "of the reference's entities", bounds=(-1.0, 1.0)),
    )
    library = "transformers"

    ner: str | None = path_parameter(
        f"folder of the model RaTE-NER-Deberta; default: {NER_VARIABLE}, else what `vlscore "
        "weights fetch ratescore` downloads"
    )
    synonyms: str | None = path_parameter(
        f"folder of the model BioLORD-2023-C; default: {SYNONYMS_VARIABLE}, else what `vlscore "
        "weights fetch ratescore` downloads"
    )
    affinity: str = parameter(
        "long",
        "the published weights of pairs of types: for whole reports or for single sentences",
        choices=("long", "short"),
    )

    def compute(self, batch: Batch) -> list[Values]:
        from vlscore.metrics.networks.ratescore_network import known_entities, known_vectors

        folders = self.files()
        pairs = batch.read(known_entities, batch.memo, folders)
        names = list(dict.fromkeys(each.text for pair in pairs for es in pair for each in es))
        rows = {name: row for row, name in enumerate(names)}
        vectors = known_vectors(batch.memo, folders, names) if names else None
        found = np.full((len(batch), 3), _WITHOUT_ENTITIES)
        for row, (g, r) in enumerate(pairs):
            if vectors is None or not g or not r:
                continue
            of_g, of_r = (vectors[[rows[entity.text] for entity in each]] for each in (g, r))
            precision = agreement(r, of_r, g, of_g, self.affinity)
            recall = agreement(g, of_g, r, of_r, self.affinity)
            both = precision + recall
            found[row] = (2 * precision * recall / both if both else 0.0, precision, recall)
        return list(found.T)

    def facts(self) -> dict[str, Any]:
        from vlscore.metrics.networks.model_files import files_of_model

        ner, synonyms = self.present_files()
        return {
            "ner": name_and_digest(ner, files_of_model(ner)),
            "synonyms": name_and_digest(synonyms, files_of_model(synonyms)),
            "affinity": f"{self.affinity}-0.6.0",
            "sentences": sentences_fact(),
            **super().facts(),
        }

    def files(self) -> tuple[Path, Path]:
        from vlscore.metrics.networks.model_files import check_model_folder

        ner = self.path_of("ner", NER_VARIABLE, "RaTE-NER-Deberta")
        synonyms = self.path_of("synonyms", SYNONYMS_VARIABLE, "BioLORD-2023-C")
        return check_model_folder(ner), check_model_folder(synonyms)


def agreement(
    others: "Sequence[RaTEEntity]",
    of_others: "Tensor",
    entities: "Sequence[RaTEEntity]",
    of_entities: "Tensor",
    affinity: str,
) -> float:
    """Compute the weighted mean of each entity's cosine to the nearest other (paper, eq. 3).

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
        # Rounding of float32 may give slightly more than 1.
        total += min(float(values[0]), 1.0) * weight * (DENIED[affinity] if is_denied else 1)
        weighed += weight
    return total / weighed if weighed else 0.0
