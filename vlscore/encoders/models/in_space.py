"""Shared space: any encoder with its image and report embeddings in one fitted space.

Contrastive training asks only that an image lie nearer to its own report than to others. It leaves
the two modalities apart (Liang et al. 2022, "Mind the gap", NeurIPS), with different spreads, and a
few directions of the reports are much longer than the rest. All three change distances between an
image and a report. `SharedSpace` is fitted to the pairs of a table, and `InSharedSpace` is an
encoder that uses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from vlscore.core import ArrayLike, as_rows, atomic_write, write_json
from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.tokenizers import read_json
from vlscore.encoders.checkpoints import load_checkpoint
from vlscore.encoders.registry import encoder_from_file, load_encoder
from vlscore.encoders.weight_files import path_from_file
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, WeightsNotFound

_FEWEST = 20


@dataclass(frozen=True, eq=False)
class SharedSpace:
    """A map of both modalities to mean 0 and one scale, with the reports' directions evened out.

    x -> (x - mean) W for a report, s (x - mean) W for an image, each with its modality's mean;
    s makes both spread equally; W = (S + ridge · mean eigenvalue of S)^(-1/2), S the covariance of
    the reports. A report with common findings alone then lies near the origin, and rare findings
    count as much as common ones. Distances and similarities are defined as before; norms and C
    change.

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
        """Fit to the images and the references of a table; candidates and ratings are not used.

        Args:
            images, reports: (n, d) and (m, d), of the same studies or others; some hundred each.
            ridge: strength of the regularization: 0 makes all directions equal, noise as well;
                `inf` does not change them.

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
        """Map image embeddings to the shared space, (n, d) float64."""
        return self.scale * (as_rows(x).double() - self.image_mean) @ self.matrix

    def reports(self, x: ArrayLike) -> Tensor:
        """Map embeddings of candidates or references to the shared space, (n, d) float64."""
        return (as_rows(x).double() - self.report_mean) @ self.matrix


def _whitening(covariance: Tensor, ridge: float) -> Tensor:
    if ridge == float("inf"):
        return torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    mean = eigenvalues.mean()
    # Rounding errors in directions without any report must not be amplified.
    floor = torch.finfo(covariance.dtype).eps * len(covariance) * eigenvalues[-1]
    kept = eigenvalues > floor if ridge == 0 else torch.ones_like(eigenvalues, dtype=torch.bool)
    lengths = torch.where(kept, eigenvalues.clamp(min=0) + ridge * mean, 1)
    matrix: Tensor = (vectors * torch.where(kept, lengths.rsqrt(), 0)) @ vectors.T
    return matrix


SPACE, CARD = "space.safetensors", "card.json"
_TENSORS = ("image_mean", "report_mean", "image_matrix", "report_matrix")
# Facts about the inner encoder in the card of a saved space.
_NAMES = ("below", "below_weights", "below_tokenizer", "below_checksum")
# Advice for an inner encoder that is not registered.
_BY_HAND = "Python: InSharedSpace(load_encoder(NAME), space) takes any encoder"


class InSharedSpace(JointEncoder):
    """An encoder whose embeddings lie in a `SharedSpace`.

    It can be used as any loaded encoder: in `Scorer`, `evaluate`, `StudyEmbedder`, an index; and,
    once saved, in every command, as --encoder vlscore.encoders.in_space:InSharedSpace --weights
    FOLDER. It has its own checksum, and its own C, which must be measured. It has no lateral tower.

    Args:
        encoder: the inner encoder, which is shared and not changed.
        space: space that `SharedSpace.fit` fitted to the encoder's own embeddings.
    """

    stable_name = "vlscore.encoders.in_space:InSharedSpace"
    takes_tokenizer = False
    image_mean: Tensor
    report_mean: Tensor
    image_matrix: Tensor
    report_matrix: Tensor

    def __init__(self, encoder: JointEncoder, space: SharedSpace) -> None:
        super().__init__()
        self.encoder = encoder
        self.image_pipeline = encoder.image_pipeline
        self.image_policy = encoder.image_policy
        self.register_buffer("image_mean", space.image_mean)
        self.register_buffer("report_mean", space.report_mean)
        self.register_buffer("image_matrix", space.scale * space.matrix)
        self.register_buffer("report_matrix", space.matrix)
        self.card = replace(
            encoder.card,
            name=f"{encoder.card.name}+space",
            title=f"{encoder.card.title}, in a space fitted to images and reports",
            normalised=False,
            C=None,
            C_source="not measured; vlscore calibrate measures it",
        )
        self.eval()

    @classmethod
    def fit(
        cls,
        encoder: JointEncoder,
        images: Sequence[Any],
        reports: Sequence[str],
        *,
        ridge: float = 1.0,
    ) -> "InSharedSpace":
        """Embed images and reports of a table, some hundred each, and fit a space to them.

        Raises: as `encode_images`, `encode_reports` and `SharedSpace.fit`.
        """
        vectors = encoder.encode_images(images), encoder.encode_reports(reports)
        return cls(encoder, SharedSpace.fit(*vectors, ridge=ridge))

    @property
    def tokenizer(self) -> Any:
        """Tokenizer of the inner encoder, if it has one."""
        return getattr(self.encoder, "tokenizer", None)

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.encoder.tokenize(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        vectors = self.encoder.embed_images(pixels).double()
        return ((vectors - self.image_mean) @ self.image_matrix).float()

    def embed_reports(self, tokens: Tokens) -> Tensor:
        vectors = self.encoder.embed_reports(tokens).double()
        return ((vectors - self.report_mean) @ self.report_matrix).float()

    def save(
        self,
        folder: str | Path,
        *,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
    ) -> None:
        """Write the space, and how to load the inner encoder.

        Args: weights, tokenizer: arguments of `load_encoder` for the inner encoder; its weights
            are not copied.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: getattr(self, name).detach().cpu().contiguous() for name in _TENSORS}
        with atomic_write(folder / SPACE, "wb") as stream:
            stream.write(save(state))
        paths = [
            None if path is None else str(Path(path).absolute()) for path in (weights, tokenizer)
        ]
        facts = (self.encoder.card.name, *paths, self.encoder.checksum)
        write_json(folder / CARD, {**dict(zip(_NAMES, facts, strict=True)), "C": self.card.C})

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "InSharedSpace":
        """Read a folder that `save` wrote, and load the inner encoder.

        Raises: WeightsNotFound; IncompatibleCheckpoint if the folder is damaged, or the inner
            encoder is not the one that the space was fitted to; the errors of `load_encoder`.
        """
        folder = Path(weights) if weights is not None else Path()
        if weights is None or not (folder / SPACE).is_file():
            raise WeightsNotFound(f"{folder} holds no {SPACE}; name the folder of a saved space")
        facts = read_json(folder / CARD, "card of a shared space")
        below, own_weights, own_tokenizer, checksum = (facts.get(name) for name in _NAMES)
        given = (below, own_weights or "", own_tokenizer or "", checksum)
        if not all(isinstance(fact, str) for fact in given):
            raise IncompatibleCheckpoint(f"{folder / CARD} does not name the encoder below")
        encoder = load_encoder(
            encoder_from_file(below, folder / CARD, _BY_HAND),
            weights=own_weights,
            tokenizer=None
            if own_tokenizer is None
            else path_from_file(own_tokenizer, folder / CARD),
        )
        if encoder.checksum != checksum:
            raise IncompatibleCheckpoint(
                f"{folder}: the space was fitted to {below}@{str(checksum)[:12]}, and the encoder "
                f"loaded is @{encoder.checksum[:12]}; fit it anew"
            )
        tensors = load_checkpoint(folder / SPACE)
        d = encoder.card.dim
        shapes = {name: (d, d) if "matrix" in name else (d,) for name in _TENSORS}
        if {name: tuple(x.shape) for name, x in tensors.items()} != shapes:
            raise IncompatibleCheckpoint(f"{folder / SPACE} is no space of {d} dimensions")
        tensors = {name: x.double() for name, x in tensors.items()}
        space = SharedSpace(
            tensors["image_mean"], tensors["report_mean"], 1.0, tensors["report_matrix"]
        )
        loaded = cls(encoder, space)
        loaded.register_buffer("image_matrix", tensors["image_matrix"])
        C = facts.get("C")
        if isinstance(C, int | float) and not isinstance(C, bool) and 0 < C < float("inf"):
            source = facts.get("C_source")
            loaded.card = replace(
                loaded.card, C=float(C), C_source=source if isinstance(source, str) else "card.json"
            )
        return loaded
