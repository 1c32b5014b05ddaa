"""Objective for encoders that judge reports: the squared distance of two reports counts errors.

Contrastive objectives learn which report belongs to an image, but a score must measure how wrong a
report is. So this objective compares a report with copies of itself whose changes are known
(`vlscore.training.copies`).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.core import check_word
from vlscore.errors import InvalidSetting
from vlscore.training.copies import SIGNIFICANT
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrastive import check_ranges, contrast

# Limits for the logarithms of scales, so that one step of training cannot make the loss infinite.
_LOG_SCALES = (-2.0, 3.5)
# Below this squared length the gradient of a root would be too steep.
_SHORTEST = 1e-6


def significant_loss(reports: Tensor, copies: Tensor, changes: Tensor) -> Tensor:
    """Compute the mean of (|c - r| - sqrt(m))² over copies with m >= 1 significant changes.

    One change has length 1. m independent changes have length sqrt(m), like orthogonal vectors, so
    that squared distances count changes.

    Args:
        reports: (n, d).
        copies: (n, K, d).
        changes: (n, K); copies with less than 1 do not count.
    """
    lengths = (_squared(copies - reports[:, None]) + _SHORTEST).sqrt()
    wanted = changes.clamp(min=0).to(lengths).sqrt()
    return _mean((lengths - wanted).square(), changes >= 1)


def insignificant_loss(reports: Tensor, copies: Tensor, changes: Tensor) -> Tensor:
    """Compute the mean of |c - r|² over the copies without a significant change."""
    return _mean(_squared(copies - reports[:, None]), changes == 0)


def preference_loss(
    images: Tensor, reports: Tensor, copies: Tensor, counts: Tensor, scale: Tensor
) -> Tensor:
    """Compute the mean of log(1 + exp(-s (|i - c|² - |i - r|²))): images prefer their reports.

    It is the cross entropy of a choice between report and copy (Bradley and Terry) by squared
    distances. Gradients reach the images alone, because the copies determine the report vectors.

    Args:
        counts: (n, K) bool, which copies one image can distinguish from the report.
        scale: s.
    """
    reports, copies = reports.detach(), copies.detach()
    # |i - c|² - |i - r|² without the difference of large squares.
    moved = copies - reports[:, None]
    gain = _squared(moved) - 2 * (moved * (images - reports)[:, None]).sum(-1)
    return _mean(functional.softplus(-scale * gain), counts)


class Judging(Objective):
    """Objective for report vectors whose squared distances count changes, and for their images.

    Parts of the loss:

    - `significant`: a copy with m significant changes is sqrt(m) away (`significant_loss`);
    - `insignificant`: a copy that states the same has distance 0;
    - `preference`: the image is nearer to the report than to a copy whose change is visible;
    - `position`: the squared distance of the image from its report, which gets no gradient;
    - `retrieval`: InfoNCE in both directions of negative squared distances, times a learned scale;
    - `gap`: the last number of each vector is `gap` for images and 0 for reports. The base of the
      published triangle is the distance of image and reference, so areas of different studies are
      comparable only if all bases are similar; a large gap makes them similar. It does not change
      the ranks of distances within a study.

    Args:
        significant, insignificant, preference, position, retrieval: weights of the parts.
        gap: distance of images from reports in the last number; 0 for none.
        without: a kind of change that is left out of the copies ("omission", "false-finding",
            "location", "severity", "comparison"), to measure what is learned without it.

    Vectors must not have unit length: train small encoders with the style "judging".
    """

    name = "judging"
    citation = "vlscore 2026: an encoder made for judging reports; docs/objectives.md"
    copies = True

    def __init__(
        self,
        *,
        significant: float = 4.0,
        insignificant: float = 4.0,
        preference: float = 1.0,
        position: float = 0.5,
        retrieval: float = 0.5,
        gap: float = 4.0,
        without: str = "",
    ) -> None:
        super().__init__()
        self.weights = {
            "significant": significant,
            "insignificant": insignificant,
            "preference": preference,
            "position": position,
            "retrieval": retrieval,
        }
        check_ranges(self.name, above_zero={}, at_least_zero={**self.weights, "gap": gap})
        if without:
            check_word("judging's without", without, SIGNIFICANT)
        self.gap, self.left_out = gap, without
        self.log_preference = nn.Parameter(torch.tensor(math.log(4.0)))
        self.log_retrieval = nn.Parameter(torch.tensor(math.log(2.0)))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        if pairs.copies is None or pairs.copy_changes is None or pairs.copy_visible is None:
            raise InvalidSetting(
                "the objective judging needs changed copies of the reports: "
                "vlscore.training.copies.find_copies(reports)"
            )
        with torch.no_grad():
            for scale in (self.log_preference, self.log_retrieval):
                scale.clamp_(*_LOG_SCALES)
        images, reports, copies = pairs.images, pairs.reports, pairs.copies
        parts: dict[str, Any] = {}
        if self.gap:
            apart = (images[:, -1] - self.gap, reports[:, -1], copies[..., -1])
            parts["gap"] = sum(each.square().mean() for each in apart)
            images, reports, copies = images[:, :-1], reports[:, :-1], copies[..., :-1]
        changes, visible = pairs.copy_changes, pairs.copy_visible & (pairs.copy_changes >= 1)
        distances = _squared(images[:, None] - reports[None])
        parts |= {
            "significant": significant_loss(reports, copies, changes),
            "insignificant": insignificant_loss(reports, copies, changes),
            "preference": preference_loss(
                images, reports, copies, visible, self.log_preference.exp()
            ),
            "position": _squared(images - reports.detach()).mean(),
            "retrieval": contrast(-self.log_retrieval.exp() * distances, pairs.same).mean(),
        }
        return {name: self.weights.get(name, 1.0) * part for name, part in parts.items()}


def _squared(vectors: Tensor) -> Tensor:
    return vectors.square().sum(-1)


def _mean(values: Tensor, counts: Tensor) -> Tensor:
    """Return the mean of the values that count; 0 if there are none."""
    there = counts.to(values)
    return (values * there).sum() / there.sum().clamp(min=1)
