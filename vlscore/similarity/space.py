"""One space for image and report embeddings, fitted to the pairs of a table.

Contrastive training asks only that an image lie nearer to its own report than to others; it leaves
the two modalities apart (Liang et al. 2022, "Mind the gap", NeurIPS), spread out unequally, and a
few directions of the reports much longer than the rest. Distances between an image and a report
feel all three.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vlscore.errors import InvalidSetting
from vlscore.similarity._arrays import ArrayLike, as_rows

_FEWEST = 20


@dataclass(frozen=True, eq=False)
class SharedSpace:
    """Both modalities about their means, in one scale, the reports' directions evened out.

    x -> (x - mean) W for a report, s (x - mean) W for an image, each with its modality's mean;
    s makes both spread equally; W = (S + ridge · mean eigenvalue of S)^(-1/2), S the covariance of
    the reports. A report that repeats what most reports state then lies near the origin, and
    seldom findings count as much as common ones. Distances and similarities are taken in the new
    space as in the old; norms and C are other ones.

    Attributes:
        image_mean, report_mean: (d,) float64.
        scale: s.
        matrix: (d, d) W.
    """

    image_mean: Tensor
    report_mean: Tensor
    scale: float
    matrix: Tensor

    @classmethod
    def fit(cls, images: ArrayLike, reports: ArrayLike, *, ridge: float = 1.0) -> "SharedSpace":
        """Fit to the images and the references of a table; no candidate and no rating is looked at.

        Args:
            images, reports: (n, d) and (m, d), of the same studies or not; some hundred each.
            ridge: how little directions are evened out: 0 makes them all equal, noise as well;
                `inf` leaves them as they are.

        Raises: InvalidSetting where there are fewer than 20 of either, where they do not vary, or
            for a ridge below 0.
        """
        images, reports = as_rows(images).double(), as_rows(reports).double()
        if min(len(images), len(reports)) < _FEWEST or images.shape[1] != reports.shape[1]:
            raise InvalidSetting(
                f"a space is fitted to (n, d) images and (m, d) reports, n and m at least {_FEWEST}"
                f", not {tuple(images.shape)} and {tuple(reports.shape)}"
            )
        if not ridge >= 0:
            raise InvalidSetting(f"ridge is a number from 0 on, not {ridge!r}")
        image_mean, report_mean = images.mean(0), reports.mean(0)
        centred = reports - report_mean
        covariance = centred.T @ centred / len(reports)
        spread, spread_of_images = covariance.trace(), (images - image_mean).square().sum(1).mean()
        if not (spread > 0 and spread_of_images > 0 and bool(spread.isfinite())):
            raise InvalidSetting("embeddings that do not vary, or are not finite, span no space")
        return cls(
            image_mean,
            report_mean,
            float((spread / spread_of_images).sqrt()),
            _whitening(covariance, ridge),
        )

    def images(self, x: ArrayLike) -> Tensor:
        """(n, d) float64: image embeddings in the shared space."""
        return self.scale * (as_rows(x).double() - self.image_mean) @ self.matrix

    def reports(self, x: ArrayLike) -> Tensor:
        """(n, d) float64: embeddings of candidates or references in the shared space."""
        return (as_rows(x).double() - self.report_mean) @ self.matrix


def _whitening(covariance: Tensor, ridge: float) -> Tensor:
    if ridge == float("inf"):
        return torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    mean = eigenvalues.mean()
    # What rounding left of directions that no report takes must not be blown up.
    floor = torch.finfo(covariance.dtype).eps * len(covariance) * eigenvalues[-1]
    kept = eigenvalues > floor if ridge == 0 else torch.ones_like(eigenvalues, dtype=torch.bool)
    lengths = torch.where(kept, eigenvalues.clamp(min=0) + ridge * mean, 1)
    matrix: Tensor = (vectors * torch.where(kept, lengths.rsqrt(), 0)) @ vectors.T
    return matrix
