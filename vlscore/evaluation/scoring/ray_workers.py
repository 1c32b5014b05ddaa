"""What the processes of a Ray cluster do for an evaluation: hash, decode, embed and score.

Tasks read files, on whichever machine has a processor free, with that machine's cache of pixels.
Actors hold an encoder each, and get all else that they need: pixels, and embeddings that are known.
All of them may be done again: they change nothing but the cache of pixels.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vlscore.core import CarriedCache, Entries, Entry, Space, open_cache
from vlscore.data import ImagePolicy, Study, StudyTable
from vlscore.embedding import (
    Contents,
    FileContent,
    ImageDecoder,
    KeptEmbeddings,
    PendingPixels,
    StudyEmbedder,
    StudyViews,
    Work,
    choose_views,
    kept_pixels,
    vector_of,
)
from vlscore.encoders import ImagePipeline
from vlscore.errors import VLScoreError
from vlscore.evaluation.scoring.executor import Row, computed
from vlscore.evaluation.scoring.parallel import facts_of, fitted, job_of, written_chunk
from vlscore.evaluation.scoring.results import layout_of
from vlscore.metrics import Item, Scorer

# A process of its own: a file that crashes its decoder must not take the task with it.
_DECODERS = 1
# Name -> count, as of `Work`.
Counts = dict[str, int]


@dataclass(frozen=True)
class Reading:
    """How files are read, in every task of a run.

    Attributes:
        run: tells this run from others that use the same processes.
        pipeline, policy, views: of the embedder.
        cache: the folder whose pixels are looked up and kept; None where nothing is kept.
    """

    run: str
    pipeline: ImagePipeline
    policy: ImagePolicy
    views: str
    cache: Path | None


@dataclass(frozen=True)
class File:
    """An image file, and the SHA-256 of what it holds; None where it cannot be read."""

    path: str
    digest: bytes | None


@dataclass(frozen=True)
class Chosen:
    """The files that count of a study; see `StudyViews`."""

    frontal: tuple[File, ...] = ()
    lateral: tuple[File, ...] = ()
    guessed: bool = False
    error: VLScoreError | None = None

    def of(self, *, lateral: bool) -> tuple[File, ...]:
        """The files of one tower."""
        return self.lateral if lateral else self.frontal

    @property
    def files(self) -> tuple[File, ...]:
        """All of them."""
        return (*self.frontal, *self.lateral)


@dataclass(frozen=True)
class Decoded:
    """What came of some files.

    Attributes:
        pixels: path -> what decoding ended with; of one file only, where several are equal.
        errors: path -> why it cannot be decoded.
        changed: paths of files that may have been replaced since they were hashed.
        counts: what was done.
    """

    pixels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    errors: Mapping[str, VLScoreError] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    counts: Counts = field(default_factory=dict)


@dataclass(frozen=True)
class Embedded:
    """What came of embedding a chunk.

    Attributes:
        new: embeddings that were not known, by space and content.
        errors: path -> why it cannot be decoded.
        counts: what was done, decoding included.
    """

    new: Entries
    errors: Mapping[str, VLScoreError]
    counts: Counts


@dataclass(frozen=True)
class Given:
    """What an actor gets to embed a chunk.

    Attributes:
        job: as `written_job` writes it.
        rows: the chunk.
        chosen: of every row; None of a row that has no study, or where no metric looks at images.
        known: embeddings, by space and content.
        errors: path -> why it cannot be decoded.
    """

    job: dict[str, Any]
    rows: Sequence[Row]
    chosen: Sequence[Chosen | None]
    known: Entries = field(default_factory=dict)
    errors: Mapping[str, VLScoreError] = field(default_factory=dict)


class _Files:
    """What reads files in this process, kept from task to task of one run."""

    def __init__(self, reading: Reading) -> None:
        self.run = reading.run
        self.work = Work()
        self.contents = Contents()
        cache = open_cache(reading.cache) if reading.cache is not None else None
        pipeline, policy = reading.pipeline, reading.policy
        pixels = kept_pixels(cache, pipeline, policy) if cache is not None else None
        self.decoder = ImageDecoder(pipeline, policy, _DECODERS, pixels=pixels, work=self.work)

    def close(self) -> None:
        self.decoder.__exit__()


_files: _Files | None = None


def close() -> None:
    """Let go of what reads files in this process."""
    global _files
    if _files is not None:
        _files.close()
    _files = None


def _files_of(reading: Reading) -> _Files:
    global _files
    if _files is None or _files.run != reading.run:
        close()
        _files = _Files(reading)
    return _files


def choose(rows: Sequence[Row], reading: Reading) -> list[Chosen | None]:
    """Choose the images that count of each row, and hash them."""
    contents = _files_of(reading).contents

    def hashed(images: Iterable[Any]) -> tuple[File, ...]:
        found = [(os.fsdecode(image), contents.of(image)) for image in images]
        return tuple(File(path, None if c is None else c.digest) for path, c in found)

    def chosen(study: Study) -> Chosen:
        try:
            views = choose_views(study.images, study.views, reading.views)
        except VLScoreError as error:
            return Chosen(error=plain_error(error))
        return Chosen(hashed(views.frontal), hashed(views.lateral), views.guessed)

    return [chosen(row) if isinstance(row, Study) else None for row in rows]


def decode(files: Sequence[File], reading: Reading) -> Decoded:
    """Decode files, those of equal content once."""
    here = _files_of(reading)
    before = here.work.to_dict()
    first: dict[bytes | str, File] = {}
    for file in files:
        first.setdefault(file.digest or file.path, file)
    # All are begun at once: this process and its worker share them.
    begun = {file.path: _begun(here, file) for file in first.values()}
    pixels: dict[str, NDArray[Any]] = {}
    errors: dict[str, VLScoreError] = {}
    changed: set[str] = set()
    have: set[bytes | None] = set()
    for file in dict.fromkeys(files):
        if file.digest is not None and file.digest in have:
            continue
        content, pending = begun.get(file.path) or _begun(here, file)
        try:
            pixels[file.path] = pending.stored().numpy()
        except VLScoreError as error:
            # Each file of the same content is tried, so that each error names its own.
            errors[file.path] = plain_error(error)
        else:
            if content is not None and content.is_unchanged():
                have.add(file.digest)
            else:
                changed.add(file.path)
    return Decoded(pixels, errors, frozenset(changed), here.work.since(before))


def _begun(here: _Files, file: File) -> tuple[FileContent | None, PendingPixels]:
    content = here.contents.of(file.path)
    if content is not None and content.digest != file.digest:
        content = None
    return content, here.decoder.submit(file.path, content)


def plain_error(error: VLScoreError) -> VLScoreError:
    """The same without what it holds on to, so that it can travel."""
    return type(error)(str(error))


class Embedding:
    """Embeds and scores chunks; one encoder each. An actor of Ray is made of it."""

    def __init__(self, table: StudyTable, recipe: Callable[[], Scorer]) -> None:
        # Made in the first call, whose errors come back as they are.
        self._table, self._recipe = table, recipe
        self._cache = CarriedCache()

    @cached_property
    def _scorer(self) -> Scorer:
        scorer = self._recipe()
        if (embedder := scorer.embedder) is not None:
            carrying = embedder.like_this(cache=self._cache)
            scorer = Scorer(carrying, metrics=scorer.metrics, text_policy=scorer.text_policy)
        return fitted(scorer, self._table)

    def facts(self) -> dict[str, Any]:
        """What this actor's scorer has in common with that of the run."""
        return facts_of(self._table, self._scorer)

    def spaces(self) -> dict[str, str | None]:
        """The facts under which embeddings are kept; None where they are not."""
        kept = self._kept()
        if kept is None:
            return {}
        found = {
            "reports": kept.reports(),
            "images": kept.images(lateral=False),
            "lateral images": kept.images(lateral=True),
        }
        return {name: None if space is None else space.facts for name, space in found.items()}

    def embed(self, given: Given, decoded: Decoded) -> Embedded:
        """The embeddings of a chunk that are not known."""
        scorer, items, before = self._begin(given, decoded)
        if scorer.embedder is not None:
            scorer.embedder.engine.forget()
        scorer.embed_items([item for item in items if item is not None])
        return Embedded(self._cache.carried.new, decoded.errors, self._since(before, decoded))

    def score(self, given: Given, decoded: Decoded) -> tuple[bytes, Counts]:
        """The chunk, as it is sent, and what was done."""
        scorer, items, before = self._begin(given, decoded)
        chunk = computed(
            list(zip(given.rows, items, strict=True)), scorer, layout_of(scorer).schema()
        )
        return written_chunk(chunk), self._since(before, decoded)

    def _kept(self) -> KeptEmbeddings | None:
        embedder = self._scorer.embedder
        if embedder is None:
            return None
        engine = embedder.engine
        return KeptEmbeddings(
            self._cache,
            embedder.encoder,
            embedder.image_policy,
            engine.precision,
            is_compiled=engine.is_compiled,
        )

    def _begin(self, given: Given, decoded: Decoded) -> tuple[Scorer, list[Item | None], Counts]:
        scorer = job_of(given.job).scorer(self._scorer)
        self._cache.carried.load(given.known)
        before = scorer.embedder.engine.work.to_dict() if scorer.embedder is not None else {}
        shown = _Shown(scorer.embedder, self._kept(), given, decoded)
        items = [
            Item(row.candidate or "", row.reference, shown.views(row, chosen), row.parts)
            if isinstance(row, Study)
            else None
            for row, chosen in zip(given.rows, given.chosen, strict=True)
        ]
        return scorer, items, before

    def _since(self, before: Counts, decoded: Decoded) -> Counts:
        embedder = self._scorer.embedder
        done = embedder.engine.work.since(before) if embedder is not None else {}
        return dict(Counter(done) + Counter(decoded.counts))


class _Shown:
    """The images of a chunk's studies as the engine takes them, decoded elsewhere or known."""

    def __init__(
        self,
        embedder: StudyEmbedder | None,
        kept: KeptEmbeddings | None,
        given: Given,
        decoded: Decoded,
    ) -> None:
        self._embedder, self._decoded = embedder, decoded
        self._errors = {**given.errors, **decoded.errors}
        self._spaces: dict[bool, Space | None] = {
            lateral: None if kept is None else kept.images(lateral=lateral)
            for lateral in (False, True)
        }
        # Pixels of one file serve all files of its content.
        self._of_content = {
            file.digest: decoded.pixels[file.path]
            for each in given.chosen
            if each is not None
            for file in each.files
            if file.path in decoded.pixels and file.path not in decoded.changed
        }

    def views(self, row: Study, chosen: Chosen | None) -> StudyViews | None:
        """The images of one study; None where no metric looks at them."""
        if chosen is None:
            return None
        return StudyViews(
            row.images,
            row.views,
            frontal=[self._pending(file, lateral=False) for file in chosen.frontal],
            lateral=[self._pending(file, lateral=True) for file in chosen.lateral],
            guessed=chosen.guessed,
            error=chosen.error,
        )

    def _pending(self, file: File, *, lateral: bool) -> PendingPixels:
        assert self._embedder is not None
        space, content = self._spaces[lateral], None
        if file.digest is not None and file.path not in self._decoded.changed:
            content = _Hashed(file.path, file.digest, (0, 0, 0, 0))
            entry = space.get([file.digest]).get(file.digest) if space is not None else None
            vector = None if entry is None else vector_of(entry, self._embedder.dim)
            if vector is not None:
                self._embedder.engine.work.add(images_from_cache=1)
                return PendingPixels.known(file.path, vector)

        def collect() -> NDArray[Any]:
            if file.path in self._errors:
                raise self._errors[file.path]
            own = self._decoded.pixels.get(file.path)
            found = self._of_content.get(file.digest) if own is None else own
            if found is None:  # of what is not kept, where only that is embedded which is
                raise VLScoreError(f"{file.path}: its pixels were not asked for")
            return found

        from_stored = self._embedder.encoder.image_pipeline.from_stored
        return PendingPixels(file.path, collect, content, from_stored=from_stored)


class _Hashed(FileContent):
    """A file that was decoded elsewhere, by whoever had looked that it was the one."""

    def is_unchanged(self) -> bool:
        return True


def unknown_entry(dim: int) -> Entry:
    """Stands for an embedding that another chunk computes, so that this one does not."""
    import torch

    from vlscore.embedding import vector_entry

    return vector_entry(torch.full((dim,), torch.nan))
