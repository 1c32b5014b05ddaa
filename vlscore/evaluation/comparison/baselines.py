"""Reports that look at no image of the study, or at the wrong one: what a system must beat."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vlscore.errors import InvalidSetting
from vlscore.evaluation.comparison.systems import BASELINE

CONSTANT, NORMAL = f"{BASELINE}constant", f"{BASELINE}normal"
RANDOM, NEAREST = f"{BASELINE}random", f"{BASELINE}nearest-image"
# Similarities of images held at once.
_AT_ONCE = 10_000_000


def constant_report(reports: Sequence[str]) -> tuple[str, int]:
    """The most frequent report and how often it stands there; of equally frequent ones the first.

    Blanks around and between words do not make another report.

    >>> constant_report(["Old fracture.", "Clear lungs.", "Clear  lungs."])
    ('Clear lungs.', 2)
    """
    counts = Counter(" ".join(report.split()) for report in reports)
    return counts.most_common(1)[0]


def random_reports(
    references: Sequence[str | None], train: Sequence[str] | None, seed: int
) -> list[str]:
    """For each study a report drawn at random, with replacement.

    Args:
        references: of the n studies, None for one without; drawn from where there is no `train`,
            and never the study's own. Another study's reference of equal wording may be drawn.
        train: reports of other studies.

    Raises: InvalidSetting where no other study has a reference.
    """
    rng = np.random.default_rng(seed)
    if train is not None:
        return [train[k] for k in rng.integers(len(train), size=len(references))]
    texts = [text for text in references if text is not None]
    if len(texts) < 2:
        raise InvalidSetting(
            "baselines take the references of other studies, and there are none; give a table of "
            "reports (--train), or leave the baselines out"
        )
    drawn = []
    before = 0
    for text in references:
        is_usable = text is not None
        k = int(rng.integers(len(texts) - is_usable))
        drawn.append(texts[k + (is_usable and k >= before)])
        before += is_usable
    return drawn


def nearest_reports(vectors: Tensor, references: Sequence[str | None]) -> list[str | None]:
    """For each of n studies the reference of the other study whose image is nearest by cosine.

    Args:
        vectors: (n, d) embeddings of images; nan where a study has none.
        references: of the same studies, None for one without.
    Returns: n reports; None for a study without an image, or where no other study has both.
    """
    has_image = vectors.isfinite().all(1)
    has_both = has_image & torch.tensor([text is not None for text in references])
    unit = torch.nn.functional.normalize(torch.nan_to_num(vectors.double()), dim=1)
    found: list[str | None] = []
    step = max(_AT_ONCE // max(len(vectors), 1), 1)
    for start in range(0, len(vectors), step):
        similar = unit[start : start + step] @ unit.T
        similar[:, ~has_both] = -torch.inf
        rows = torch.arange(len(similar))
        similar[rows, start + rows] = -torch.inf
        best, where = similar.max(1)
        for own, (value, k) in enumerate(zip(best.tolist(), where.tolist(), strict=True), start):
            is_found = bool(has_image[own]) and value > -torch.inf
            found.append(references[k] if is_found else None)
    return found
