"""Output folder of a run that can be stopped at any moment and resumed.

`ResumableFolder` holds the folder's lock, so that one run at a time writes it, and stores finished
chunks (`chunks`) until the results are written together (`finish`). `run_record` adds what is
needed to repeat a run: versions, command and time.
"""

import contextlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from vlscore.core.chunks import (
    PARTS,
    Chunk,
    Chunks,
    clear_discarded,
    is_discarding,
    unfinished_key,
)
from vlscore.core.files import writing
from vlscore.core.finish import commit, is_decided, roll_forward, staging_folder
from vlscore.core.result_folder import (
    RECORD,
    FinishedRun,
    Key,
    as_json,
    differing,
    finished_run,
    is_plain_name,
    key_difference,
    sole_writer,
)
from vlscore.errors import ChecksumMismatch, InvalidSetting, OutputFailed

_BYTES_AT_ONCE = 1 << 20


T = TypeVar("T")

_EXTENDS = "continues the finished run"


def end_decided_run(out: str | Path) -> None:
    """Finish moving the results of a run that was killed while it moved them.

    `ResumableFolder` does this when it is entered. A command that looks at results before it enters
    the folder calls this first. A folder without such a run is not changed.

    Raises: FolderInUse, ChecksumMismatch, OutputFailed as `ResumableFolder`.
    """
    out = Path(out)
    if (out / PARTS).is_dir() or is_discarding(out):
        with sole_writer(out):
            clear_discarded(out)
            roll_forward(out)


class ResumableFolder:
    """One run and its output folder; a context manager, which holds the folder's lock.

    Args:
        out: the folder; it is made where there is none.
        key: what the results depend on; plain data that json can hold. If the keys are equal, a
            stopped run is resumed, and a finished one is not changed.
        results: names of all files that this command can ever write into the folder.
        overwrite: replace what another run left instead of refusing it. A stopped run of an equal
            key is still resumed, and earlier results stay until the new ones are written.
        extends: entries of the key in which a finished run may differ and still be continued
            (`previous`).
        retry: continue a finished run even if nothing differs.

    Attributes:
        out, key: the arguments; the key as it looks after json.
        record: content of `run.json` once the run has ended. If it is set at the beginning,
            nothing is left to do.
        unchanged: the run had ended before, with the same key.
        previous: the finished run that this one continues; its results stay in place until
            `finish`.
        resumed_from: number of rows that an earlier, stopped call had finished.

    Raises (on entering):
        FolderInUse: another run is writing the folder.
        InvalidSetting: the folder holds a run that differs, or files of the same names that no run
            wrote.
        ChecksumMismatch: chunks or results were changed or removed since they were written.
        OutputFailed: the operating system refuses to write there.
    """

    def __init__(
        self,
        out: str | Path,
        key: Mapping[str, Any],
        *,
        results: Collection[str],
        overwrite: bool = False,
        extends: Collection[str] = (),
        retry: bool = False,
    ) -> None:
        for name in results:
            if not is_plain_name(name) or name == RECORD:
                raise ValueError(f"no result can have the name {name!r}")
        self.out = Path(out)
        self.key: Key = as_json(key)
        self.record: dict[str, Any] | None = None
        self.unchanged = False
        self.previous: FinishedRun | None = None
        self.resumed_from = 0
        self._names = set(results)
        self._overwrite, self._extends, self._retry = overwrite, set(extends), retry
        self._chunks: Chunks | None = None
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(sole_writer(self.out))
            self._open()
            self._lock = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            # Without a chunk nothing is lost, and a corrected call would otherwise be refused. But
            # after the commit a run has results, and some may be in their places already.
            is_empty = self._chunks is not None and not len(self._chunks) and self.record is None
            if is_empty and self._chunks is not None and not is_decided(self.out):
                self._chunks.discard()

    @property
    def rows(self) -> int:
        """Number of rows in finished chunks: the first rows of the table need no more work."""
        return self._open_chunks.rows

    def chunks(self) -> Iterator[Chunk]:
        """Return the finished chunks, in order."""
        return iter(self._open_chunks)

    def join(self, name: str, path: Path) -> None:
        """Write the files of this name of all chunks into one, in order."""
        with path.open("wb") as joined:
            for chunk in self.chunks():
                with (chunk.path / name).open("rb") as part:
                    shutil.copyfileobj(part, joined, _BYTES_AT_ONCE)

    def append(
        self, rows: int, note: Any = None, inputs: Iterable[str | Path] = ()
    ) -> contextlib.AbstractContextManager[Path]:
        """Return a new folder for the next chunk's files; the chunk counts when the block ends.

        Do the work before and only the writing in the block: an OSError in it becomes OutputFailed.

        Args:
            rows: number of rows of the table in the chunk.
            note: a little plain data about them, which `Chunk.note` returns.
            inputs: files that the rows were made from besides the table, such as images. A stopped
                run is not resumed if one of them was replaced since.
        """
        return self._open_chunks.append(rows, note, inputs)

    def begin_anew(self) -> None:
        """Remove the finished chunks, because they can no longer be used."""
        self._open_chunks.discard()
        self.resumed_from = 0

    def finish(
        self,
        write: Callable[[Path], Mapping[str, Any]],
        *,
        rows: int,
        key: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write all results, move them to their places, and remove the chunks.

        Args:
            write: function that writes every result file into the folder it is called with, and
                returns the further entries of `run.json`, besides the key and the digests: plain
                data without NaN.
            rows: number of rows that were read from the table; the chunks must hold as many.
            key: the key to record if it is not the one that the run was opened with (a run that
                continued another one may hold the results of both).

        Returns: the content of `run.json`.
        Raises: OutputFailed if rows are missing, or the system refuses to write;
            ChecksumMismatch if a checkpoint's content is not the one that its checksum was taken
            of.
        """
        chunks = self._open_chunks
        if chunks.rows != rows:
            raise OutputFailed(
                f"{self.out}: {rows} rows were read but the finished chunks hold {chunks.rows}; no "
                "result was written. If the table was changed meanwhile, remove "
                f"{self.out / PARTS} and begin anew"
            )
        parts = chunks.begin()
        with writing(self.out):
            final = staging_folder(parts)
            record = write(final)
            unknown = {path.name for path in final.iterdir()} - self._names
            if unknown:
                raise ValueError(f"undeclared results: {sorted(unknown)}")
            commit(parts, self.key if key is None else as_json(key), record, self._known_names())
        roll_forward(self.out)
        ended = finished_run(self.out)
        assert ended is not None
        self.record, self._chunks = ended.record, None
        return self.record

    @property
    def _open_chunks(self) -> Chunks:
        if self._chunks is None:
            raise RuntimeError("the run has ended, or was not entered")
        return self._chunks

    def _open(self) -> None:
        clear_discarded(self.out)
        ended_now = self._unless_overwriting(roll_forward, False)
        finished = self._unless_overwriting(finished_run, None)
        self.previous = self._to_take_up(finished, ended_now)
        key = self.key
        if self.previous is not None:
            key = {**key, _EXTENDS: self.previous.digests}
        is_waiting = self._unless_overwriting(unfinished_key, None) == key
        if finished is not None and self.previous is None and not is_waiting:
            if finished.key == self.key and (ended_now or not self._overwrite):
                finished.check()
                self.record, self.unchanged = finished.record, not ended_now
                return
            if not self._overwrite:
                raise InvalidSetting(
                    f"{self.out} holds the results of another run, which differs: "
                    f"{key_difference(finished.key, self.key)}. Choose another output folder, "
                    "or give --overwrite to replace them"
                )
        if finished is None and not is_waiting and not self._overwrite:
            self._refuse_foreign_files()
        if self.previous is not None:
            self.previous.check()
        self._chunks = Chunks(self.out, key, anew=self._overwrite)
        self.resumed_from = self._chunks.rows

    def _to_take_up(self, finished: FinishedRun | None, ended_now: bool) -> FinishedRun | None:
        if finished is None or self._overwrite:
            return None
        if names := differing(finished.key, self.key):
            return finished if set(names) <= self._extends else None
        return finished if self._retry and not ended_now else None

    def _unless_overwriting(self, read: Callable[[Path], T], otherwise: T) -> T:
        """Refuse damaged content; treat it as absent if it is to be replaced."""
        try:
            return read(self.out)
        except ChecksumMismatch:
            if not self._overwrite:
                raise
            return otherwise

    def _refuse_foreign_files(self) -> None:
        for name in sorted(self._names):
            if (self.out / name).exists():
                raise InvalidSetting(
                    f"{self.out / name} exists, and no {RECORD} says which run wrote it. Choose "
                    "another output folder, or give --overwrite to replace it"
                )

    def _known_names(self) -> set[str]:
        """Return names of results that an earlier run, of any version, may have left."""
        try:
            finished = finished_run(self.out)
        except ChecksumMismatch:
            finished = None
        return self._names | (set(finished.digests) if finished is not None else set())
