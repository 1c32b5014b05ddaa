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
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from vlscore.core import Cache, Signature, __version__, libraries, open_cache, warn_caller
from vlscore.data import (
    READING_RULES,
    ImagePolicy,
    Provenance,
    Radiograph,
    Study,
    StudyTable,
    stored_view,
)
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.encoder_source import EncoderSource, named_encoder
from vlscore.embedding.engine import EmbeddedRows, EmbeddingEngine, Tower, digest_of
from vlscore.embedding.views import WITH_PRIOR, check_view_policy, choose_views, view_notes
from vlscore.encoders import (
    ImagePipeline,
    JointEncoder,
    Precision,
    check_alone,
    check_device,
    check_precision,
    check_ready,
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

    @classmethod
    def of(cls, study: Study) -> Self:
        """Return the images of a study of a table, none of them decoded."""
        return cls(study.images, study.views, study.prior)


class StudyEmbedder(EmbeddingEngine):
    """Embedder of the images and reports of studies: an engine that chooses views.

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

    Attributes:
        C: the encoder's published constant of VLScore; None if none was published.

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
            raise InvalidSetting(f"batch_size must be at least 1, not {batch_size!r}")
        policy = ImagePolicy.named(image_policy) if image_policy is not None else None
        kept = open_cache(cache)
        source = _source_of(encoder, device, weights, tokenizer, kept)
        check_precision(precision, source.device)
        if (reason := why_slow(precision, source.device)) is not None:
            warn_caller(reason, SlowPrecisionWarning)
        super().__init__(
            source,
            batch_size=batch_size,
            precision=precision,
            image_policy=_check_policy(policy or source.known.image_policy, source.known),
            cache=kept,
        )
        self.views = check_view_policy(views, source.known)
        self.C = self.card.C
        if self.card.demonstration:
            _warn_of_demonstration(self.card.name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user of image embeddings, one sentence each; see `view_notes`."""
        return view_notes(self._source.known, self.views)

    @cached_property
    def signature(self) -> Signature:
        """Signature: all that the embeddings depend on."""
        signature = Signature("embeddings").plus(
            enc=f"{self.card.name}@{self.checksum[:12]}",
            img=self.image_policy.signature(),
            views=self.views,
            prec=self.precision,
        )
        flags = ("DEMONSTRATION-ENCODER",) if self.card.demonstration else ()
        return signature.flagged(*flags)

    def for_table(self, table: StudyTable) -> "StudyEmbedder":
        """Return the embedder for the studies of a table: with their earlier images, if it can.

        That is where the table has the column "prior", the encoder takes one, and the views are
        "first-frontal"; the signature then has views:first-frontal+prior.
        """
        is_plain = self.views == "first-frontal"
        if not (is_plain and self._source.known.takes_prior and table.has_priors):
            return self
        other = copy.copy(self)
        vars(other).pop("signature", None)
        other.views = WITH_PRIOR
        return other

    def training_notes(self, table: StudyTable) -> tuple[str, ...]:
        """Return a note if a table is the one that the encoder was trained on; else nothing."""
        if self.card.trained_on != table.sha256:
            return ()
        return (
            "the encoder was trained on this very table: its images and references are training "
            "pairs, so that these numbers say nothing of new studies; take a table that it has not "
            "seen",
        )

    def begin(self, study: StudyViews, decoder: ImageDecoder | None = None) -> StudyViews:
        """Choose the views and begin to decode them; an error is stored in the study.

        Args: decoder: as `decoder` returns it; None decodes in this process when pixels are needed.
        """
        if study.vector is not None:
            return study
        try:
            chosen = choose_views(study.images, study.views, self.views, self._view_of)
        except VLScoreError as error:
            study.error = error
            return study
        study.guessed = chosen.guessed
        if self.views == WITH_PRIOR and study.prior is not None:
            pair = (chosen.frontal[0], study.prior)
            study.frontal = [self.pending(pair, decoder, "images with prior")]
        else:
            study.frontal = [self.pending(image, decoder) for image in chosen.frontal]
        study.lateral = [self.pending(each, decoder, "lateral images") for each in chosen.lateral]
        return study

    def embed_studies(self, studies: Sequence[StudyViews]) -> EmbeddedRows:
        """Embed the images of each study to one vector; failures are listed and not raised.

        Several views are averaged. Under "frontal+lateral" a missing lateral view counts as a zero
        vector, as LIMITR's code does.
        """
        failures: dict[int, VLScoreError] = {}
        shown: dict[Tower, list[tuple[int, PendingPixels]]] = defaultdict(list)
        for row, study in enumerate(studies):
            if not study.frontal and study.error is None:
                self.begin(study)
            if study.error is not None:
                failures[row] = study.error
                continue
            with_prior = self.views == WITH_PRIOR and study.prior is not None
            tower: Tower = "images with prior" if with_prior else "images"
            shown[tower] += [(row, image) for image in study.frontal]
            shown["lateral images"] += [(row, image) for image in study.lateral]
        vectors = torch.zeros(len(studies), self.dim)
        for tower, pending in shown.items():
            if not pending:
                continue
            embedded = self.embed_pending([image for _, image in pending], tower)
            for k, (row, _) in enumerate(pending):
                vectors[row] += embedded.vectors[k]
                if k in embedded.failures:
                    failures.setdefault(row, embedded.failures[k])
        for row, study in enumerate(studies):
            vectors[row] /= 2 if self.views == "frontal+lateral" else max(len(study.frontal), 1)
            if study.vector is not None:
                vectors[row] = study.vector
            # Pixels are no longer needed.
            study.frontal, study.lateral = [], []
        return self._checked(vectors, failures)

    def embed_black(self) -> Tensor:
        """Embed a black image (d,), which readers of files refuse for a study."""
        pixels = np.zeros((_BLACK_SIDE, _BLACK_SIDE), dtype=np.float32)
        provenance = Provenance(format="array", bits=32, window="as given")
        image = Radiograph(pixels, provenance, "black image")
        # The authors' readers accept only files.
        stored = self._source.known.image_pipeline.load_stored(image, ImagePolicy())
        black = [PendingPixels("black image", lambda: stored)]
        lateral = black if self.views == "frontal+lateral" else []
        study = StudyViews(images=("black image",), frontal=black, lateral=lateral)
        return self.embed_studies([study]).vectors[0]

    def _view_of(self, image: Any) -> str | None:
        """Return the view position in an image's DICOM header; None if it is unknown."""
        digest = digest_of(image)
        if self.cache is None or digest is None:
            return stored_view(image)
        names = self._namespaces.get(("views", ""))
        if names is None:
            facts = {
                "holds": "views in headers",
                "vlscore": __version__,
                "reading_rules": READING_RULES,
                **libraries(),
            }
            names = self._namespaces["views", ""] = self.cache.namespace(facts)
        known = names.get([digest]) or names.put({digest: stored_view(image)})
        view: str | None = known[digest]
        return view


def _source_of(
    encoder: str | JointEncoder | None,
    device: str | None,
    weights: str | None,
    tokenizer: str | None,
    cache: Cache | None,
) -> EncoderSource:
    if isinstance(encoder, JointEncoder):
        check_alone(weights=weights, tokenizer=tokenizer)
        check_ready(encoder)
        if device is not None:
            encoder = _lying_on(check_device(device), encoder)
        return EncoderSource(encoder)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return named_encoder(encoder, weights=weights, tokenizer=tokenizer, device=device, cache=cache)


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
    card = embedder.card
    if card.C_views in (None, embedder.views):
        return ()
    return (
        f"C = {embedder.C:g} of {card.name} was measured with views={card.C_views}, and areas with "
        f"views={embedder.views} have another size: use views={card.C_views} (--views "
        f"{card.C_views}), or measure C again with `vlscore calibrate --views {embedder.views}`",
    )
