"""Where the time of an evaluation goes on this machine, stage by stage."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from vlscore._resumable import ResumableFolder
from vlscore.display import TextTable
from vlscore.embedding import EmbeddingEngine, PendingPixels, StudyEmbedder, StudyViews
from vlscore.embedding.views import choose_views
from vlscore.encoders import Precision, why_slow
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation.computing import Row
from vlscore.evaluation.results import RESULTS, layout_of, write_results
from vlscore.evaluation.rows import chunk_table, read_chunk, write_chunk
from vlscore.evaluation.summary import summarise
from vlscore.images import format_name
from vlscore.scorer import Item, Scorer
from vlscore.studies import Study

T = TypeVar("T")

# Of so many images and texts bf16 is tried: enough for a ratio.
_TRIED = 16
# Shares of a study's time from which something is worth saying.
_MUCH, _SOME = 0.3, 0.1


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
    """Where the time goes.

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
        """Of all stages together, one after the other."""
        return sum(stage.seconds for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for json."""
        return asdict(self)

    def table(self) -> TextTable:
        """To print."""
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
    table: Iterable[Row], scorer: Scorer, count: int = 64, startup: Sequence[Stage] = ()
) -> Stages:
    """Do for the first studies of a table what an evaluation does, one stage after the other.

    Nothing is taken from the cache or put there; nothing is written that stays. A run is faster
    than the sum: it decodes in other processes while it embeds.

    Args: startup: what was measured of the start already, for the table.
    Raises: InvalidSetting where no metric looks at embeddings, or no study can be used.
    """
    if scorer.embedder is None:
        raise InvalidSetting("no metric looks at embeddings: there are no stages to measure")
    embedder = _without_cache(scorer.embedder, scorer.embedder.engine.precision)
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
    with clock("scoring", ", ".join(str(metric) for metric in scorer.metrics)):
        scores = scorer.score_items(items)
    _written(clock, scorer, studies, scores)
    measured = Stages(len(studies), len(rows) - len(studies), tuple(startup), tuple(clock.stages))
    return _advised(measured, embedder, stored, texts)


class _Clock:
    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def __call__(self, name: str, items: str = "") -> Any:
        began = time.perf_counter()
        yield
        self.stages.append(Stage(name, time.perf_counter() - began, items))


def _without_cache(embedder: StudyEmbedder, precision: Precision) -> StudyEmbedder:
    return StudyEmbedder(
        embedder.encoder,
        precision=precision,
        batch_size=embedder.engine.batch_size,
        image_policy=embedder.image_policy,
        views=embedder.views,
        cache=False,
        compile=embedder.engine.is_compiled,
    )


def _files_of(
    studies: list[Study], embedder: StudyEmbedder, scorer: Scorer
) -> tuple[dict[str, list[Study]], list[Study]]:
    """Path -> studies, of the images that count; and the studies whose images are there."""
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
    """Path -> what decoding ends with; one stage for each format, files that fail left out."""
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
    pending = _pending(stored, embedder)
    if not pending:
        return {}
    embedder.engine.embed_pending(pending[:1])
    with clock("encoding images", f"{len(stored)} images"):
        vectors = embedder.engine.embed_pending(pending).vectors
    return dict(zip(stored, vectors, strict=True))


def _pending(stored: dict[str, Any], embedder: StudyEmbedder) -> list[PendingPixels]:
    pipeline = embedder.encoder.image_pipeline
    return [
        PendingPixels(path, partial(_same, pixels), from_stored=pipeline.from_stored)
        for path, pixels in stored.items()
    ]


def _same(value: T) -> T:
    return value


def _texts_of(studies: Sequence[Study], scorer: Scorer) -> list[str]:
    selected = [study.selected(scorer.text_policy) for study in studies]
    texts = [study.candidate or "" for study in selected]
    if scorer.plan.needs.embedded_references:
        texts += [study.reference or "" for study in selected]
    return texts


def _warm(engine: EmbeddingEngine, texts: Sequence[str]) -> None:
    """What the first pass through a tower costs besides is no stage of every study."""
    engine.embed_reports(texts)
    engine.forget()


def _item(study: Study, vectors: dict[str, Any], embedder: StudyEmbedder) -> Item:
    """A study whose images are embedded already."""
    known = [
        PendingPixels.known(path, vectors[str(path)])
        for path in study.images
        if str(path) in vectors
    ]
    # How views are put together costs nothing; all that are known stand for the frontal one.
    shown = StudyViews(study.images, study.views, frontal=known)
    return Item(study.candidate or "", study.reference, shown, study.parts)


def _written(clock: _Clock, scorer: Scorer, studies: Sequence[Study], scores: Any) -> None:
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

        with clock("writing and summary"), ResumableFolder(place, {}, results=RESULTS) as folder:
            with folder.append(len(rows)) as chunk:
                write_chunk(chunk, rows)
            chunks = [each.path for each in folder.chunks()]
            folder.finish(write, rows=len(rows))


def _advised(
    measured: Stages, embedder: StudyEmbedder, stored: dict[str, Any], texts: list[str]
) -> Stages:
    advice = []
    shares: dict[str, float] = {}
    for stage in measured.stages:
        name = "decoding" if stage.name.startswith("decoding") else stage.name
        shares[name] = shares.get(name, 0.0) + stage.seconds / (measured.seconds or 1.0)
    cores = os.cpu_count() or 1
    if shares.get("decoding", 0.0) > _SOME:
        size = embedder.encoder.card.image_size
        advice.append(
            f"Decoding is {shares['decoding']:.0%} of a study. It runs beside the encoder in "
            f"--workers processes (by default one a core; here {cores}), and from the second run "
            "on the cache has the pixels. Copies of the images "
            f"with a shorter side of {2 * size} pixels or so would decode faster in the first, too"
        )
    if embedder.engine.precision == "fp32" and (
        shares.get("encoding images", 0.0) + shares.get("encoding reports", 0.0) > _MUCH
    ):
        advice.append(_of_half_precision(embedder, stored, texts))
    repeated = 1 - len(set(texts)) / max(len(texts), 1)
    if repeated > _SOME:
        advice.append(
            f"{repeated:.0%} of the reports repeat another one: each text is embedded once a run, "
            "and never again with the cache"
        )
    loading = sum(stage.seconds for stage in measured.startup)
    if loading > 5 * measured.seconds / measured.studies and loading > 3:
        advice.append(
            f"The start takes {loading:.1f} s: score several tables in one command (`vlscore "
            "compare`), and give the checkpoint as safetensors (`vlscore weights convert`), which "
            "is used where it lies"
        )
    if os.environ.get("VLSCORE_CACHE", "").strip().lower() == "off":
        advice.append("The cache is off (VLSCORE_CACHE=off): with it a second run embeds nothing")
    if measured.failed:
        advice.append(f"{measured.failed} of the first rows could not be used and were left out")
    return Stages(
        measured.studies, measured.failed, measured.startup, measured.stages, tuple(advice)
    )


def _of_half_precision(embedder: StudyEmbedder, stored: dict[str, Any], texts: list[str]) -> str:
    """What bf16 would gain, tried where the hardware has units for it."""
    slow = why_slow("bf16", embedder.encoder.device)
    if slow is not None:
        return f"bf16 is no help: {slow}"
    half = _without_cache(embedder, "bf16")
    some = dict(list(stored.items())[:_TRIED])
    distinct = list(dict.fromkeys(texts))[:_TRIED]
    seconds = []
    for each in (embedder, half):
        pending = _pending(some, each)
        for _ in range(2):  # the first to warm up
            each.engine.forget()
            began = time.perf_counter()
            each.engine.embed_pending(pending)
            each.engine.embed_reports(distinct)
            last = time.perf_counter() - began
        seconds.append(last)
    ratio = seconds[0] / seconds[1] if seconds[1] > 0 else 1.0
    if ratio < 1 + _SOME:
        return f"bf16 is no help here: it takes {1 / ratio:.1f} times as long as fp32"
    return (
        f"The encoder is {ratio:.1f} times as fast in bf16 (--precision bf16); --check-precision "
        "measures on your studies what that changes"
    )


def _quietly(call: Callable[[], T]) -> T | None:
    """What it gives; None where the file cannot be used, which is not this room's to say."""
    try:
        return call()
    except Exception:  # decoders of untrusted bytes raise whatever they like
        return None
