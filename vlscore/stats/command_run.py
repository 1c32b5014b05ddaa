"""Result of a command: its folder, its content, and notes for the user."""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from vlscore.core import RECORD, ResumableFolder, frame, from_cell, from_plain, reading_result
from vlscore.stats.results import FAILURES, Failure
from vlscore.stats.tables import TextTable, tables_of

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Run:
    """The result of a command: the same for a new run, a resumed one, and one that ended before.

    A command has a class of its own, which names its files.

    Attributes:
        folder: with the results and run.json.
        facts: content of run.json.
        content: numbers, tables and failures; content of `content_file`.
        resumed_from: rows that an earlier, stopped call had done.
        unchanged: everything was there already; nothing was computed.
        call_notes: what a user should know of this call, besides the notes in run.json.
        content_file: name of the file that holds `content`.
        results: names of all files that the command can write.
        rows: entry of `content` with the rows of `to_pandas`.
    """

    folder: Path
    facts: Mapping[str, Any]
    content: dict[str, Any]
    resumed_from: int = 0
    unchanged: bool = False
    call_notes: tuple[str, ...] = ()

    content_file: ClassVar[str] = RECORD
    results: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[str] = ""

    @classmethod
    def make(
        cls,
        out: str | Path,
        key: Mapping[str, Any],
        compute: Callable[[ResumableFolder], Mapping[str, Any] | None],
        *,
        overwrite: bool = False,
        extends: Collection[str] = (),
        notes: Iterable[str] = (),
    ) -> Self:
        """Enter the folder, compute what it lacks, and return what it holds.

        Args:
            out, key, overwrite, extends: see `ResumableFolder`.
            compute: computes and finishes the run; returns values for further attributes of the
                class. It is not called where the run ended before.
            notes: `call_notes`.

        Raises: whatever `ResumableFolder` and `compute` raise; ChecksumMismatch for a result file
            that holds something else.
        """
        with ResumableFolder(
            out, key, results=cls.results, overwrite=overwrite, extends=extends
        ) as folder:
            computed = None if folder.record is not None else compute(folder)
            return cls.of(folder, notes, **(computed or {}))

    @classmethod
    def of(
        cls,
        folder: ResumableFolder,
        notes: Iterable[str] = (),
        *,
        record: dict[str, Any] | None = None,
        **further: Any,
    ) -> Self:
        """Return the run whose folder has ended.

        Args:
            notes: `call_notes`.
            record: content of run.json; default: the folder's own.
            further: attributes of the class.
        """
        facts = content = folder.record if record is None else record
        assert facts is not None
        assert content is not None
        path = folder.out / cls.content_file
        with reading_result(path):
            if cls.content_file != RECORD:
                content = json.loads(path.read_text(encoding="utf-8"))
            _check(content)
        values = {
            "resumed_from": folder.resumed_from,
            "unchanged": folder.unchanged,
            "call_notes": tuple(notes),
            **further,
        }
        return cls(folder.out, facts, content, **values)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know besides, one sentence each."""
        return (*self.call_notes, *self.facts.get("notes", ()))

    @property
    def tables(self) -> list[TextTable]:
        """The tables as they are printed."""
        return tables_of(self.content)

    @property
    def signatures(self) -> list[str]:
        """What the numbers of each metric depend on."""
        return list(self.content.get("signatures", {}).values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `--format json` prints it."""
        return dict(self.content)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a record of `content[rows]`; intervals in columns. Needs pandas."""
        return frame(self.content[self.rows], self.content.get("signatures"))

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """The first failures of `content`, or of failures.csv, each once; all without a count."""
        if "failures" not in self.content:
            found = dict.fromkeys(_read_failures(self.folder / FAILURES))
            return list(found)[:count]
        return [
            Failure(each["row"], each["id"] or "", each["reason" if "reason" in each else "error"])
            for each in self.content["failures"][:count]
        ]


def _check(content: Mapping[str, Any]) -> None:
    """Raise ValueError, ... for content of other types than a command writes."""
    tables_of(content)
    from_plain(dict[str, str], content.get("signatures", {}))
    from_plain(list[str], content.get("notes", []))
    failures = content.get("failures", [])
    for each in failures if isinstance(failures, list) else ():
        from_plain(str | None, each["id"])
        from_plain(str, each["reason" if "reason" in each else "error"])


def _read_failures(path: Path) -> Iterator[Failure]:
    """Read a table with columns row, id, error and maybe others."""
    with path.open(encoding="utf-8", newline="") as stream:
        for each in csv.DictReader(stream):
            yield Failure(int(each["row"]), from_cell(each["id"]), from_cell(each["error"]))
