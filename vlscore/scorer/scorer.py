"""Studies in, scores out."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vlscore.embedding import EmbeddingEngine, ImageDecoder, PendingPixels
from vlscore.encoders import JointEncoder, Precision, load_encoder
from vlscore.errors import (
    DemonstrationEncoderWarning,
    InvalidSetting,
    InvalidStudy,
    VLScoreError,
)
from vlscore.images import ImagePolicy
from vlscore.reports import TextPolicy, select
from vlscore.scorer.result import Score, ScoreTable
from vlscore.scorer.signature import Signature
from vlscore.scorer.views import check_view_policy, choose_views
from vlscore.similarity import find_similarity, foot, sides, triangle_area


@dataclass
class Item:
    """One study on its way to a score; images may be decoding already."""

    images: Sequence[Any]
    candidate: str
    reference: str
    views: Sequence[str | None] | None = None
    frontal: list[PendingPixels] = field(default_factory=list)
    lateral: list[PendingPixels] = field(default_factory=list)
    error: VLScoreError | None = None


class Scorer:
    """Scores candidates against image and reference; keeps the encoder between calls.

    Args:
        encoder: name, or a loaded JointEncoder; default: VLSCORE_ENCODER, else the bundled
            demonstration encoder, which warns.
        similarity: "vlscore" (Eq. 2), or an ablation: "cosine", "image_centred_cosine",
            "bounding_sphere", "clipscore", "refclipscore".
        C: constant of Eq. 2; default: the encoder's published one.
        device: "cpu", "cuda", ...; default: a GPU where there is one.
        precision: "fp32" or "bf16".
        batch_size: images per forward pass.
        image_policy, text_policy: what of files and reports is scored; see ImagePolicy, TextPolicy.
        views: "first-frontal", "mean" or "frontal+lateral".
        weights, tokenizer: as in `load_encoder`.

    Raises:
        UnknownName, InvalidSetting: a name or value that cannot be honoured.
        WeightsNotFound and others of `load_encoder`.
    """

    def __init__(
        self,
        encoder: str | JointEncoder | None = None,
        *,
        similarity: str = "vlscore",
        C: float | None = None,
        device: str | None = None,
        precision: Precision = "fp32",
        batch_size: int = 16,
        image_policy: ImagePolicy | str | None = None,
        text_policy: TextPolicy | str | None = None,
        views: str = "first-frontal",
        weights: str | None = None,
        tokenizer: str | None = None,
    ) -> None:
        self.similarity = find_similarity(similarity)
        self.text_policy = TextPolicy.named(text_policy)
        if precision not in ("fp32", "bf16"):
            raise InvalidSetting(f'precision is "fp32" or "bf16", not {precision!r}')
        self.encoder = _ready(encoder, device, image_policy, weights, tokenizer)
        self.views = check_view_policy(views, self.encoder)
        self.C = _constant(self.encoder, C) if self.similarity.uses_C else None
        self.engine = EmbeddingEngine(self.encoder, batch_size=batch_size, precision=precision)
        if self.encoder.card.demonstration:
            _warn_of_demonstration(self.encoder.card.name)

    @property
    def signature(self) -> Signature:
        return Signature(
            encoder=self.encoder.card.name,
            checksum=self.encoder.checksum,
            C=self.C,
            similarity=self.similarity.name,
            images=self.encoder.image_policy.signature(),
            views=self.views,
            text=self.text_policy.signature(),
            precision=self.engine.precision,
            demonstration=self.encoder.card.demonstration,
        )

    def score(
        self,
        image: Any,
        candidate: str | Sequence[str],
        reference: str | Sequence[str],
        *,
        on_error: Literal["raise", "keep"] = "raise",
    ) -> Any:
        """Score one study, or a list of them.

        Args:
            image: path, PIL image, array, tensor or Radiograph; a tuple of them is one study of
                several views; a list is a batch.
            candidate: generated report, or a list of them.
            reference: reference report, or a list of them.
            on_error: in a batch, "raise" the first error, or "keep" going: the table then lists
                the failures and holds nan in their place.

        Returns: a Score for a single study, a ScoreTable where any argument is a list. A single
            value beside lists holds for every entry.
        Raises: UnreadableImage, InvalidReport, InvalidStudy.
        """
        given = (image, candidate, reference)
        if not any(isinstance(value, list) for value in given):
            table = self.score_items([_item(*given)])
            for error in table.failures.values():
                raise error
            return table[0]
        table = self.score_items([_item(*row) for row in _rows(*given)])
        if on_error == "raise":
            for position, error in table.failures.items():
                raise type(error)(f"study {position}: {error}") from error
        return table

    def begin_decoding(self, item: Item, decoder: ImageDecoder) -> Item:
        """Choose the item's views and hand them to the decoder; errors stay with the item."""
        try:
            frontal, lateral = choose_views(item.images, item.views, self.views)
        except VLScoreError as error:
            item.error = error
            return item
        item.frontal = [decoder.submit(image) for image in frontal]
        item.lateral = [decoder.submit(image) for image in lateral]
        return item

    def score_items(self, items: Sequence[Item]) -> ScoreTable:
        """Score a batch; failures are listed in the table, never raised."""
        embedded = self.embed_items(items)
        return self._table(embedded)

    def embed_items(self, items: Sequence[Item]) -> "EmbeddedItems":
        """Embed a batch: images, candidates and references."""
        failures = self._begin_all(items)
        candidates, candidate_cut = self._embed_texts([item.candidate for item in items], failures)
        references, reference_cut = self._embed_texts([item.reference for item in items], failures)
        images = self._embed_images(items, failures)
        return EmbeddedItems(images, candidates, references, candidate_cut, reference_cut, failures)

    def embed_images(self, items: Sequence[Item]) -> tuple[Tensor, dict[int, VLScoreError]]:
        """Embed the images of a batch; its texts are not looked at.

        Returns: (n, d) float32, and position -> why that row means nothing.
        """
        failures = self._begin_all(items)
        return self._embed_images(items, failures), failures

    def embed_references(
        self, items: Sequence[Item]
    ) -> tuple[Tensor, Tensor, dict[int, VLScoreError]]:
        """Embed the images and references of a batch; its candidates are not looked at.

        Returns: images and references (n, d) float32, and position -> why that row means nothing.
        """
        failures = self._begin_all(items)
        references, _ = self._embed_texts([item.reference for item in items], failures)
        return self._embed_images(items, failures), references, failures

    def embed_texts(self, texts: Sequence[str]) -> tuple[Tensor, Tensor, dict[int, VLScoreError]]:
        """Embed what the text policy takes of reports.

        Returns: (n, d) float32; (n,) bool, whether the encoder read not all of it; and position ->
            why that row means nothing.
        """
        failures: dict[int, VLScoreError] = {}
        return *self._embed_texts(texts, failures), failures

    def _begin_all(self, items: Sequence[Item]) -> dict[int, VLScoreError]:
        here = ImageDecoder(self.encoder.image_pipeline, self.encoder.image_policy)
        for item in items:
            if not item.frontal and item.error is None:
                self.begin_decoding(item, here)
        return {k: item.error for k, item in enumerate(items) if item.error is not None}

    def _embed_texts(
        self, texts: Sequence[str], failures: dict[int, VLScoreError]
    ) -> tuple[Tensor, Tensor]:
        chosen: dict[int, str] = {}
        for position, text in enumerate(texts):
            if position in failures:
                continue
            try:
                chosen[position] = select(text, self.text_policy)
            except VLScoreError as error:
                failures[position] = error
        embedded = self.engine.embed_reports(list(chosen.values()))
        rows = list(chosen)
        failures.update({rows[k]: error for k, error in embedded.failures.items()})
        vectors = torch.full((len(texts), self.encoder.card.dim), torch.nan)
        truncated = torch.zeros(len(texts), dtype=torch.bool)
        vectors[rows], truncated[rows] = embedded.vectors, embedded.truncated
        return vectors, truncated

    def _embed_images(self, items: Sequence[Item], failures: dict[int, VLScoreError]) -> Tensor:
        """One vector a study: the mean over its chosen views.

        Under "frontal+lateral" a missing lateral counts as a zero vector, as LIMITR's code does.
        """
        total = torch.zeros(len(items), self.encoder.card.dim)
        for lateral in (False, True):
            owners = [
                (position, pending)
                for position, item in enumerate(items)
                if position not in failures
                for pending in (item.lateral if lateral else item.frontal)
            ]
            if not owners:
                continue
            embedded = self.engine.embed_pending(
                [pending for _, pending in owners], lateral=lateral
            )
            for k, error in embedded.failures.items():
                failures.setdefault(owners[k][0], error)
            positions = torch.tensor([position for position, _ in owners])
            total.index_add_(0, positions, embedded.vectors)
        if self.views == "frontal+lateral":
            return total / 2
        counts = torch.tensor([max(len(item.frontal), 1) for item in items])
        return total / counts[:, None]

    def _table(self, embedded: "EmbeddedItems") -> ScoreTable:
        i, g, r = embedded.images, embedded.candidates, embedded.references
        image_candidate, image_reference, candidate_reference = sides(i, g, r)
        tensors = {
            "score": self.similarity.compute(i, g, r, self.C or 1.0),
            "area": triangle_area(i, g, r),
            "image_candidate": image_candidate,
            "image_reference": image_reference,
            "candidate_reference": candidate_reference,
            "foot": foot(i, g, r),
            "candidate_truncated": embedded.candidate_truncated,
            "reference_truncated": embedded.reference_truncated,
        }
        columns = {name: np.array(values.numpy()) for name, values in tensors.items()}
        failures = dict(embedded.failures)
        for position in np.flatnonzero(np.isnan(columns["score"])).tolist():
            failures.setdefault(
                position,
                VLScoreError(f"{self.encoder.card.name} returned an embedding that is not finite"),
            )
        for position in failures:
            for name, values in columns.items():
                values[position] = False if name.endswith("truncated") else np.nan
        return ScoreTable(columns, self.signature, dict(sorted(failures.items())))


@dataclass(frozen=True)
class EmbeddedItems:
    """Embeddings of n studies, (n, d) float32 each; failed studies hold nan."""

    images: Tensor
    candidates: Tensor
    references: Tensor
    candidate_truncated: Tensor
    reference_truncated: Tensor
    failures: dict[int, VLScoreError]


def _item(image: Any, candidate: Any, reference: Any) -> Item:
    return Item(image if isinstance(image, tuple) else (image,), candidate, reference)


def _rows(*given: Any) -> list[tuple[Any, ...]]:
    lengths = {len(value) for value in given if isinstance(value, list)}
    if len(lengths) > 1:
        shown = ", ".join(
            f"{name} {len(value) if isinstance(value, list) else 'single'}"
            for name, value in zip(("images", "candidates", "references"), given, strict=True)
        )
        raise InvalidStudy(f"lists must be of one length; these are {shown}")
    (count,) = lengths
    columns = [value if isinstance(value, list) else [value] * count for value in given]
    return list(zip(*columns, strict=True))


def _ready(
    encoder: str | JointEncoder | None,
    device: str | None,
    image_policy: ImagePolicy | str | None,
    weights: str | None,
    tokenizer: str | None,
) -> JointEncoder:
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if isinstance(encoder, JointEncoder):
        if image_policy is not None:
            encoder.image_policy = ImagePolicy.named(image_policy)
        return encoder.to(device)
    return load_encoder(
        encoder, weights=weights, tokenizer=tokenizer, device=device, image_policy=image_policy
    )


def _constant(encoder: JointEncoder, C: float | None) -> float:
    constant = encoder.card.C if C is None else C
    if constant is None:
        raise InvalidSetting(
            f"nobody published C for {encoder.card.name} ({encoder.card.C_source}); give C=..., "
            'or choose a similarity without it, such as "image_centred_cosine"'
        )
    if not constant > 0:
        raise InvalidSetting(f"C must be a positive number, not {constant}")
    return constant


@cache
def _warn_of_demonstration(name: str) -> None:
    warnings.warn(
        f'the bundled encoder "{name}" was trained on synthetic phantoms, for demonstration and '
        "tests: its scores of real radiographs mean nothing. Name a real encoder with encoder=... "
        "or VLSCORE_ENCODER (`vlscore encoders` lists them)",
        DemonstrationEncoderWarning,
        stacklevel=4,
    )


@cache
def _shared_scorer(**options: Any) -> Scorer:
    return Scorer(**options)


def score(
    image: Any, gen: str | Sequence[str], ref: str | Sequence[str], **options: Any
) -> Score | ScoreTable:
    """Score generated reports against image and reference.

    Args:
        image: path (DICOM, PNG, JPEG, TIFF), PIL image, array or tensor; a tuple of them is one
            study of several views; a list is a batch.
        gen: candidate report, or a list.
        ref: reference report, or a list.
        options: as in `Scorer` (encoder, similarity, device, precision, ...). The encoder stays
            loaded for the next call with the same options.

    Returns: a Score, or a ScoreTable where any argument is a list.
    Raises: UnreadableImage, InvalidReport, InvalidStudy and those of `Scorer`.
    """
    return _shared_scorer(**options).score(image, gen, ref)
