"""The chunks of an evaluation computed on a Ray cluster: decoded by tasks, embedded by actors.

Ray starts a task or an actor again where its process or machine is lost, so that a loss costs time
and nothing else. This process reads the table, hands out chunks and writes what comes back.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from vlscore.embedding import ImageDecoder, PendingPixels
from vlscore.embedding.views import choose_views
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.evaluation.computing import Computed, Job, Prepared, Row, chunks_of, computed, prepare
from vlscore.evaluation.results import layout_of
from vlscore.evaluation.sharing import (
    disagreement,
    facts_of,
    fitted,
    job_of,
    read_chunk_message,
    written_chunk,
    written_job,
)
from vlscore.scorer import Scorer
from vlscore.studies import Study, StudyTable

# A task is begun again as often as its worker dies, but a file under which all die is not for ever.
_RETRIES = 8
# Chunks on their way for each actor: one that it embeds, and the next being decoded.
_AHEAD = 2

# Path -> what decoding ended with, or why it failed.
_Decoded = dict[str, Any]


class OnRay:
    """Computes on the Ray cluster that RAY_ADDRESS names, or on one of this machine's own.

    All machines must see the table, the images and the weights under the same names.

    Args:
        table: as of `evaluate`.
        scorer: of this process.
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
        ray = self._ray
        scorer = job.scorer(self._scorer)
        actors = self._actors()
        decode = ray.remote(num_cpus=1, max_retries=_RETRIES)(_decode)
        embedder = scorer.embedder if scorer.plan.needs.images else None
        given = (
            ()
            if embedder is None
            else (
                ray.put((embedder.encoder.image_pipeline, embedder.image_policy, embedder.views)),
            )
        )
        under_way: deque[Any] = deque()
        try:
            for number, rows in enumerate(chunks_of(job.rows(self._table), scorer)):
                decoded = decode.remote(rows, *given) if given else {}
                actor = actors[number % len(actors)]
                under_way.append(actor.compute.remote(written_job(job), rows, decoded))
                if len(under_way) >= _AHEAD * len(actors):
                    yield self._get(under_way.popleft())
            while under_way:
                yield self._get(under_way.popleft())
        finally:
            for actor in actors:
                ray.kill(actor)

    def _actors(self) -> list[Any]:
        ray = self._ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        there = ray.cluster_resources()
        gpus = int(there.get("GPU", 0))
        count = self._count or gpus or max(1, int(there.get("CPU", 1)) // 2)
        kind = ray.remote(
            num_cpus=1, num_gpus=1 if gpus else 0, max_restarts=-1, max_task_retries=-1
        )(_Actor)
        actors = [kind.remote(self._table, self._recipe) for _ in range(count)]
        own = facts_of(self._table, self._scorer)
        for number, actor in enumerate(actors):
            stated = self._get(actor.facts.remote(), message=False)
            if stated != own:
                raise InvalidSetting(f"actor {number} {disagreement(stated, own)}")
        return actors

    def _get(self, future: Any, *, message: bool = True) -> Any:
        try:
            found = self._ray.get(future)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, VLScoreError):
                raise type(cause)(str(cause)) from None
            raise
        except self._ray.exceptions.RayError as error:
            raise VLScoreError(
                f"the Ray cluster lost what it was to compute ({type(error).__name__}); finished "
                "rows are kept. The same command goes on from there"
            ) from None
        return read_chunk_message(found) if message else found


class _Actor:
    """Embeds and scores chunks whose images others have decoded; one encoder each."""

    def __init__(self, table: StudyTable, recipe: Callable[[], Scorer]) -> None:
        # Made in the first call, whose errors come back as they are.
        self._table, self._recipe = table, recipe

    @cached_property
    def _scorer(self) -> Scorer:
        return fitted(self._recipe(), self._table)

    def facts(self) -> dict[str, Any]:
        """What this actor's scorer has in common with that of the run."""
        return facts_of(self._table, self._scorer)

    def compute(self, job: dict[str, Any], rows: list[Row], decoded: _Decoded) -> bytes:
        """The chunk of these rows, as it is sent."""
        scorer = job_of(job).scorer(self._scorer)
        decoder = None
        if scorer.embedder is not None and scorer.plan.needs.images:
            pipeline, policy = scorer.embedder.encoder.image_pipeline, scorer.embedder.image_policy
            decoder = _Given(pipeline, policy, decoded=decoded)
        prepared: list[Prepared] = [(row, prepare(row, scorer, decoder)) for row in rows]
        return written_chunk(computed(prepared, scorer, layout_of(scorer).schema()))


class _Given(ImageDecoder):
    """Hands out what was decoded elsewhere."""

    def __init__(self, *arguments: Any, decoded: _Decoded) -> None:
        super().__init__(*arguments)
        self._decoded = decoded

    def submit(self, image: Any, content: Any = None) -> PendingPixels:
        """The pixels of an image, or the error that it met; what was not decoded is, here."""
        if str(image) not in self._decoded:
            return super().submit(image, content)
        found = self._decoded[str(image)]

        def collect() -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        return self._pending(image, collect, content)


def _decode(rows: Sequence[Row], given: tuple[Any, Any, str]) -> _Decoded:
    """Decode the images that count of some studies; runs where Ray has a free processor."""
    pipeline, policy, views = given
    found: _Decoded = {}
    # A worker of its own: a file that crashes its decoder must not take this task with it.
    with ImageDecoder(pipeline, policy, 1) as decoder:
        pending: dict[str, PendingPixels] = {}
        for row in rows:
            if not isinstance(row, Study):
                continue
            with suppress(VLScoreError):  # it is met again, and told, where the row is scored
                chosen = choose_views(row.images, row.views, views)
                for path in (*chosen.frontal, *chosen.lateral):
                    if isinstance(path, str | Path) and str(path) not in pending:
                        pending[str(path)] = decoder.submit(path)
        for path, each in pending.items():
            try:
                found[path] = each.stored().numpy()
            except VLScoreError as error:
                found[path] = type(error)(str(error))
    return found


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingDependency(
            "the engine ray needs Ray, which is not installed: pip install 'vlscore[ray]'"
        ) from None
    return ray
