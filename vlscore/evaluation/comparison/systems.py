"""Tables and finished evaluations of several systems, joined into one set of studies.

Tables whose studies or references differ are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from vlscore.core import LIMIT, FinishedRun, counted, finished_run, require_same_images
from vlscore.data import (
    ColumnNames,
    Study,
    StudyTable,
    checked_limit,
    how_ids_differ,
    is_missing,
    open_studies,
    read_rows,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.scored import BASELINE, signatures_in
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
        return () if self.run is None else tuple(signatures_in(self.run))

    @property
    def image_root(self) -> str | None:
        """Return the folder that the finished evaluation read images from, if it was told one."""
        return None if self.run is None else self.run.key.get("image_root")


@dataclass(frozen=True)
class Systems:
    """The candidates of k systems for the same n studies.

    Attributes:
        studies: id, reference and its parts of each study, in the order of the first table.
        candidates: name of the system -> n candidates.
        images: study id -> the study with its images, or why it has none; empty if none are read.
        notes: what a user should know, one sentence each.
        failures: rows that cannot be used, with the name of their system as `row`.
    """

    studies: tuple[Study, ...]
    candidates: Mapping[str, Sequence[str]]
    images: Mapping[str, Study | Failure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


def open_sources(
    systems: Sequence[str | Path | Source],
    columns: ColumnNames | None = None,
    own_columns: Mapping[str, Mapping[str, str]] | None = None,
    limit: int | None = None,
) -> tuple[Source, ...]:
    """Open the systems of a user: tables, or folders of `vlscore evaluate`; "name=path" names one.

    Args:
        systems: a Source is open already.
        columns: other names of columns, in all tables.
        own_columns: name of a system -> other names of columns in its table alone.
        limit: compare only so many studies, the first ones of the first system.

    Raises: InvalidTable, InvalidSetting.
    """
    if not systems:
        raise InvalidSetting("no system to compare: name at least one")
    own_columns, names = own_columns or {}, _names_of(systems)
    if unknown := [name for name in own_columns if name not in names]:
        raise InvalidSetting(
            f"columns are named of a system {unknown[0]}, but the systems are {', '.join(names)}"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSetting(
            f"two systems would be called {', '.join(twice)}; name them, as in "
            f"first={split_name(str(systems[0]))[1]}"
        )
    if reserved := [name for name in names if name.startswith(BASELINE)]:
        raise InvalidSetting(
            f"{reserved[0]}: names that begin with {BASELINE!r} are reserved for baselines"
        )
    opened = tuple(
        each
        if isinstance(each, Source)
        else _opened(
            name,
            split_name(each)[1],
            replace(columns or ColumnNames(), **own_columns.get(name, {})),
        )
        for name, each in zip(names, systems, strict=True)
    )
    if limit is None:
        return opened
    first = opened[0]
    own = limit if first.table.limit is None else min(limit, first.table.limit)
    return (replace(first, table=replace(first.table, limit=checked_limit(own))), *opened[1:])


def _names_of(systems: Sequence[str | Path | Source]) -> list[str]:
    """Return the names of systems: with its folder where two files have one name."""
    named = [(s.name, Path()) if isinstance(s, Source) else split_name(s) for s in systems]
    stems = [path.stem if path.is_file() else path.name for _, path in named]
    unnamed = [stem for (name, _), stem in zip(named, stems, strict=True) if name is None]
    return [
        name or (stem if unnamed.count(stem) == 1 else f"{path.resolve().parent.name}/{stem}")
        for (name, path), stem in zip(named, stems, strict=True)
    ]


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

    Where only the first rows of the first table are read, the others have the same studies.

    Args:
        images: opened for images alone.
        ignores_blanks: take references that differ in white space alone for the same; those of
            the first table are used, and a note says of how many studies.

    Raises: InvalidTable where studies or references differ, saying in what.
    """
    read = [_Read(source.table.path, *_rows_of(source)) for source in sources]
    first = read[0]
    if (limit := sources[0].table.limit) is not None:
        read = [first, *(_of_same(first, other, limit) for other in read[1:])]
    notes = [note for source in sources for note in source.table.notes]
    failures = []
    for source, (path, _, bad) in zip(sources, read, strict=True):
        failures += [Failure(source.name, row.id, f"row {row.row}: {row.reason}") for row in bad]
        if bad:
            first_one = bad[0]
            name = f" ({first_one.id})" if first_one.id else ""
            notes.append(
                f"{path}: {counted(len(bad), 'row')} left out that cannot be used; the first is "
                f"row {first_one.row}{name}: {first_one.reason}"
            )
    for other in read[1:]:
        if unlike := _require_same(first, other, ignores_blanks):
            notes.append(
                f"the references of {_ids(unlike)} differ in blanks alone between "
                f"{first.path} and {other.path}; those of the first are used"
            )
    if not first.studies:
        row = first.bad[0]
        raise InvalidTable(f"{first.path}: no row can be used; row {row.row}: {row.reason}")
    found: dict[str, Study | Failure] = {}
    for image in images if images is not None else ():
        # Of rows with one id the last can be the study; an unreadable one never replaces it.
        if isinstance(image, Study) or (image.id is not None and image.id not in found):
            found[str(image.id)] = image
    return Systems(
        tuple(first.studies.values()),
        {
            source.name: [own.studies[name].candidate or "" for name in first.studies]
            for source, own in zip(sources, read, strict=True)
        },
        found,
        tuple(notes),
        tuple(failures),
    )


class _Read(NamedTuple):
    """Rows of one table: the studies by id, and those that cannot be used."""

    path: Path
    studies: dict[str, Study]
    bad: list[Failure]


def _rows_of(source: Source) -> tuple[dict[str, Study], list[Failure]]:
    studies: dict[str, Study] = {}
    bad: list[Failure] = []
    for row in source.table:
        if isinstance(row, Study):
            studies[row.id] = row
        elif row.id in studies:
            raise InvalidTable(f"{source.table.path}, row {row.row}: {row.reason}")
        else:
            bad.append(row)
    return studies, bad


def _of_same(first: _Read, other: _Read, limit: int) -> _Read:
    """Return the rows of another table that belong to the studies of the first."""
    known = {*first.studies, *(row.id for row in first.bad if row.id)}
    studies = {name: study for name, study in other.studies.items() if name in known}
    bad = [row for row in other.bad if (row.id in known if row.id else int(row.row or 0) <= limit)]
    return _Read(other.path, studies, bad)


def _require_same(first: _Read, other: _Read, ignores_blanks: bool) -> list[str]:
    """Return the studies whose references differ in blanks alone, where that is ignored.

    Raises: InvalidTable where studies or references differ. It has no text of a report.
    """
    differences = []
    for one, two in ((first, other), (other, first)):
        if lacking := [name for name in two.studies if name not in one.studies]:
            reasons = sorted({row.reason for row in one.bad if row.id in set(lacking)})
            because = f" ({'; '.join(reasons)})" if reasons else ""
            differences.append(f"{one.path} lacks {_ids(lacking)} of {two.path}{because}")
    alone = [
        [name for name in one.studies if name not in two.studies]
        for one, two in ((first, other), (other, first))
    ]
    if near := how_ids_differ(*alone):
        differences.append(near)
    texts = {
        name: (study.reference or "", other.studies[name].reference or "")
        for name, study in first.studies.items()
        if name in other.studies
    }
    unlike = {name: both for name, both in texts.items() if both[0] != both[1]}
    blank = [name for name, (one, two) in unlike.items() if one.split() == two.split()]
    wrong = [name for name in unlike if name not in set(blank)]
    if blank and not ignores_blanks:
        differences.append(
            f"the references of {_ids(blank)} differ in blanks alone; --ignore-blanks "
            f"(ignores_blanks=True) takes those of {first.path} for all"
        )
    if wrong:
        pairs = enumerate(zip_longest(*texts[wrong[0]]), start=1)
        start = next(number for number, (one, two) in pairs if one != two)
        differences.append(
            f"the references of {_ids(wrong)} differ between {first.path} and {other.path}: of "
            f"{wrong[0]}, from character {start} on"
        )
    if differences:
        raise InvalidTable(
            "systems are compared over the same studies with the same references; "
            + "; ".join(differences)
        )
    return blank


def _ids(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_IDS]) + (", ..." if len(names) > _SHOWN_IDS else "")
    return f"{counted(len(names), 'study')} ({shown})"


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
    opened = open_studies(
        table,
        needs=_TEXTS,
        columns=ColumnNames(**run.key["columns"]),
        limit=run.key.get(LIMIT),
    )
    if opened.sha256 != run.key["table_sha256"]:
        raise InvalidTable(
            f"{table} was changed since {path} was computed from it: evaluate it again, or give "
            "the table instead of the folder"
        )
    return Source(name, opened, run)


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
