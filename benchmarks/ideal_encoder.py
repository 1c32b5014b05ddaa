"""Embeddings of an encoder that sees and reads everything: what geometry alone allows a score.

No encoder of pictures can see a change since an earlier image, and none of these states one.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from image_use_scenes import EmbeddedScenes, Imperfect, Scenes
from torch import Tensor

from vlscore.data import BOTH, KINDS, SEVERITIES, ZONES, PhantomFinding

_SITES = [(side, zone) for side in (None, *BOTH) for zone in (None, *ZONES)]
_PLACES = [(kind, *site) for kind in KINDS for site in _SITES]
_DEGREES = [(kind, severity) for kind in KINDS for severity in (None, *SEVERITIES)]
# All embeddings share it, so that a report without findings has a direction too.
_BIAS = len(_PLACES) + len(_DEGREES)

# Lengths of what a finding adds: its place, and its severity, which is one error as well.
PLACE, DEGREE = 1.0, 0.7
# So much is left to chance that no two scores are tied.
_NOISE = 1e-7


def ideal_scenes(scenes: Scenes, *, unit: bool) -> EmbeddedScenes:
    """The scenes under an encoder whose pictures and reports are what they state.

    A report is the sum of its findings; each adds a direction for its kind at its place and one for
    its kind in its severity, all at right angles.

    Args: unit: scale every vector to unit length, as most contrastive encoders do.
    """
    rng = np.random.default_rng(0)
    shown = ideal_vectors([study.scene.findings for study in scenes.studies], unit=unit)
    imperfect = {}
    for form, drawn in scenes.imperfect.items():
        rows = np.array([number for number, _ in drawn])
        stated = ideal_vectors([each.stated for _, each in drawn], unit=unit)
        erring = ideal_vectors([each.erring for _, each in drawn], unit=unit)
        imperfect[form] = Imperfect(rows, stated, shown[rows], erring, stated)
    claimed = ideal_vectors([study.claimed for study in scenes.studies], unit=unit)
    claimed += torch.from_numpy(_NOISE * rng.standard_normal(claimed.shape))
    black = torch.zeros(_BIAS + 1, dtype=torch.float64)
    return EmbeddedScenes(scenes, shown, claimed, shown, black, imperfect, None, "enc:ideal")


def ideal_vectors(reports: Sequence[Iterable[PhantomFinding]], *, unit: bool = False) -> Tensor:
    """(n, d) float64 vectors of reports that state these findings; the last number is 1.

    Args: unit: as in `ideal_scenes`.
    """
    vectors = torch.zeros(len(reports), _BIAS + 1, dtype=torch.float64)
    vectors[:, _BIAS] = 1
    for row, findings in enumerate(reports):
        for f in findings:
            vectors[row, _PLACES.index((f.kind, f.side, f.zone))] = PLACE
            vectors[row, len(_PLACES) + _DEGREES.index((f.kind, f.severity))] = DEGREE
    return torch.nn.functional.normalize(vectors, dim=1) if unit else vectors
