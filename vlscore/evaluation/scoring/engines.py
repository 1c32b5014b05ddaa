"""Scoring on a Ray cluster: actors score batches, and this process writes the results."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from vlscore.core import key_difference
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.evaluation.score_table import score_batches
from vlscore.metrics import Fit, Item, Metric, Scorer, ScoreTable

# Batches of a task: one is decoded while another is scored.
_BATCHES = 4
# Tasks that wait for each actor, so that it never waits for this process.
_AHEAD = 2


class OnRay:
    """Engine that scores on the cluster that RAY_ADDRESS names, or on this machine alone.

    All machines must have the images and the weights under the same names. An actor that is lost
    is started again, and asked again for its task.

    Args:
        recipe: makes the scorer in another process.
        actors: number of actors; default: one a GPU, without GPUs one for two processors.
        workers: processes of each actor that decode images; default: the processors of the cluster
            divided by the actors, minus the actor's own.

    Raises: MissingDependency where Ray is absent.
    """

    def __init__(
        self,
        recipe: Callable[[], Scorer],
        *,
        actors: int | None = None,
        workers: int | None = None,
    ) -> None:
        self._ray = _ray()
        self._recipe, self._actors, self._workers = recipe, actors, workers

    def __call__(self, scorer: Scorer, batches: Iterable[list[Item]]) -> Iterator[ScoreTable]:
        """Yield the values of each batch, in their order.

        Raises: VLScoreError where an actor cannot be made; InvalidSetting where its scorer has
            other signatures than `scorer`.
        """
        actors = self._started(scorer)
        try:
            pool = self._ray.util.ActorPool(actors)
            rest, waiting = iter(batches), 0
            while task := list(islice(rest, _BATCHES)):
                pool.submit(_score, task)
                waiting += 1
                if waiting == _AHEAD * len(actors):
                    yield from self._next(pool, scorer)
                    waiting -= 1
            while pool.has_next():
                yield from self._next(pool, scorer)
        finally:
            for actor in actors:
                self._ray.kill(actor)

    def _next(self, pool: Any, scorer: Scorer) -> list[ScoreTable]:
        ray = self._ray
        try:
            tables, work = pool.get_next()
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, VLScoreError):
                raise type(error.cause)(str(error.cause)) from None
            raise
        except ray.exceptions.RayError as error:
            raise VLScoreError(
                f"the Ray cluster lost its tasks ({type(error).__name__}); give the same command "
                "again: finished values come from the cache"
            ) from None
        if scorer.embedder is not None:
            scorer.embedder.work.add(**work)
        found: list[ScoreTable] = tables
        return found

    def _started(self, scorer: Scorer) -> list[Any]:
        ray = self._ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        there = ray.cluster_resources()
        gpus, processors = int(there.get("GPU", 0)), int(there.get("CPU", 1))
        count = self._actors or gpus or max(1, processors // 2)
        own = max(processors // count, 1)
        workers = own - 1 if self._workers is None else self._workers
        kind = ray.remote(
            num_cpus=min(own, workers + 1),
            num_gpus=1 if gpus else 0,
            max_restarts=-1,
            max_task_retries=-1,
        )(ScoringActor)
        signatures = {name: str(each) for name, each in scorer.signatures.items()}
        fits = ray.put(dict(scorer.fits))
        made = self._recipe, fits, scorer.others, signatures, workers
        return [kind.remote(*made) for _ in range(count)]


class ScoringActor:
    """Scorer of batches; an actor of Ray is made of it.

    Args:
        recipe: makes the scorer.
        fits: references to which metrics of the run were fitted.
        others: candidates with which those of studies are compared.
        signatures: of the run's scorer.
        workers: processes that decode images; 0 decodes in the actor.
    """

    def __init__(
        self,
        recipe: Callable[[], Scorer],
        fits: Mapping[Metric, Fit],
        others: list[str],
        signatures: Mapping[str, str],
        workers: int,
    ) -> None:
        # The scorer is made in the first call, because Ray hides the errors of a constructor.
        self._recipe, self._fits, self._signatures = recipe, fits, signatures
        self._others, self._workers = others, workers
        self._scorer: Scorer | None = None

    def score(self, batches: list[list[Item]]) -> tuple[list[ScoreTable], dict[str, int]]:
        """Return the values of batches, and counts of what was computed for them."""
        if self._scorer is None:
            self._scorer = self._made()
        work = self._scorer.embedder.work if self._scorer.embedder is not None else None
        before = work.to_dict() if work is not None else {}
        tables = list(score_batches(self._scorer, batches, self._workers))
        return tables, work.since(before) if work is not None else {}

    def _made(self) -> Scorer:
        scorer = self._recipe()
        scorer.fits, scorer.others = self._fits, self._others
        own = {name: str(each) for name, each in scorer.signatures.items()}
        if own != self._signatures:
            raise InvalidSetting(
                "an actor does not compute what this process does: "
                f"{key_difference(own, self._signatures)}. Give all machines the same weights and "
                "libraries"
            )
        return scorer


def _score(actor: Any, batches: list[list[Item]]) -> Any:
    return actor.score.remote(batches)


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
        import ray.util
    except ImportError:
        raise MissingDependency(
            "the engine ray needs Ray, which is not installed: pip install 'vlscore[ray]'"
        ) from None
    return ray
