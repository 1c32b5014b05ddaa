"""Chunks of an evaluation computed by the actors of a Ray cluster.

An actor does what a process of torchrun does: it reads the table itself and computes every n-th
chunk, with its machine's cache. This process gathers the chunks. Ray starts an actor again where
its process or machine is lost, and asks it again for the chunk, so that a loss costs only time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from vlscore.core import open_cache
from vlscore.data import StudyTable
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.evaluation.scoring.executor import ComputedChunk, Here, Job
from vlscore.evaluation.scoring.parallel import (
    disagreement,
    facts_of,
    fitted,
    job_of,
    read_chunk_message,
    written_chunk,
    written_job,
)
from vlscore.metrics import Scorer

# Chunks that each actor is asked for in advance, so that it never waits for this process.
_AHEAD = 2


class OnRay:
    """Computes on the Ray cluster that RAY_ADDRESS names, or on one of this machine alone.

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
