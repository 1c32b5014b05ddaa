"""The chunks of an evaluation computed on a Ray cluster: decoded by tasks, embedded by actors.

Ray starts a task or an actor again where its process or machine is lost, so that a loss costs time
and nothing else. This process reads the table, hands out chunks and writes what comes back. It
alone uses the cache of embeddings, in the order of the chunks, so that a report or image is
computed in the chunk that has it first, as in one process, and the results are the same bytes.
"""

import json
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vlscore.core import Entries, Space
from vlscore.data import Study, StudyTable
from vlscore.embedding import text_digest
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.evaluation.scoring.executor import Computed, Job, Row, chunks_of
from vlscore.evaluation.scoring.parallel import (
    disagreement,
    facts_of,
    fitted,
    read_chunk_message,
    written_job,
)
from vlscore.evaluation.scoring.ray_workers import (
    Chosen,
    Counts,
    Decoded,
    Embedding,
    File,
    Given,
    Reading,
    choose,
    decode,
    unknown_entry,
)
from vlscore.metrics import Item, Scorer

T = TypeVar("T")

# A task is begun again as often as its worker dies, but a file under which all die is not for ever.
_RETRIES = 8
# Chunks on their way for each actor: one that it embeds, and the next being decoded.
_AHEAD = 2
# What the second look at a chunk does not count again.
_FOUND = ("images_from_cache", "reports_from_cache")


class OnRay:
    """Computes on the Ray cluster that RAY_ADDRESS names, or on one of this machine's own.

    All machines must see the table, the images and the weights under the same names.

    Args:
        table: as of `evaluate`.
        scorer: of this process; its cache is that of the run.
        recipe: makes the same scorer in another process; it travels there.
        actors: how many embed; default: one a GPU, without GPUs one for two processors.

    Raises: MissingDependency where Ray is absent.
    """

    def __init__(
        self,
        table: StudyTable,
        scorer: Scorer,
        recipe: Callable[[], Scorer],
        *,
        actors: int | None = None,
    ) -> None:
        self._ray = _ray()
        self._table, self._scorer, self._recipe = table, fitted(scorer, table), recipe
        self._count = actors

    def chunks(self, job: Job) -> Iterator[Computed]:
        """All chunks, in the order of the rows.

        Raises: VLScoreError where an actor cannot be made, or makes another scorer.
        """
        scorer = job.scorer(self._scorer)
        actors = self._actors()
        try:
            course = _Course(self._ray, scorer, job, actors, self._spaces(actors))
            rows = enumerate(chunks_of(job.rows(self._table), scorer))
            begun = (course.begin(number, chunk) for number, chunk in rows)
            embedding = map(course.embed, _ahead(begun, _AHEAD * len(actors)))
            scoring = map(course.score, _ahead(embedding, _AHEAD * len(actors)))
            yield from map(course.end, _ahead(scoring, len(actors)))
        finally:
            for actor in actors:
                self._ray.kill(actor)

    def _actors(self) -> list[Any]:
        ray = self._ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        there = ray.cluster_resources()
        gpus, processors = int(there.get("GPU", 0)), int(there.get("CPU", 1))
        count = self._count or gpus or max(1, processors // 2)
        kind = ray.remote(
            # Tasks need a processor, too, or nothing would ever be decoded.
            num_cpus=1 if processors > count else 0,
            num_gpus=1 if gpus else 0,
            max_restarts=-1,
            max_task_retries=-1,
        )(Embedding)
        actors = [kind.remote(self._table, self._recipe) for _ in range(count)]
        own = facts_of(self._table, self._scorer)
        for number, stated in enumerate([actor.facts.remote() for actor in actors]):
            if (found := _get(ray, stated)) != own:
                raise InvalidSetting(f"actor {number} {disagreement(found, own)}")
        return actors

    def _spaces(self, actors: Sequence[Any]) -> dict[str, Space | None]:
        """Where embeddings lie in the cache of this process, as the actors' encoders name it."""
        embedder = self._scorer.embedder
        if embedder is None or embedder.engine.cache is None:
            return {}
        store = embedder.engine.cache.embeddings
        stated = [_get(self._ray, each) for each in [a.spaces.remote() for a in actors]]
        for number, other in enumerate(stated):
            if other != stated[0]:
                raise InvalidSetting(
                    f"actor {number} keeps embeddings apart from actor 0, for its libraries or its "
                    "device are others; make the machines alike, or give --no-cache"
                )
        return {
            name: None if facts is None else store.space(json.loads(facts))
            for name, facts in stated[0].items()
        }


@dataclass
class _Chunk:
    """A chunk on its way; what is `under_way` is a reference of Ray's.

    Attributes:
        number: its place.
        rows: of the table.
        under_way: what is waited for next: `Chosen` of each row, `Embedded`, or the chunk.
        chosen: which images count of each row.
        usable: positions of the rows whose reports can be taken.
        known: embeddings, by space and content.
        own: what this chunk has first, as (space, content).
        others: what a chunk before this one has first, and had not yet got.
        counts_found: whether the next look at the chunk counts what was in the cache.
    """

    number: int
    rows: Sequence[Row]
    under_way: Any = None
    chosen: Sequence[Chosen | None] = ()
    usable: Sequence[int] = ()
    known: Entries = field(default_factory=dict)
    own: set[tuple[str, bytes]] = field(default_factory=set)
    others: set[tuple[str, bytes]] = field(default_factory=set)
    counts_found: bool = True


class _Course:
    """The course of a job's chunks; each of its steps is done in their order."""

    def __init__(
        self, ray: Any, scorer: Scorer, job: Job, actors: Sequence[Any], spaces: dict[str, Any]
    ) -> None:
        self._ray, self._scorer, self._actors = ray, scorer, actors
        self._job, self._spaces = written_job(job), spaces
        self._of_facts = {space.facts: space for space in spaces.values() if space is not None}
        self._computed_elsewhere: set[tuple[str, bytes]] = set()
        task = ray.remote(num_cpus=1, max_retries=_RETRIES)
        self._choose, self._decode = task(choose), task(decode)
        self._reading = None
        if (embedder := scorer.embedder) is not None:
            self._unknown = unknown_entry(embedder.dim)
        if embedder is not None and scorer.plan.needs.images:
            cache = embedder.engine.cache
            self._reading = ray.put(
                Reading(
                    uuid.uuid4().hex,
                    embedder.encoder.image_pipeline,
                    embedder.image_policy,
                    embedder.views,
                    None if cache is None else cache.folder,
                )
            )

    def begin(self, number: int, rows: Sequence[Row]) -> _Chunk:
        """Have the images chosen and hashed."""
        chunk = _Chunk(number, rows, chosen=[None] * len(rows))
        if self._reading is not None:
            chunk.under_way = self._choose.remote(rows, self._reading)
        return chunk

    def embed(self, chunk: _Chunk) -> _Chunk:
        """Have embedded what neither the cache holds nor a chunk before this one computes."""
        if chunk.under_way is not None:
            chunk.chosen, chunk.under_way = _get(self._ray, chunk.under_way), None
        wanted = self._wanted(chunk)
        for facts, contents in wanted.items():
            chunk.known[facts] = self._of_facts[facts].get(contents)
        missing = {
            (facts, content)
            for facts, contents in wanted.items()
            for content in contents
            if content not in chunk.known[facts]
        }
        chunk.others = missing & self._computed_elsewhere
        chunk.own = missing - chunk.others
        self._computed_elsewhere |= chunk.own
        if chunk.own:
            known = {facts: dict(entries) for facts, entries in chunk.known.items()}
            for facts, content in chunk.others:
                known[facts][content] = self._unknown
            images = self._images(chunk)
            own = [file for facts, file in images if (facts, file.digest) in chunk.own]
            given = Given(self._job, chunk.rows, chunk.chosen, known)
            chunk.under_way = self._actor(chunk).embed.remote(given, self._decoding(own))
        return chunk

    def score(self, chunk: _Chunk) -> _Chunk:
        """Keep what was embedded, and have the chunk scored."""
        errors = {}
        if chunk.under_way is not None:
            embedded = _get(self._ray, chunk.under_way)
            errors = dict(embedded.errors)
            for facts, entries in embedded.new.items():
                # What another run has put there meanwhile stays: a second run finds it, too.
                chunk.known[facts].update(self._of_facts[facts].put(entries))
            self._count(embedded.counts)
            chunk.counts_found = False
        for facts, content in chunk.others:
            chunk.known[facts].update(self._of_facts[facts].get([content]))
        self._computed_elsewhere -= chunk.own
        lacking = [
            file
            for facts, file in self._images(chunk)
            if file.digest not in chunk.known.get(facts or "", {}) and file.path not in errors
        ]
        given = Given(self._job, chunk.rows, chunk.chosen, chunk.known, errors)
        chunk.under_way = self._actor(chunk).score.remote(given, self._decoding(lacking))
        return chunk

    def end(self, chunk: _Chunk) -> Computed:
        """The chunk."""
        message, counts = _get(self._ray, chunk.under_way)
        self._count({n: k for n, k in counts.items() if chunk.counts_found or n not in _FOUND})
        found = read_chunk_message(message)
        assert found is not None
        return found

    def _wanted(self, chunk: _Chunk) -> dict[str, list[bytes]]:
        """The contents of each space that a chunk needs; and which of its rows can be used."""
        items = {
            k: Item(row.candidate or "", row.reference, parts=row.parts)
            for k, row in enumerate(chunk.rows)
            if isinstance(row, Study)
        }
        rows, texts = self._scorer.texts_of(list(items.values()))
        positions = list(items)
        chunk.usable = [positions[row] for row in rows]
        wanted: dict[str, list[bytes]] = {}
        if (space := self._spaces.get("reports")) is not None:
            wanted[space.facts] = list(map(text_digest, dict.fromkeys(texts)))
        for facts, file in self._images(chunk):
            if facts is not None and file.digest is not None:
                wanted.setdefault(facts, []).append(file.digest)
        return wanted

    def _images(self, chunk: _Chunk) -> Iterator[tuple[str | None, File]]:
        """The images that count of the rows that can be used, and where their embeddings lie."""
        for name, lateral in (("images", False), ("lateral images", True)):
            space = self._spaces.get(name)
            for position in chunk.usable:
                chosen = chunk.chosen[position]
                for file in chosen.of(lateral=lateral) if chosen is not None else ():
                    yield None if space is None else space.facts, file

    def _decoding(self, files: Sequence[File]) -> Any:
        if not files:
            return Decoded()
        # The images of a whole chunk are large; they go from machine to machine, not by this one.
        return self._decode.remote(files, self._reading)

    def _actor(self, chunk: _Chunk) -> Any:
        return self._actors[chunk.number % len(self._actors)]

    def _count(self, counts: Counts) -> None:
        if (embedder := self._scorer.embedder) is not None:
            embedder.engine.work.add(**counts)


def _ahead(items: Iterable[T], count: int) -> Iterator[T]:
    """The same items, each given only when `count` more have been begun."""
    begun: deque[T] = deque()
    for item in items:
        begun.append(item)
        if len(begun) > count:
            yield begun.popleft()
    yield from begun


def _get(ray: Any, future: Any) -> Any:
    """What a task or actor gives; its errors as they are."""
    try:
        return ray.get(future)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, VLScoreError):
            raise type(cause)(str(cause)) from None
        raise
    except ray.exceptions.RayError as error:
        raise VLScoreError(
            f"the Ray cluster lost what it was to compute ({type(error).__name__}); finished "
            "rows are kept. The same command goes on from there"
        ) from None


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingDependency(
            "the engine ray needs Ray, which is not installed: pip install 'vlscore[ray]'"
        ) from None
    return ray
