"""Embed the images and reports of studies.

All code that needs embeddings of studies (scores, benchmarks, indexes, oracles) uses
`StudyEmbedder`.
"""

import copy
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlscore.core import Cache, Signature, open_cache, warn_caller
from vlscore.data import ImagePolicy, Provenance, Radiograph, StudyTable
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.engine import EmbeddedRows, EmbeddingEngine, Tower
from vlscore.embedding.views import WITH_PRIOR, check_view_policy, choose_views, view_notes
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
    SlowPrecisionWarning,
    VLScoreError,
)

_BLACK_SIDE = 256


@dataclass(eq=False)
class StudyViews:
    """The images of one study on their way to an embedding; some may be decoding already.

    Attributes:
        images: paths, arrays, ... of the study.
        views: view position of each image, if known.
        prior: the patient's earlier frontal image; used by the views "first-frontal+prior" alone.
        frontal, lateral: the chosen images, once decoding has begun.
        guessed: True if the view of the image that is used as frontal is unknown.
        error: why the study has no embedding.
        vector: (d,) embedding that is known, of whatever image; `images` may then be empty.
    """

    images: Sequence[Any]
    views: Sequence[str | None] | None = None
    prior: Any | None = None
    frontal: list[PendingPixels] = field(default_factory=list)
    lateral: list[PendingPixels] = field(default_factory=list)
    guessed: bool = False
    error: VLScoreError | None = None
    vector: Tensor | None = None


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
        views: "first-frontal", "mean", "frontal+lateral" or "first-frontal+prior".
        weights, tokenizer: as in `load_encoder`; only for an encoder given by name.
        cache: True: embeddings are stored in the user's cache (docs/caching.md), unless
            VLSCORE_CACHE=off; False: nothing is stored; or another folder.

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
        )
        if self.encoder.card.demonstration:
            _warn_of_demonstration(self.encoder.card.name)

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.encoder.card.dim

    @property
    def C(self) -> float | None:
        """The encoder's published constant of VLScore; None if none was published."""
        return self.encoder.card.C

    @cached_property
    def signature(self) -> Signature:
        """Signature: all that the embeddings depend on."""
        signature = Signature("embeddings").plus(
            enc=f"{self.encoder.card.name}@{self.encoder.checksum[:12]}",
            img=self.image_policy.signature(),
            views=self.views,
            prec=self.engine.precision,
        )
        flags = ("DEMONSTRATION-ENCODER",) if self.encoder.card.demonstration else ()
        return signature.flagged(*flags)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user of image embeddings, one sentence each; see `view_notes`."""
        return view_notes(self.encoder, self.views)

    def for_table(self, table: StudyTable) -> "StudyEmbedder":
        """Return the embedder for the studies of a table: with their earlier images, if it can.

        That is where the table has the column "prior", the encoder takes one, and the views are
        "first-frontal"; the signature then has views:first-frontal+prior.
        """
        is_plain = self.views == "first-frontal"
        if not (is_plain and self.encoder.takes_prior and table.has_priors):
            return self
        other = copy.copy(self)
        vars(other).pop("signature", None)
        other.views = WITH_PRIOR
        return other

    def decoder(self, workers: int = 0) -> ImageDecoder:
        """Return a decoder of images for this embedder, with `workers` processes."""
        return self.engine.decoder(workers)

    def begin(self, study: StudyViews, decoder: ImageDecoder | None = None) -> StudyViews:
        """Choose the views and begin to decode them; an error is stored in the study."""
        if study.vector is not None:
            return study
        try:
            chosen = choose_views(study.images, study.views, self.views, self.engine.view_of)
        except VLScoreError as error:
            study.error = error
            return study
        study.guessed = chosen.guessed
        begin = self.engine.begin
        if self._takes_prior(study):
            pair = (chosen.frontal[0], study.prior)
            study.frontal = [begin(pair, decoder, tower="images with prior")]
        else:
            study.frontal = [begin(image, decoder) for image in chosen.frontal]
        study.lateral = [begin(image, decoder, tower="lateral images") for image in chosen.lateral]
        return study

    def _takes_prior(self, study: StudyViews) -> bool:
        return self.views == WITH_PRIOR and study.prior is not None

    def embed_studies(self, studies: Sequence[StudyViews]) -> EmbeddedRows:
        """Embed the images of each study to one vector; failures are listed and not raised.

        Several views are averaged. Under "frontal+lateral" a missing lateral view counts as a zero
        vector, as LIMITR's code does.
        """
        for study in studies:
            if not study.frontal and study.error is None:
                self.begin(study)
        failures = {row: study.error for row, study in enumerate(studies) if study.error}
        usable = [row for row in range(len(studies)) if row not in failures]
        vectors = torch.zeros(len(studies), self.dim)
        shown: dict[Tower, list[tuple[int, PendingPixels]]] = defaultdict(list)
        for row in usable:
            with_prior = self._takes_prior(studies[row])
            tower: Tower = "images with prior" if with_prior else "images"
            shown[tower] += [(row, image) for image in studies[row].frontal]
            shown["lateral images"] += [(row, image) for image in studies[row].lateral]
        for tower, pending in shown.items():
            if not pending:
                continue
            embedded = self.engine.embed_pending([image for _, image in pending], tower=tower)
            for k, (row, _) in enumerate(pending):
                vectors[row] += embedded.vectors[k]
                if k in embedded.failures:
                    failures.setdefault(row, embedded.failures[k])
        for row, study in enumerate(studies):
            vectors[row] /= 2 if self.views == "frontal+lateral" else max(len(study.frontal), 1)
            if study.vector is not None:
                vectors[row] = study.vector
        truncated = torch.zeros(len(studies), dtype=torch.bool)
        return self._checked(EmbeddedRows(vectors, failures, truncated))

    def embed_texts(self, texts: Sequence[str]) -> EmbeddedRows:
        """Embed each whole text to one vector; equal texts are embedded once."""
        return self._checked(self.engine.embed_reports(texts))

    def embed_black(self) -> Tensor:
        """Embed a black image (d,), which readers of files refuse for a study."""
        pixels = np.zeros((_BLACK_SIDE, _BLACK_SIDE), dtype=np.float32)
        provenance = Provenance(format="array", bits=32, window="as given")
        image = Radiograph(pixels, provenance, "black image")
        # The authors' readers accept only files.
        stored = self.encoder.image_pipeline.load_stored(image, ImagePolicy())
        black = [PendingPixels("black image", lambda: stored)]
        lateral = black if self.views == "frontal+lateral" else []
        study = StudyViews(images=("black image",), frontal=black, lateral=lateral)
        return self.embed_studies([study]).vectors[0]

    def _checked(self, embedded: EmbeddedRows) -> EmbeddedRows:
        """Turn rows that are not finite into failures, and set failures to nan."""
        failures = dict(embedded.failures)
        for row in torch.nonzero(~embedded.vectors.isfinite().all(1)).flatten().tolist():
            text = f"{self.encoder.card.name} returned an embedding that is not finite"
            failures.setdefault(row, VLScoreError(text))
        rows = sorted(failures)
        embedded.vectors[rows] = torch.nan
        embedded.truncated[rows] = False
        ordered = {row: failures[row] for row in rows}
        return EmbeddedRows(embedded.vectors, ordered, embedded.truncated)


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
