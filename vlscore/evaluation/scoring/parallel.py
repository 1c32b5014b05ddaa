"""One evaluation shared by processes of torchrun or actors of a Ray cluster.

Each process or actor reads the table itself and computes every n-th chunk, with its machine's
cache. The first process writes all chunks. Ray starts an actor again where its process or machine
is lost, and asks it again for the chunk, so that a loss costs only time.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from vlscore.core import Processes, key_difference, open_cache
from vlscore.data import Study, StudyTable
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.evaluation.scoring.executor import ComputedChunk, Here, Job, Row
from vlscore.metrics import Item, Scorer

T = TypeVar("T")

_IMAGES = b"images"


class Shared:
    """Computer of chunks in all processes of a run, for the first of them.

    Every process reads the table itself and holds no more of it than some chunks. They must see the
    same files under the same names.
    """

    def __init__(self, here: Here, processes: Processes) -> None:
        self._here, self._processes = here, processes
        self._is_waited_for = False

    def chunks(self, job: Job) -> Iterator[ComputedChunk]:
        """Yield all chunks: one's own, and those that the others send; raises ProcessLost."""
        processes = self._processes
        self._is_waited_for = True
        processes.tell_all(written_job(job))
        own = self._here.part(job, 0, processes.count)
        for number in count():
            source = number % processes.count
            found = (
                next(own, None) if source == 0 else read_chunk_message(processes.receive(source))
            )
            if found is None:
                break
            yield found
        # A process sends once that it has no further chunk; the others have none either.
        for other in range(1, processes.count):
            if other != source:
                processes.receive(other)
            self._add(processes.receive_json(other))
        self._is_waited_for = False

    def _add(self, work: dict[str, int]) -> None:
        """Count what another process embedded as if it had been done here."""
        if (embedder := self._here.scorer.embedder) is not None:
            embedder.engine.work.add(**work)

    def end(self) -> None:
        """Tell the others that nothing is left to do, and wait for their answers.

        After an error in the middle of a job nobody waits for a message: the others notice when
        this process ends.
        """
        if self._is_waited_for:
            return
        self._processes.tell_all(None, last=True)
        for other in range(1, self._processes.count):
            self._processes.receive(other)


def serve_evaluation(
    table: StudyTable, scorer: Scorer, processes: Processes, *, workers: int = 0
) -> None:
    """Compute chunks for the first process, which calls `evaluate`; for every other process.

    Args: table, scorer, workers: as of `evaluate`, and the same in all processes.
    Raises: ProcessLost where the first process has ended.
    """
    here = Here(table, fitted(scorer, table), workers)
    while (asked := processes.receive_json()) is not None:
        work = scorer.embedder.engine.work if scorer.embedder is not None else None
        before = work.to_dict() if work is not None else {}
        for found in here.part(job_of(asked), processes.rank, processes.count):
            processes.send(written_chunk(found))
        processes.send(b"")
        processes.send_json(work.since(before) if work is not None else {})
    processes.send(b"", last=True)


def when_all_are_ready(
    processes: Processes, prepare: Callable[[], T], facts: Callable[[T], dict[str, Any]]
) -> T | None:
    """Return the result of `prepare` once it has ended in all processes; None if the first failed.

    Args: facts: what must be equal in all processes, as json holds it.
    Raises: in the first process, the VLScoreError of `prepare`, of this process or another;
        InvalidSetting where facts differ.
    """
    if processes.count == 1:
        return prepare()
    found: T | None = None
    own: dict[str, Any]
    error: VLScoreError | None = None
    try:
        found = prepare()
        own = {"facts": facts(found)}
    except VLScoreError as raised:
        error, own = raised, {"error": str(raised)}
    if not processes.leads:
        processes.send_json(own)
        if processes.receive_json()["begin"]:
            return found
        processes.send(b"", last=True)
        return None
    answers = [processes.receive_json(other) for other in range(1, processes.count)]
    problem = error or _disagreement(own, answers, processes.count)
    processes.tell_all({"begin": problem is None}, last=problem is not None)
    if problem is not None:
        for other in range(1, processes.count):
            processes.receive(other)
        raise problem
    return found


def facts_of(table: StudyTable, scorer: Scorer) -> dict[str, Any]:
    """Return the facts about a table and a scorer that must be equal in all processes of a run."""
    return {
        "table": table.sha256,
        "columns": table.columns.to_dict(),
        "metrics": {name: str(signature) for name, signature in scorer.signatures.items()},
    }


def fitted(scorer: Scorer, studies: Iterable[Row]) -> Scorer:
    """Return the scorer, fitted to a run's references if a metric needs that."""
    if not scorer.plan.needs_fit:
        return scorer
    # A pass over the references alone; the run itself then reads the table again.
    return scorer.fit(Item("", s.reference, parts=s.parts) for s in studies if isinstance(s, Study))


def _disagreement(
    own: dict[str, Any], answers: list[dict[str, Any]], count: int
) -> VLScoreError | None:
    for number, other in enumerate(answers, start=1):
        if "error" in other:
            return VLScoreError(f"process {number} of {count}: {other['error']}")
        if other != own:
            return InvalidSetting(
                f"process {number} of {count} {disagreement(other['facts'], own['facts'])}"
            )
    return None


def disagreement(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Return the differences from another process, in words."""
    return (
        f"does not do what process 0 does: {key_difference(there, here)}. Give all processes the "
        "same command, table and weights"
    )


def written_job(job: Job) -> dict[str, Any]:
    """Return a job as plain data."""
    return {
        "metrics": job.metrics,
        "only": None if job.only is None else sorted(job.only),
        "skip": job.skip,
    }


def job_of(written: dict[str, Any]) -> Job:
    """Return the job that `written_job` wrote."""
    metrics, only = written["metrics"], written["only"]
    return Job(
        None if metrics is None else tuple(metrics),
        None if only is None else frozenset(only),
        written["skip"],
    )


def written_chunk(chunk: ComputedChunk) -> bytes:
    """Return a chunk as bytes that are sent between processes."""
    images = json.dumps([str(path) for path in chunk.images])
    rows = chunk.rows.replace_schema_metadata({_IMAGES: images})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def read_chunk_message(content: bytes) -> ComputedChunk | None:
    """Return the chunk that was sent; None for the message that there is no further one."""
    if not content:
        return None
    with pa.ipc.open_stream(content) as reader:
        rows = reader.read_all()
    images = json.loads(rows.schema.metadata[_IMAGES])
    return ComputedChunk(rows.replace_schema_metadata(None), images)


# Chunks that each actor is asked for in advance, so that it never waits for this process.
_AHEAD = 2


class OnRay:
    """Computer of chunks on the Ray cluster that RAY_ADDRESS names, or on this machine alone.

    All machines must have the table, the images and the weights under the same names.

    Args:
        table: as of `evaluate`.
        scorer: of this process; the actors' machines use a cache under the same name as its cache.
        recipe: makes the same scorer in another process.
        actors: number of actors; default: one a GPU, without GPUs one for two processors.
        workers: processes of each actor that decode images; default: the processors of the cluster
            divided by the actors, less the actor's own.

    Raises: MissingDependency where Ray is absent.
    """

    def __init__(
        self,
        table: StudyTable,
        scorer: Scorer,
        recipe: Callable[[], Scorer],
        *,
        actors: int | None = None,
        workers: int | None = None,
    ) -> None:
        self._ray = _ray()
        self._table, self._scorer, self._recipe = table, scorer, recipe
        self._count, self._workers = actors, workers

    def chunks(self, job: Job) -> Iterator[ComputedChunk]:
        """Yield all chunks, in the order of the rows.

        Raises: VLScoreError where an actor cannot be made, or makes another scorer.
        """
        actors = self._actors()
        try:
            self._check(actors)
            yield from self._gathered(actors, written_job(job))
        finally:
            for actor in actors:
                self._ray.kill(actor)

    def _gathered(self, actors: Sequence[Any], job: dict[str, Any]) -> Iterator[ComputedChunk]:
        step = len(actors)

        def ask(number: int) -> Any:
            return actors[number % step].chunk.remote(job, number, step)

        asked = deque(ask(number) for number in range(_AHEAD * step))
        for number in count(len(asked)):
            message, work = _get(self._ray, asked.popleft())
            if self._scorer.embedder is not None:
                self._scorer.embedder.engine.work.add(**work)
            if (found := read_chunk_message(message)) is None:
                return
            asked.append(ask(number))
            yield found

    def _actors(self) -> list[Any]:
        ray = self._ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        there = ray.cluster_resources()
        gpus, processors = int(there.get("GPU", 0)), int(there.get("CPU", 1))
        actors = self._count or gpus or max(1, processors // 2)
        own = max(processors // actors, 1)
        workers = own - 1 if self._workers is None else self._workers
        kind = ray.remote(
            num_cpus=min(own, workers + 1),
            num_gpus=1 if gpus else 0,
            max_restarts=-1,
            max_task_retries=-1,
        )(ChunkActor)
        embedder = self._scorer.embedder
        cache = embedder.engine.cache if embedder is not None else None
        folder = None if cache is None else cache.folder
        return [kind.remote(self._table, self._recipe, workers, folder) for _ in range(actors)]

    def _check(self, actors: Sequence[Any]) -> None:
        """Raise InvalidSetting where an actor would compute something else."""
        own = facts_of(self._table, fitted(self._scorer, self._table))
        for number, found in enumerate([actor.facts.remote() for actor in actors]):
            if (facts := _get(self._ray, found)) != own:
                raise InvalidSetting(f"actor {number} {disagreement(facts, own)}")


class ChunkActor:
    """Computer of every n-th chunk; an actor of Ray is made of it.

    Args:
        table, recipe: as of `OnRay`.
        workers: processes that decode images; 0 decodes in the actor.
        cache: folder of the cache on the actor's machine; None for no cache.
    """

    def __init__(
        self, table: StudyTable, recipe: Callable[[], Scorer], workers: int, cache: Path | None
    ) -> None:
        # The scorer is made in the first call, because Ray hides the errors of a constructor.
        self._table, self._recipe, self._workers, self._cache = table, recipe, workers, cache
        self._next: tuple[dict[str, Any], int, int] | None = None
        self._part: Iterator[ComputedChunk] = iter(())

    @cached_property
    def _scorer(self) -> Scorer:
        scorer = self._recipe()
        if (embedder := scorer.embedder) is not None:
            cache = None if self._cache is None else open_cache(self._cache)
            other = embedder.like_this(cache=cache or False)
            scorer = Scorer(other, metrics=scorer.metrics, text_policy=scorer.text_policy)
        return fitted(scorer, self._table)

    def facts(self) -> dict[str, Any]:
        """Return what this actor's scorer must have in common with that of the run."""
        return facts_of(self._table, self._scorer)

    def chunk(self, job: dict[str, Any], number: int, step: int) -> tuple[bytes, dict[str, int]]:
        """Return a chunk as it is sent, and what was computed for it.

        Args:
            job: as `written_job` writes it.
            number: of the chunk.
            step: number of actors; this one is asked for every `step`-th chunk.

        Returns: an empty message where the table has no such chunk; the counts of `Work`.
        """
        work = self._scorer.embedder.engine.work if self._scorer.embedder is not None else None
        before = work.to_dict() if work is not None else {}
        if self._next != (job, number, step):  # the first chunk, or the first after a restart
            here = Here(self._table, self._scorer, self._workers)
            self._part = here.part(job_of(job), number, step)
        found = next(self._part, None)
        self._next = job, number + step, step
        message = b"" if found is None else written_chunk(found)
        return message, work.since(before) if work is not None else {}


def _get(ray: Any, future: Any) -> Any:
    """Return the result of an actor's method; raise its errors as they are."""
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
            "rows are stored. The same command resumes"
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
