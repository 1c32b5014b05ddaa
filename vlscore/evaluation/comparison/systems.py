"""Tables and finished evaluations of several systems, joined into one set of studies.

Tables whose studies or references differ are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from vlscore.core import FinishedRun, finished_run
from vlscore.data import (
    BadRow,
    ColumnNames,
    Study,
    StudyTable,
    is_missing,
    open_studies,
    read_rows,
)
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.evaluation.scoring.scored_rows import ScoredRows, require_same_images
from vlscore.metrics import Metric

_TEXTS = {"reference", "candidate"}
# Ids that a message shows.
_SHOWN_IDS = 5


@dataclass(frozen=True)
class Source:
    """Input of one system: its table, or the folder of a finished evaluation.

    Attributes:
        name: of the system in all tables.
        table: its studies with candidates.
        run: the finished evaluation that holds its values; None where they are to be computed.
    """

    name: str
    table: StudyTable
    run: FinishedRun | None = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of the finished evaluation; none for a table."""
        return () if self.run is None else tuple(ScoredRows.read(self.run).metrics)


@dataclass(frozen=True)
class Systems:
    """The candidates of k systems for the same n studies.

    Attributes:
        studies: id, reference and its parts of each study, in the order of the first table.
        candidates: name of the system -> n candidates.
        images: study id -> the study with its images, or why it has none; empty if none are read.
        notes: what a user should know, one sentence each.
    """

    studies: tuple[Study, ...]
    candidates: Mapping[str, Sequence[str]]
    images: Mapping[str, Study | BadRow] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def open_sources(
    given: Sequence[str | Path],
    columns: ColumnNames | None = None,
    own_columns: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Source, ...]:
    """Open the systems of a user: tables, or folders of `vlscore evaluate`; "name=path" names one.

    Args:
        columns: other names of columns, in all tables.
        own_columns: name of a system -> other names of columns in its table alone.

    Raises: InvalidTable, InvalidSetting.
    """
    own_columns = own_columns or {}
    named = [split_name(each) for each in given]
    stems = [path.stem if path.is_file() else path.name for name, path in named if name is None]
    sources = []
    for name, path in named:
        stem = path.stem if path.is_file() else path.name
        longer = f"{path.resolve().parent.name}/{stem}"
        shown = name or (stem if stems.count(stem) == 1 else longer)
        own = own_columns.get(shown, {})
        sources.append(_opened(shown, path, replace(columns or ColumnNames(), **own)))
    names = [source.name for source in sources]
    if unknown := [name for name in own_columns if name not in names]:
        raise InvalidSetting(
            f"columns are named of a system {unknown[0]}, but the systems are {', '.join(names)}"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSetting(
            f"two systems would be called {', '.join(twice)}; name them, as in first={named[0][1]}"
        )
    if reserved := [name for name in names if name.startswith(BASELINE)]:
        raise InvalidSetting(
            f"{reserved[0]}: names that begin with {BASELINE!r} are reserved for baselines"
        )
    return tuple(sources)


def table_with_images(sources: Sequence[Source]) -> Source:
    """Return the first system whose table has a column of images; images are read from it alone.

    Raises: InvalidTable where no table has one.
    """
    for source in sources:
        if has_images(source):
            return source
    names = sorted({source.table.columns.image for source in sources})
    raise InvalidTable(
        f"no table has a column {' or '.join(names)} with the images, which the metrics look at: "
        f"{', '.join(str(source.table.path) for source in sources)}. Name it "
        "(--rename image=NAME), or compute metrics of texts alone (--text-only)"
    )


def has_images(source: Source) -> bool:
    """Return whether its table has a column of images."""
    return source.table.columns.image in source.table.found


def join(
    sources: Sequence[Source], images: StudyTable | None = None, *, ignores_blanks: bool = False
) -> Systems:
    """Read all tables and join them by study id.

    Args:
        images: opened for images alone.
        ignores_blanks: take references that differ in white space alone for the same; those of
            the first table are used, and a note says of how many studies.

    Raises: InvalidTable where studies or references differ, saying in what.
    """
    read = [_Read(source) for source in sources]
    first = read[0]
    for other in read[1:]:
        _check_same(first, other, ignores_blanks)
    notes = [note for source in sources for note in source.table.notes]
    notes += [f"{each.source.table.path}, {bad}; left out" for each in read for bad in each.bad]
    notes += [note for other in read[1:] if (note := _note_of_blanks(first, other))]
    if not first.studies:
        raise InvalidTable(f"{first.source.table.path}: no row can be used; {first.bad[0]}")
    found: dict[str, Study | BadRow] = {}
    for row in images if images is not None else ():
        if isinstance(row, BadRow):
            if row.id is not None:
                found.setdefault(row.id, row)
        else:
            found[row.id] = row
    return Systems(
        studies=tuple(first.studies.values()),
        candidates={
            each.source.name: [each.studies[name].candidate or "" for name in first.studies]
            for each in read
        },
        images=found,
        notes=tuple(notes),
    )


class _Read:
    """One table in memory."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.studies: dict[str, Study] = {}
        self.bad: list[str] = []
        self.reasons: dict[str, str] = {}
        for row in source.table:
            if isinstance(row, Study):
                self.studies[row.id] = row
                continue
            if row.id in self.studies:
                raise InvalidTable(f"{source.table.path}, row {row.row}: {row.reason}")
            name = f" ({row.id})" if row.id is not None else ""
            self.bad.append(f"row {row.row}{name}: {row.reason}")
            if row.id is not None:
                self.reasons[row.id] = row.reason


def _same_but_blanks(first: _Read, other: _Read, name: str) -> bool:
    texts = (each.studies[name].reference or "" for each in (first, other))
    one, two = (" ".join(text.split()) for text in texts)
    return one == two


def _note_of_blanks(first: _Read, other: _Read) -> str:
    """Return a note where references differ in blanks alone; empty where they do not."""
    differing = [
        name
        for name, study in other.studies.items()
        if name in first.studies and study.reference != first.studies[name].reference
    ]
    if not differing:
        return ""
    return (
        f"the references of {_ids(differing)} differ in blanks alone between "
        f"{first.source.table.path} and {other.source.table.path}; those of the first are used"
    )


def _check_same(first: _Read, other: _Read, ignores_blanks: bool) -> None:
    here, there = first.source.table.path, other.source.table.path
    differences = []
    for one, two in ((first, other), (other, first)):
        if lacking := [name for name in two.studies if name not in one.studies]:
            reasons = {one.reasons[name] for name in lacking if name in one.reasons}
            because = f" ({'; '.join(sorted(reasons))})" if reasons else ""
            differences.append(
                f"{one.source.table.path} lacks {_ids(lacking)} of {two.source.table.path}{because}"
            )
    both = [name for name in first.studies if name in other.studies]
    wrong = [n for n in both if first.studies[n].reference != other.studies[n].reference]
    alike = [name for name in wrong if _same_but_blanks(first, other, name)]
    if alike and ignores_blanks:
        wrong = [name for name in wrong if name not in set(alike)]
        alike = []
    if alike:
        differences.append(
            f"the references of {_ids(alike)} differ in blanks alone; --ignore-blanks "
            f"(ignores_blanks=True) takes those of {here} for all"
        )
        wrong = [name for name in wrong if name not in set(alike)]
    if wrong:
        differences.append(
            f"the references of {_ids(wrong)} differ between {here} and {there}: of {wrong[0]}, "
            f"from character {_first_difference(first, other, wrong[0])} on"
        )
    if differences:
        raise InvalidTable(
            "systems are compared over the same studies with the same references; "
            + "; ".join(differences)
        )


def _ids(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_IDS]) + (", ..." if len(names) > _SHOWN_IDS else "")
    return f"{len(names)} {'studies' if len(names) > 1 else 'study'} ({shown})"


def _first_difference(one: _Read, other: _Read, name: str) -> int:
    """Return where two references begin to differ, from 1; a message has no text of a report."""
    texts = (each.studies[name].reference or "" for each in (one, other))
    pairs = enumerate(zip_longest(*texts), start=1)
    return next(number for number, (first, second) in pairs if first != second)


def split_name(given: str | Path) -> tuple[str | None, Path]:
    """Return name and path of "name=path"; None and the path where it names nothing."""
    text = str(given)
    name, separator, path = text.partition("=")
    if separator and name and path and not Path(text).exists():
        return name, Path(path)
    return None, Path(text)


def _opened(name: str, path: Path, columns: ColumnNames | None) -> Source:
    if not path.is_dir():
        return Source(name, open_studies(path, needs=_TEXTS, columns=columns))
    run = finished_run(path)
    if run is None:
        raise InvalidTable(
            f"{path} is a folder without run.json: give a table, or the folder of a finished "
            "`vlscore evaluate`"
        )
    run.check()
    if "metrics" not in run.key or "table_sha256" not in run.key:
        raise InvalidTable(
            f"{path / 'run.json'} is not that of `vlscore evaluate`: give the folder of a finished "
            "evaluation, or a table"
        )
    require_same_images(path)
    table = str(run.record["table"])
    if not Path(table).is_file():
        raise InvalidTable(
            f"{path / 'run.json'} names the table {table}, which is not there; its candidates and "
            "references are needed to compare. Put it there, or give the table instead of the "
            "folder"
        )
    opened = open_studies(table, needs=_TEXTS, columns=ColumnNames(**run.key["columns"]))
    if opened.sha256 != run.key["table_sha256"]:
        raise InvalidTable(
            f"{table} was changed since {path} was computed from it: evaluate it again, or give "
            "the table instead of the folder"
        )
    return Source(name, opened, run)


def patients_of(column: str, sources: Sequence[Source], ids: Sequence[str]) -> list[str]:
    """Return the patient of each study, from the first table that has the column.

    A study without an entry is a patient of its own.

    Args:
        column: of the patient.
        ids: of the n studies.

    Raises: InvalidTable where no table has the column, or a study has two patients.
    """
    found = column_of(column, sources, ids)
    return [found.get(name, f"\0{name}") for name in ids]


def column_of(column: str, sources: Sequence[Source], ids: Sequence[str]) -> dict[str, str]:
    """Return study -> entry of a column of the first table that has it; without empty entries.

    Raises: InvalidTable where no table has the column, or a study has two entries.
    """
    source = next((each for each in sources if column in each.table.found), None)
    if source is None:
        paths = ", ".join(str(each.table.path) for each in sources)
        raise InvalidTable(f"no table has a column {column}: {paths}")
    table = source.table
    if not table.has_ids:
        raise InvalidTable(
            f"{table.path} has no column of ids, so its column {column} cannot be joined"
        )
    wanted, found = set(ids), dict[str, str]()
    for row, record in read_rows(table.path, {table.id_column, column}):
        if isinstance(record, str):
            continue
        name, entry = (
            "" if is_missing(record.get(each)) else str(record[each])
            for each in (table.id_column, column)
        )
        if name not in wanted or not entry:
            continue
        if found.setdefault(name, entry) != entry:
            raise InvalidTable(f"{table.path}, row {row}: study {name} has two entries of {column}")
    return found
