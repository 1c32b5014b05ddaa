"""Embed studies: choice of the views of a study, reading of its images, and the encoder.

All code that needs embeddings of studies (scores, benchmarks, indexes, oracles) uses
`StudyEmbedder`. `choose_views` selects the images of a study that are combined into one embedding.
"""

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vlscore.core import Cache, Signature, confirm, open_cache, warn_caller
from vlscore.data import ImagePolicy, is_lateral, projection, stored_view
from vlscore.embedding.cached import black_radiograph
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.engine import EmbeddingEngine
from vlscore.encoders import (
    ImagePipeline,
    JointEncoder,
    Precision,
    check_alone,
    check_device,
    check_precision,
    check_ready,
    load_encoder,
    why_slow,
)
from vlscore.errors import (
    DemonstrationEncoderWarning,
    InvalidSetting,
    InvalidStudy,
    SlowPrecisionWarning,
    VLScoreError,
)

VIEW_POLICIES = ("first-frontal", "mean", "frontal+lateral")


@dataclass(frozen=True)
class ChosenViews:
    """The images of one study that are embedded.

    Attributes:
        frontal, lateral: images.
        guessed: True if the frontal image was one of several and its view is unknown.
    """

    frontal: list[Any]
    lateral: list[Any]
    guessed: bool = False


def check_view_policy(policy: str, encoder: JointEncoder) -> str:
    """Return the policy. Raises: InvalidSetting if it is unknown or impossible with the encoder."""
    if policy not in VIEW_POLICIES:
        raise InvalidSetting(f"views is one of {', '.join(VIEW_POLICIES)}, not {policy!r}")
    if policy == "frontal+lateral" and not encoder.has_lateral_tower:
        raise InvalidSetting(
            f"{encoder.card.name} has no tower for lateral views; "
            'use views="first-frontal" or views="mean"'
        )
    return policy


def choose_views(
    images: Sequence[Any], views: Sequence[str | None] | None, policy: str
) -> ChosenViews:
    """Choose the images of one study to embed.

    Args:
        images: at least one.
        views: view positions, if known; None reads DICOM headers. Unknown counts as frontal.
        policy: "first-frontal": the first frontal image. "mean": all images, as frontal ones.
            "frontal+lateral": the first of each; the lateral may be missing.

    Raises: InvalidStudy if no image is left, or `views` are not as many as the images.
    """
    if not images:
        raise InvalidStudy("the study has no image")
    if views is not None and len(views) != len(images):
        raise InvalidStudy(f"the study has {len(images)} images and {len(views)} views")
    if policy == "mean":
        return ChosenViews(list(images), [])
    given = list(views) if views is not None else [None] * len(images)
    known = [view or stored_view(image) for view, image in zip(given, images, strict=True)]
    pairs = list(zip(images, known, strict=True))
    frontal = [(image, view) for image, view in pairs if not is_lateral(view)]
    lateral = [image for image, view in pairs if is_lateral(view)]
    if not frontal:
        one = len(images) == 1
        raise InvalidStudy(
            f"{'its image is a lateral view' if one else f'all {len(images)} are lateral views'}; "
            'give a frontal one, or choose views="mean" (--views mean)'
        )
    # A frontal image with a known view comes before one with an unknown view.
    stated = [image for image, view in frontal if projection(view) != "unknown"]
    chosen = stated[0] if stated else frontal[0][0]
    return ChosenViews(
        [chosen],
        lateral[:1] if policy == "frontal+lateral" else [],
        guessed=len(frontal) > 1 and not stated,
    )


@dataclass(eq=False)
class StudyViews:
    """The images of one study on their way to an embedding; some may be decoding already.

    Attributes:
        images: paths, arrays, ... of the study.
        views: view position of each image, if known.
        frontal, lateral: the chosen images, once decoding has begun.
        guessed: True if the view of the image that is used as frontal is unknown.
        error: why the study has no embedding.
    """

    images: Sequence[Any]
    views: Sequence[str | None] | None = None
    frontal: list[PendingPixels] = field(default_factory=list)
    lateral: list[PendingPixels] = field(default_factory=list)
    guessed: bool = False
    error: VLScoreError | None = None


@dataclass(frozen=True, eq=False)
class EmbeddedRows:
    """Embeddings of n studies' images, or of n texts; failed rows hold nan.

    Attributes:
        vectors: (n, d) float32, on the CPU.
        failures: row -> why it has no embedding.
        truncated: (n,) bool: the encoder did not read the text's tail; False for images.
    """

    vectors: Tensor
    failures: dict[int, VLScoreError]
    truncated: Tensor

    def rows(self, start: int, stop: int) -> "EmbeddedRows":
        """Return some of the rows, numbered from 0 again."""
        failures = {k - start: e for k, e in self.failures.items() if start <= k < stop}
        return EmbeddedRows(self.vectors[start:stop], failures, self.truncated[start:stop])


class StudyEmbedder:
    """Embedder of the images and reports of studies with one encoder and one set of policies.

    The encoder is shared and never changed: two embedders with other policies may use the same one.

    Args:
        encoder: name, or a loaded JointEncoder; default: VLSCORE_ENCODER, else the bundled
            demonstration encoder, which warns.
        device: "cpu", "cuda", ...; default: a GPU if there is one, or a loaded encoder's device.
        precision: "fp32"; "bf16"; on a GPU also "fp16".
        batch_size: images per forward pass, at least 1; default: 16 on a CPU, on a GPU as its
            memory allows.
        image_policy: how image files are read; see ImagePolicy.
        views: "first-frontal", "mean" or "frontal+lateral".
        weights, tokenizer: as in `load_encoder`; only for an encoder given by name.
        cache: True: pixels and embeddings are stored in the user's cache (docs/caching.md), unless
            VLSCORE_CACHE=off; False: nothing is stored; or another folder.
        compile: run the encoder's towers under torch.compile, if that is possible.

    Raises:
        UnknownName, InvalidSetting: a name or value that cannot be used.
        BrokenContract: a loaded encoder is in training mode.
        WeightsNotFound and others of `load_encoder`.
    """

    def __init__(
        self,
        encoder: str | JointEncoder | None = None,
        *,
        device: str | None = None,
        precision: Precision = "fp32",
        batch_size: int | None = None,
        image_policy: ImagePolicy | str | None = None,
        views: str = "first-frontal",
        weights: str | None = None,
        tokenizer: str | None = None,
        cache: Cache | bool | str | os.PathLike[str] = True,
        compile: bool = False,
    ) -> None:
        check_precision(precision)
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise InvalidSetting(f"batch_size is a number from 1 on, not {batch_size!r}")
        policy = ImagePolicy.named(image_policy) if image_policy is not None else None
        self.encoder = _ready(encoder, device, weights, tokenizer)
        check_precision(precision, self.encoder.device)
        if (reason := why_slow(precision, self.encoder.device)) is not None:
            warn_caller(reason, SlowPrecisionWarning)
        self.image_policy = _check_policy(policy or self.encoder.image_policy, self.encoder)
        self.views = check_view_policy(views, self.encoder)
        self.engine = EmbeddingEngine(
            self.encoder,
            batch_size=batch_size,
            precision=precision,
            image_policy=self.image_policy,
            cache=open_cache(cache),
            compile=compile,
        )
        if self.encoder.card.demonstration:
            _warn_of_demonstration(self.encoder.card.name)

    def like_this(
        self, *, precision: Precision | None = None, cache: Cache | bool
    ) -> "StudyEmbedder":
        """Return an embedder with the same encoder and policies; default: the same precision."""
        return StudyEmbedder(
            self.encoder,
            precision=precision or self.engine.precision,
            batch_size=self.engine.batch_size,
            image_policy=self.image_policy,
            views=self.views,
            cache=cache,
            compile=self.engine.is_compiled,
        )

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.encoder.card.dim

    @property
    def C(self) -> float | None:
        """The encoder's published constant of VLScore; None if none was published."""
        return self.encoder.card.C

    @property
    def signature(self) -> Signature:
        """Signature: all that the embeddings depend on."""
        signature = Signature("embeddings").plus(
            enc=f"{self.encoder.card.name}@{self.encoder.checksum[:12]}",
            img=self.image_policy.signature(),
            views=self.views,
            prec=self.engine.precision,
        )
        flags = {
            "COMPILED": self.engine.is_compiled,
            "DEMONSTRATION-ENCODER": self.encoder.card.demonstration,
        }
        return signature.flagged(*(flag for flag, is_stated in flags.items() if is_stated))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user of image embeddings, one sentence each; see `view_notes`."""
        return view_notes(self.encoder, self.views)

    def decoder(self, workers: int = 0) -> ImageDecoder:
        """Return a decoder of images for this embedder, with `workers` processes."""
        return self.engine.decoder(workers)

    def begin(self, study: StudyViews, decoder: ImageDecoder) -> StudyViews:
        """Choose the views and begin to decode them; an error is stored in the study."""
        try:
            chosen = choose_views(study.images, study.views, self.views)
        except VLScoreError as error:
            study.error = error
            return study
        study.guessed = chosen.guessed
        begin = self.engine.begin
        study.frontal = [begin(image, decoder) for image in chosen.frontal]
        study.lateral = [begin(image, decoder, lateral=True) for image in chosen.lateral]
        return study

    def embed_studies(self, studies: Sequence[StudyViews]) -> EmbeddedRows:
        """Embed the images of each study to one vector; failures are listed and not raised.

        Several views are averaged. Under "frontal+lateral" a missing lateral view counts as a zero
        vector, as LIMITR's code does.
        """
        here = self.decoder()
        for study in studies:
            if not study.frontal and study.error is None:
                self.begin(study, here)
        failures = {row: study.error for row, study in enumerate(studies) if study.error}
        total = torch.zeros(len(studies), self.dim)
        for lateral in (False, True):
            owners = [
                (row, pending)
                for row, study in enumerate(studies)
                if row not in failures
                for pending in (study.lateral if lateral else study.frontal)
            ]
            if not owners:
                continue
            embedded = self.engine.embed_pending(
                [pending for _, pending in owners], lateral=lateral
            )
            for k, error in embedded.failures.items():
                failures.setdefault(owners[k][0], error)
            total.index_add_(0, torch.tensor([row for row, _ in owners]), embedded.vectors)
        if self.views == "frontal+lateral":
            vectors = total / 2
        else:
            counts = torch.tensor([max(len(study.frontal), 1) for study in studies])
            vectors = total / counts[:, None]
        return _finite(vectors, failures, torch.zeros(len(studies), dtype=torch.bool), self)

    def embed_texts(self, texts: Sequence[str]) -> EmbeddedRows:
        """Embed each whole text to one vector; equal texts are embedded once."""
        embedded = self.engine.embed_reports(texts)
        return _finite(embedded.vectors, embedded.failures, embedded.truncated, self)

    def embed_black(self) -> Tensor:
        """Embed a black image (d,), which readers of files refuse for a study."""
        # The authors' readers accept only files.
        pixels = self.encoder.image_pipeline.load_stored(black_radiograph(), ImagePolicy())
        black = [PendingPixels("black image", lambda: pixels)]
        lateral = black if self.views == "frontal+lateral" else []
        study = StudyViews(images=("black image",), frontal=black, lateral=lateral)
        return self.embed_studies([study]).vectors[0]


def _finite(
    vectors: Tensor, failures: dict[int, VLScoreError], truncated: Tensor, embedder: StudyEmbedder
) -> EmbeddedRows:
    """Turn rows that are not finite into failures, and set failures to nan."""
    for row in torch.nonzero(~vectors.isfinite().all(1)).flatten().tolist():
        failures.setdefault(
            row,
            VLScoreError(f"{embedder.encoder.card.name} returned an embedding that is not finite"),
        )
    rows = sorted(failures)
    vectors[rows] = torch.nan
    truncated[rows] = False
    return EmbeddedRows(vectors, {row: failures[row] for row in rows}, truncated)


def _ready(
    encoder: str | JointEncoder | None,
    device: str | None,
    weights: str | None,
    tokenizer: str | None,
) -> JointEncoder:
    if isinstance(encoder, JointEncoder):
        check_alone(weights=weights, tokenizer=tokenizer)
        check_ready(encoder)
        return encoder if device is None else _lying_on(check_device(device), encoder)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return load_encoder(encoder, weights=weights, tokenizer=tokenizer, device=device)


def _lying_on(device: torch.device, encoder: JointEncoder) -> JointEncoder:
    """Return the encoder if it is on the device, else a copy there: others may use the original."""
    if encoder.device.type == device.type and device.index in (None, encoder.device.index):
        return encoder
    # The copy has no running checks, so wait for those of the original.
    confirm(encoder)
    return copy.deepcopy(encoder).to(device)


def _check_policy(policy: ImagePolicy, encoder: JointEncoder) -> ImagePolicy:
    """Return the policy, or raise now if this encoder cannot read images with it."""
    pipeline = type(encoder.image_pipeline)
    if policy.as_authors and pipeline.as_authors is ImagePipeline.as_authors:
        raise InvalidSetting(
            f"{encoder.card.name} has no reader of its authors' here, which the image policy "
            '"authors" asks for; use the default policy'
        )
    return policy


@cache
def _warn_of_demonstration(name: str) -> None:
    warn_caller(
        f'the bundled encoder "{name}" was trained on synthetic phantoms, for demonstration and '
        "tests: its scores of real radiographs mean nothing. Name a real encoder with encoder=... "
        "or VLSCORE_ENCODER (`vlscore encoders` lists them)",
        DemonstrationEncoderWarning,
    )


def view_notes(encoder: JointEncoder, views: str) -> tuple[str, ...]:
    """Return a note if an encoder reads lateral views, but the view policy uses none; else nothing.

    Args: views: "first-frontal", "mean" or "frontal+lateral".
    """
    if views == "frontal+lateral" or not encoder.has_lateral_tower:
        return ()
    return (
        f"{encoder.card.name} has a tower for lateral views, which views={views} does not use; "
        'views="frontal+lateral" (--views frontal+lateral) embeds both views of a study',
    )


def constant_notes(embedder: StudyEmbedder) -> tuple[str, ...]:
    """Return a note if C was measured with other views of the studies; else nothing."""
    card = embedder.encoder.card
    if card.C_views in (None, embedder.views):
        return ()
    return (
        f"C = {embedder.C:g} of {card.name} was measured with views={card.C_views}, and areas with "
        f"views={embedder.views} have another size: use views={card.C_views} (--views "
        f"{card.C_views}), or measure C again with `vlscore calibrate --views {embedder.views}`",
    )


def training_notes(embedder: StudyEmbedder, table_sha256: str) -> tuple[str, ...]:
    """Return a note if a table is the one that the encoder was trained on; else nothing."""
    if embedder.encoder.card.trained_on != table_sha256:
        return ()
    return (
        "the encoder was trained on this very table: its images and references are training pairs, "
        "so that these numbers say nothing of new studies; take a table that it has not seen",
    )
