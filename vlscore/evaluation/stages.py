"""Time of each stage of an evaluation on this machine, and advice on how to make it faster."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vlscore.core import ResumableFolder, usable_cores
from vlscore.data import Study, format_name, read_image
from vlscore.embedding import (
    EmbeddingEngine,
    PendingPixels,
    StudyEmbedder,
    StudyViews,
    choose_views,
)
from vlscore.encoders import why_slow
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation.scoring.executor import Row
from vlscore.evaluation.scoring.results import RESULTS, layout_of, write_results
from vlscore.evaluation.scoring.summary import chunk_table, read_chunk, summarise, write_chunk
from vlscore.metrics import Item, Scorer
from vlscore.stats import TextTable

T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """One stage, measured alone on one batch of studies.

    Attributes:
        name: what is done.
        seconds: in all.
        items: of what it was done to, as in "24 files".
    """

    name: str
    seconds: float
    items: str = ""


@dataclass(frozen=True)
class Stages:
    """Time of each stage, and advice.

    Attributes:
        studies: how many were measured.
        failed: rows among the first that could not be used.
        startup: what is done once a run.
        stages: what is done for every study, in order.
        advice: what would help, one sentence each.
    """

    studies: int
    failed: int
    startup: tuple[Stage, ...]
    stages: tuple[Stage, ...]
    advice: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """Return the seconds of all stages together, one after the other."""
        return sum(stage.seconds for stage in self.stages)

    def part(self, name: str) -> float:
        """Return the share of the time of the stages whose names begin with `name`."""
        spent = sum(stage.seconds for stage in self.stages if stage.name.startswith(name))
        return spent / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for json."""
        return asdict(self)

    def table(self) -> TextTable:
        """Return the table that is printed."""
        rows = [
            (stage.name, stage.items, f"{stage.seconds:.2f} s once", "", "")
            for stage in self.startup
        ]
        for stage in self.stages:
            each = stage.seconds / self.studies
            rate = f"{1 / each:,.1f}" if each > 0 else "-"
            share = f"{stage.seconds / self.seconds:.0%}" if self.seconds else "-"
            rows.append((stage.name, stage.items, f"{1000 * each:.1f} ms", rate, share))
        rows.append(
            (
                "all, one after the other",
                f"{self.studies} studies",
                f"{1000 * self.seconds / self.studies:.1f} ms",
                f"{self.studies / self.seconds:,.1f}" if self.seconds else "-",
                "100%",
            )
        )
        columns = ("stage", "of", "a study", "studies/s", "share")
        return TextTable("", columns, tuple(rows))


def measure_stages(
    table: Iterable[Row],
    scorer: Scorer,
    count: int = 64,
    startup: Sequence[Stage] = (),
    *,
    convertible: bool = False,
) -> Stages:
    """Measure each stage of an evaluation on the first studies of a table.

    Nothing is taken from the cache or put there; nothing is written that stays. A run is faster
    than the sum: it decodes in other processes while it embeds.

    Args:
        startup: what was measured of the start already, for the table.
        convertible: whether the weights are a checkpoint that `vlscore weights convert` converts.

    Raises: InvalidSetting where no metric looks at embeddings, or no study can be used.
    """
    if scorer.embedder is None:
        raise InvalidSetting("no metric looks at embeddings: there are no stages to measure")
    embedder = scorer.embedder.like_this(cache=False)
    scorer = Scorer(embedder, metrics=scorer.metrics, text_policy=scorer.text_policy)
    clock = _Clock()
    with clock("reading the table"):
        rows = list(islice(table, count))
    studies = [row for row in rows if isinstance(row, Study)]
    files, studies = _files_of(studies, embedder, scorer)
    if not studies:
        raise InvalidSetting(f"none of the first {count} rows can be used; `evaluate` says why")
    with clock("reading files", f"{len(files)} files"):
        for path in files:
            Path(path).read_bytes()
    stored = _decoded(clock, files, embedder)
    lost = {study.row for path, owners in files.items() if path not in stored for study in owners}
    studies = [study for study in studies if study.row not in lost]
    if not studies:
        raise InvalidSetting(f"none of the first {count} studies has an image that can be decoded")
    vectors = _images_embedded(clock, stored, embedder)
    texts = _texts_of(studies, scorer)
    _warm(embedder.engine, texts[:1])
    with clock("encoding reports", f"{len(set(texts))} distinct of {len(texts)}"):
        embedder.embed_texts(texts)
    items = [_item(study, vectors, embedder) for study in studies]
    # What the first call imports is no part of every study.
    scorer.score_items(items[:1])
    with clock("scoring", ", ".join(str(metric) for metric in scorer.metrics)):
        scores = scorer.score_items(items)
    final = _written(clock, scorer, studies, scores)
    measured = Stages(
        len(studies), len(rows) - len(studies), (*startup, final), tuple(clock.stages)
    )
    return replace(measured, advice=advice_on(measured, embedder, stored, texts, convertible))


class _Clock:
    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def __call__(self, name: str, items: str = "") -> Any:
        began = time.perf_counter()
        yield
        self.stages.append(Stage(name, time.perf_counter() - began, items))


def _files_of(
    studies: list[Study], embedder: StudyEmbedder, scorer: Scorer
) -> tuple[dict[str, list[Study]], list[Study]]:
    """Return path -> studies of the images that are used, and the studies whose images exist."""
    files: dict[str, list[Study]] = {}
    usable = []
    for study in studies:
        try:
            if scorer.plan.needs.images:
                chosen = choose_views(study.images, study.views, embedder.views)
                paths = [str(path) for path in (*chosen.frontal, *chosen.lateral)]
                if not all(map(os.path.isfile, paths)):
                    continue
                for path in paths:
                    files.setdefault(path, []).append(study)
            usable.append(study)
        except VLScoreError:
            continue
    return files, usable


def _decoded(clock: _Clock, files: Iterable[str], embedder: StudyEmbedder) -> dict[str, Any]:
    """Return path -> decoded image; each format is one stage, and files that fail are left out."""
    pipeline, policy = embedder.encoder.image_pipeline, embedder.image_policy
    formats: dict[str, list[str]] = {}
    for path in files:
        formats.setdefault(format_name(path), []).append(path)
    stored: dict[str, Any] = {}
    for path in islice(files, 1):
        # What the first one imports is no part of decoding.
        _quietly(partial(pipeline.load_stored, path, policy))
    for name, paths in sorted(formats.items()):
        with clock(f"decoding {name}", f"{len(paths)} files"):
            for path in paths:
                found = _quietly(partial(pipeline.load_stored, path, policy))
                if found is not None:
                    stored[path] = found
    return stored


def _images_embedded(
    clock: _Clock, stored: dict[str, Any], embedder: StudyEmbedder
) -> dict[str, Any]:
    pending = pending_of(stored, embedder)
    if not pending:
        return {}
    embedder.engine.embed_pending(pending[:1])
    with clock("encoding images", f"{len(stored)} images"):
        vectors = embedder.engine.embed_pending(pending).vectors
    return dict(zip(stored, vectors, strict=True))


def _texts_of(studies: Sequence[Study], scorer: Scorer) -> list[str]:
    selected = [study.selected(scorer.text_policy) for study in studies]
    texts = [study.candidate or "" for study in selected]
    if scorer.plan.needs.embedded_references:
        texts += [study.reference or "" for study in selected]
    return texts


def _warm(engine: EmbeddingEngine, texts: Sequence[str]) -> None:
    """Encode some texts once, because the first pass through a tower takes longer."""
    engine.embed_reports(texts)
    engine.forget()


def _item(study: Study, vectors: dict[str, Any], embedder: StudyEmbedder) -> Item:
    """Return a study whose images are embedded already."""
    known = [
        PendingPixels.known(path, vectors[str(path)])
        for path in study.images
        if str(path) in vectors
    ]
    # Combining views takes no time, so all known images are passed as frontal ones.
    shown = StudyViews(study.images, study.views, frontal=known)
    return Item(study.candidate or "", study.reference, shown, study.parts)


def _written(clock: _Clock, scorer: Scorer, studies: Sequence[Study], scores: Any) -> Stage:
    """Write a chunk, as a stage; and the results at the end, which is done once a run."""
    layout = layout_of(scorer)
    rows = chunk_table(
        layout.schema(),
        [study.row for study in studies],
        [study.id for study in studies],
        scores,
        list(range(len(studies))),
        {},
        {},
    )
    with tempfile.TemporaryDirectory() as place:

        def write(final: Path) -> dict[str, Any]:
            write_results(final, lambda: map(read_chunk, chunks), layout, "csv")
            summarise([rows], layout.metrics)
            return {}

        with ResumableFolder(place, {}, results=RESULTS) as folder:
            with clock("writing"), folder.append(len(rows)) as chunk:
                write_chunk(chunk, rows)
            chunks = [each.path for each in folder.chunks()]
            began = time.perf_counter()
            folder.finish(write, rows=len(rows))
    return Stage("results and summary", time.perf_counter() - began)


def _quietly(call: Callable[[], T]) -> T | None:
    """Return the result of the call; None if the file cannot be used."""
    try:
        return call()
    except Exception:  # decoders of untrusted bytes raise exceptions of any type
        return None


# Of so many images and texts bf16 is tried, and so many files are copied: enough for a ratio.
_TRIED, _COPIED = 16, 4
_ROUNDS = 3
# Shares of a study's time from which something is worth saying.
_MUCH, _SOME = 0.3, 0.1


def advice_on(
    measured: "Stages",
    embedder: StudyEmbedder,
    stored: Mapping[str, Any],
    texts: Sequence[str],
    convertible: bool,
) -> tuple[str, ...]:
    """Return advice on how to make an evaluation faster, one sentence each.

    Args:
        measured: the stages.
        embedder: without a cache.
        stored: path -> what decoding ended with.
        texts: reports that were embedded.
        convertible: whether the weights are a checkpoint that `vlscore weights convert` converts.
    """
    found: list[str] = []
    decoding, encoding = measured.part("decoding"), measured.part("encoding")
    if decoding > _SOME:
        found.append(_of_workers(str(embedder.encoder.device.type), decoding, encoding))
        found += _of_copies(list(stored), embedder, decoding)
    if embedder.engine.precision == "fp32" and encoding > _MUCH:
        found.append(_of_half_precision(embedder, stored, texts))
    repeated = 1 - len(set(texts)) / max(len(texts), 1)
    if repeated > _SOME:
        found.append(
            f"{repeated:.0%} of the reports repeat another one: with the cache each text is "
            "embedded once, and never again"
        )
    loading = sum(stage.seconds for stage in measured.startup)
    if loading > 5 * measured.seconds / measured.studies and loading > 3:
        convert = (
            ", and give the checkpoint as safetensors (`vlscore weights convert`), which is used "
            "where it lies"
        )
        found.append(
            f"What is done once a run takes {loading:.1f} s: score several tables in one command "
            f"(`vlscore compare`){convert if convertible else ''}"
        )
    if os.environ.get("VLSCORE_CACHE", "").strip().lower() == "off":
        found.append("The cache is off (VLSCORE_CACHE=off): with it a second run embeds nothing")
    if measured.failed:
        found.append(f"{measured.failed} of the first rows could not be used and were left out")
    return tuple(found)


def _of_workers(device: str, decoding: float, encoding: float) -> str:
    """Return advice about decoding processes, from the shares of decoding and encoding."""
    cores = usable_cores()
    sentence = f"Decoding is {decoding:.0%} of a study"
    if device == "cpu":
        sentence += (
            f", done in --workers processes (default: one a core; here {cores}), which share the "
            "cores with the encoder"
        )
    else:
        rest = max(1 - decoding, 0.01)
        needed = math.ceil(decoding / rest)
        sentence += f": it keeps up with the encoder from {needed} --workers processes on"
        if needed > cores:
            sentence += f", and here are {cores} cores: decoding is the limit of a first run"
    return f"{sentence}. From the second run on nothing of it is done: the cache has the embeddings"


def _of_copies(files: Sequence[str], embedder: StudyEmbedder, decoding: float) -> list[str]:
    """Return advice about smaller copies of the images, tried on some of the larger ones."""
    pipeline, policy = embedder.encoder.image_pipeline, embedder.image_policy
    side = 2 * embedder.encoder.card.image_size
    before = after = 0.0
    count = 0
    with tempfile.TemporaryDirectory() as place:
        for path in files[:: max(len(files) // _COPIED, 1)][:_COPIED]:
            copy = Path(place) / f"{count}.png"
            try:
                if not _write_copy(path, copy, side, embedder):
                    continue
                took = _seconds(partial(pipeline.load_stored, path, policy))
                after += _seconds(partial(pipeline.load_stored, copy, policy))
            except (VLScoreError, OSError):
                continue
            before += took
            count += 1
    if not count or decoding * (1 - after / before) < _SOME:
        return []
    return [
        f"Copies of the images as PNG with a shorter side of {side} pixels decode "
        f"{before / after:.0f} times as fast (tried on {count}). They change the numbers a little: "
        "use the same copies for all that is compared"
    ]


def _write_copy(path: str, copy: Path, side: int, embedder: StudyEmbedder) -> bool:
    """Write a smaller copy; False where the image itself is not much larger."""
    from PIL import Image

    pixels = read_image(path, embedder.image_policy).pixels
    height, width = pixels.shape
    if min(height, width) < 1.5 * side:
        return False
    scale = side / min(height, width)
    picture = Image.fromarray(np.rint(pixels * 255).astype(np.uint8))
    picture.resize((round(width * scale), round(height * scale)), Image.Resampling.BOX).save(copy)
    return True


def _of_half_precision(
    embedder: StudyEmbedder, stored: Mapping[str, Any], texts: Sequence[str]
) -> str:
    """Return advice about bf16, tried where the hardware has units for it."""
    slow = why_slow("bf16", embedder.encoder.device)
    if slow is not None:
        return f"bf16 is no help: {slow}"
    both = (embedder, embedder.like_this(precision="bf16", cache=False))
    some = dict(islice(stored.items(), _TRIED))
    distinct = list(dict.fromkeys(texts))[:_TRIED]

    def embed(each: StudyEmbedder) -> None:
        each.engine.forget()
        each.engine.embed_pending(pending_of(some, each))
        each.engine.embed_reports(distinct)

    for each in both:  # to warm up
        embed(each)
    # In turn, and the best of each: what else the machine does is not what is compared.
    rounds = [[_seconds(partial(embed, each)) for each in both] for _ in range(_ROUNDS)]
    full, half = (min(times) for times in zip(*rounds, strict=True))
    ratio = full / half if half > 0 else 1.0
    if ratio < 1 + _SOME:
        return f"bf16 is no help here: it takes {1 / ratio:.1f} times as long as fp32"
    return (
        f"The encoder is {ratio:.1f} times as fast in bf16 (--precision bf16); --check-precision "
        "measures on your studies what that changes"
    )


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def pending_of(stored: Mapping[str, Any], embedder: StudyEmbedder) -> list[PendingPixels]:
    """Return images that are decoded already, by their paths."""
    pipeline = embedder.encoder.image_pipeline
    return [
        PendingPixels(path, partial(_same, pixels), from_stored=pipeline.from_stored)
        for path, pixels in stored.items()
    ]


def _same(value: T) -> T:
    return value
