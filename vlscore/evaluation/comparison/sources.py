"""Tables and finished evaluations of systems, opened."""

import filecmp
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlscore.core import (
    LIMIT,
    FinishedRun,
    check_names,
    finished_run,
    first_of,
    require_same_images,
    with_noun,
)
from vlscore.data import (
    ColumnNames,
    ReportTable,
    Study,
    StudyTable,
    checked_limit,
    images_in,
    is_missing,
    open_studies,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.scored import BASELINE, no_evaluation, signatures_in
from vlscore.metrics import Metric

_TEXTS = {"reference", "candidate"}


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
    def has_images(self) -> bool:
        """Return whether its table has a column of images."""
        return self.table.columns.image in self.table.found


def open_sources(
    systems: Sequence[str | Path | Source],
    columns: ColumnNames | Mapping[str, str] | None = None,
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
    check_names("systems", systems)
    if not systems:
        raise InvalidSetting("no system to compare: name at least one")
    own_columns, names = own_columns or {}, _names_of(systems)
    if unknown := [name for name in own_columns if name not in names]:
        raise InvalidSetting(
            f"columns are renamed for the system {unknown[0]}, but the systems are "
            f"{', '.join(names)}"
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
            replace(ColumnNames.named(columns), **own_columns.get(name, {})),
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


def open_images(sources: Sequence[Source], image_root: str | Path | None) -> StudyTable:
    """Open the first table that has a column of images; images are read from it alone.

    Args: image_root: default: that of the finished evaluation, or the folder of the table.
    Raises: InvalidTable where no table has one.
    """
    for source in sources:
        if source.has_images:
            return _opened_for_images(source, image_root)
    names = sorted({source.table.columns.image for source in sources})
    raise InvalidTable(
        f"no table has a column {' or '.join(names)} with the images, which the metrics look at: "
        f"{', '.join(str(source.table.path) for source in sources)}. Name it "
        "(--rename image=NAME), or compute metrics of texts alone (--text-only)"
    )


def _opened_for_images(source: Source, image_root: str | Path | None) -> StudyTable:
    if image_root is None and source.run is not None:
        image_root = source.run.key.get("image_root")
    path, columns = source.table.path, source.table.columns
    return open_studies(path, needs={"image"}, image_root=image_root, columns=columns)


def image_notes(
    sources: Sequence[Source], ids: Sequence[str], image_root: str | Path | None
) -> list[str]:
    """Return a note for each table that names no image for studies that have one elsewhere.

    Images are read from the first table that has them. The same content under another path is the
    same image.

    Raises: InvalidTable where a study has other images in another table.
    """
    tables = [_opened_for_images(each, image_root) for each in sources if each.has_images]
    if len(tables) < 2:
        return []
    first, *others = tables
    wanted, notes = set(ids), []
    used = {study.id: study for study in _studies_of(first, wanted)}
    for other in others:
        theirs = {study.id: study for study in _studies_of(other, wanted)}
        same = {name: _same_image(used[name], theirs.get(name)) for name in used}
        if wrong := [name for name, is_same in same.items() if is_same is False]:
            raise InvalidTable(
                f"{other.path} has other images than {first.path} for "
                f"{with_noun(len(wrong), 'study')} ({first_of(wrong)}): correct the paths, or "
                f"leave the column {other.columns.image} out of the table with wrong images"
            )
        if absent := [name for name, is_same in same.items() if is_same is None]:
            notes.append(
                f"{other.path} has no image that is there for {with_noun(len(absent), 'study')} "
                f"({first_of(absent)}): images are those of {first.path}"
            )
    return notes


def _studies_of(table: StudyTable, wanted: Collection[str]) -> Iterator[Study]:
    return (row for row in table if isinstance(row, Study) and row.id in wanted)


def _same_image(one: Study, other: Study | None) -> bool | None:
    """Return whether two rows of a study share an image; None where only the first has one.

    Without the image of the first table the study is listed as failed, whatever the other has.
    """
    files = [_files_of(study) for study in (one, other)]
    if files[0] & files[1]:
        return True
    there = [[file for file in own if os.path.isfile(file)] for own in files]
    if not all(there):
        return None if there[0] else True
    return any(filecmp.cmp(a, b, shallow=False) for a in there[0] for b in there[1])


def _files_of(study: Study | None) -> set[str]:
    found = set()
    for image in study.images if study is not None else ():
        if isinstance(image, Path):
            parts = images_in(image) if image.is_dir() else (image,)
            found |= {os.path.realpath(part) for part in parts}
    return found


def training_images(
    reports: ReportTable, images: StudyTable, image_root: str | Path | None
) -> StudyTable | None:
    """Open the table of training reports with its images; None where it has no column of them.

    Args: images: of the studies; the column may have the same name.
    """
    names = [n for n in (images.columns.image, ColumnNames.image) if n in reports.found]
    if not names:
        return None
    columns = {"id": reports.id_column, "image": names[0]}
    if not reports.by_section:
        (columns["reference"],) = reports.sources
    needs = {"image", "reference"}
    return open_studies(reports.path, needs=needs, image_root=image_root, columns=columns)


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
        raise no_evaluation(run)
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
    """Return study -> entry of a column, of all tables that have it; without empty entries.

    Raises: InvalidTable where no table has the column, or the entries of a study differ.
    """
    tables = [each.table for each in sources if column in each.table.found]
    if not tables:
        paths = ", ".join(str(each.table.path) for each in sources)
        raise InvalidTable(f"no table has a column {column}: {paths}")
    wanted, found, origin = set(ids), dict[str, str](), dict[str, Path]()
    for table in tables:
        unlike = []
        for row in replace(table, unique=False, limit=None).with_roles((), also=[column]):
            if isinstance(row, Failure) or row.id not in wanted:
                continue
            entry = row.extra.get(column)
            # A table with empty entries may store integers as floats.
            entry = int(entry) if isinstance(entry, float) and entry.is_integer() else entry
            if is_missing(entry) or found.setdefault(row.id, str(entry)) == str(entry):
                origin.setdefault(row.id, table.path)
                continue
            if origin[row.id] == table.path:
                raise InvalidTable(
                    f"{table.path}, row {row.row}: study {row.id} has two entries of {column}"
                )
            unlike.append(row.id)
        if unlike:
            raise InvalidTable(
                f"the column {column} differs between {origin[unlike[0]]} and {table.path} for "
                f"{with_noun(len(unlike), 'study')} ({first_of(unlike)}): correct the entries, or "
                "give the column another name in the table whose entries are not meant"
            )
    return found


def column_notes(columns: Sequence[str], sources: Sequence[Source]) -> list[str]:
    """Return a note for each column that some of the tables lack."""
    notes = []
    for column in columns:
        lacking = [str(s.table.path) for s in sources if column not in s.table.found]
        if 0 < len(lacking) < len(sources):
            has = "have" if len(lacking) > 1 else "has"
            notes.append(
                f"{', '.join(lacking)} {has} no column {column}: it is read from the other tables"
            )
    return notes
