"""One run shared out among processes: each computes every n-th chunk, the first writes them all."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa

from vlscore.core import Processes, key_difference
from vlscore.data import Study, StudyTable
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation.scoring.executor import ComputedChunk, Here, Job, Row
from vlscore.metrics import Item, Scorer

T = TypeVar("T")

_IMAGES = b"images"


class Shared:
    """Computes in all processes of a run; for the first of them.

    Every process reads the table itself and holds no more of it than some chunks. They must see the
    same files under the same names.
    """

    def __init__(self, here: Here, processes: Processes) -> None:
        self._here, self._processes = here, processes
        self._is_waited_for = False

    def chunks(self, job: Job) -> Iterator[ComputedChunk]:
        """All chunks: one's own, and those that the others send; raises ProcessLost."""
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
        # A process that has no further chunk says so once; the rest have none either.
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
        """Tell the others that nothing is left to do, and wait until they have heard it.

        In the middle of a job, which an error has ended, nobody listens: they hear of it when this
        process ends.
        """
        if self._is_waited_for:
            return
        self._processes.tell_all(None, last=True)
        for other in range(1, self._processes.count):
            self._processes.receive(other)


def serve_evaluation(
    table: StudyTable, scorer: Scorer, processes: Processes, *, workers: int = 0
) -> None:
    """Compute what the first process asks for; in every other process, where it calls `evaluate`.

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
    """What `prepare` gives, once every process has it; None where the first says why not.

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
    stated = [processes.receive_json(other) for other in range(1, processes.count)]
    problem = error or _disagreement(own, stated, processes.count)
    processes.tell_all({"begin": problem is None}, last=problem is not None)
    if problem is not None:
        for other in range(1, processes.count):
            processes.receive(other)
        raise problem
    return found


def facts_of(table: StudyTable, scorer: Scorer) -> dict[str, Any]:
    """What a table and a scorer have in common in all processes of a run."""
    return {
        "table": table.sha256,
        "columns": table.columns.to_dict(),
        "metrics": {name: str(signature) for name, signature in scorer.signatures.items()},
    }


def fitted(scorer: Scorer, studies: Iterable[Row]) -> Scorer:
    """The scorer, its metrics fitted to a run's references where some need that."""
    if not scorer.plan.needs_fit:
        return scorer
    # A pass over the references alone; the run itself then reads the table again.
    return scorer.fit(Item("", s.reference, parts=s.parts) for s in studies if isinstance(s, Study))


def _disagreement(
    own: dict[str, Any], stated: list[dict[str, Any]], count: int
) -> VLScoreError | None:
    for number, other in enumerate(stated, start=1):
        if "error" in other:
            return VLScoreError(f"process {number} of {count}: {other['error']}")
        if other != own:
            return InvalidSetting(
                f"process {number} of {count} {disagreement(other['facts'], own['facts'])}"
            )
    return None


def disagreement(there: dict[str, Any], here: dict[str, Any]) -> str:
    """What another process does differently, in words."""
    return (
        f"does not do what process 0 does: {key_difference(there, here)}. Give all processes the "
        "same command, table and weights"
    )


def written_job(job: Job) -> dict[str, Any]:
    """A job as plain data."""
    return {
        "metrics": job.metrics,
        "only": None if job.only is None else sorted(job.only),
        "skip": job.skip,
    }


def job_of(written: dict[str, Any]) -> Job:
    """The job that `written_job` wrote."""
    metrics, only = written["metrics"], written["only"]
    return Job(
        None if metrics is None else tuple(metrics),
        None if only is None else frozenset(only),
        written["skip"],
    )


def written_chunk(chunk: ComputedChunk) -> bytes:
    """A chunk as it travels between processes."""
    images = json.dumps([str(path) for path in chunk.images])
    rows = chunk.rows.replace_schema_metadata({_IMAGES: images})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def read_chunk_message(content: bytes) -> ComputedChunk | None:
    """The chunk that was sent; None of what says that there is no further one."""
    if not content:
        return None
    with pa.ipc.open_stream(content) as reader:
        rows = reader.read_all()
    images = json.loads(rows.schema.metadata[_IMAGES])
    return ComputedChunk(rows.replace_schema_metadata(None), images)
