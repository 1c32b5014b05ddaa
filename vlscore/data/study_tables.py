"""Tables of studies: the rules that all commands read them by."""

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.data.cells import check_encodable, is_missing, paths_of, views_of
from vlscore.data.rows import Record
from vlscore.data.study import ColumnNames, Study
from vlscore.data.tables import (
    REPORT_SECTIONS,
    ROLES,
    Table,
    check_columns,
    checked_limit,
    columns_found,
    parts_in,
    path_of,
    printable_text,
    text_in,
)
from vlscore.errors import InvalidSetting, InvalidStudy

# Column with the path of the patient's earlier image.
PRIOR = "prior"


@dataclass(frozen=True)
class StudyTable(Table[Study]):
    """A table of studies; see `open_studies`.

    Attributes:
        columns: names of the columns.
        needs: those of image, reference and candidate that every row must have.
        wants: the others that are read if a row has them.
        root: folder that image paths start from.
        also: further columns that are read.
        parts: columns that are joined to the reference if it has no column.
    """

    columns: ColumnNames
    needs: frozenset[str]
    wants: frozenset[str]
    root: Path
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def roles(self) -> frozenset[str]:
        """Those of image, reference and candidate that are read."""
        return self.needs | self.wants

    @property
    def key(self) -> dict[str, Any]:
        """Return what results depend on: bytes, columns, rows, and where the images lie."""
        root = str(self.root.resolve()) if self.root != self.path.parent else None
        return {
            **self.limit_key,
            "table_sha256": self.sha256,
            "columns": asdict(self.columns),
            "image_root": root if "image" in self.roles else None,
        }

    def image_files(self) -> Iterator[Path]:
        """Yield the path of every image that the rows name, if images are read."""
        if "image" in self.roles:
            for row in self:
                if isinstance(row, Study):
                    yield from row.files

    def with_roles(
        self, needs: Collection[str], wants: Collection[str] = (), also: Sequence[str] = ()
    ) -> "StudyTable":
        """Return the same table, opened for other roles; `needs`, ... are those of `open_studies`.

        Raises: InvalidTable if it lacks a column; InvalidSetting.
        """
        names, found, roles = self.columns, self.found, {*needs, *wants}
        if unknown := roles - set(ROLES):
            raise InvalidSetting(
                f"a study has {', '.join(ROLES)}; not {', '.join(sorted(unknown))}"
            )
        parts: tuple[str, ...] = ()
        if names.reference == ColumnNames.reference and names.reference not in found:
            parts = tuple(name for name in REPORT_SECTIONS if name in found)
        needed = {role: getattr(names, role) for role in ROLES if role in needs}
        if parts:
            needed.pop("reference", None)
        # A column that the user names must exist; under its default name it may be absent.
        named = {role: getattr(names, role) for role in ("id", *sorted(wants))}
        if "image" in roles:
            named["view"] = names.view
        needed |= {role: name for role, name in named.items() if name != getattr(ColumnNames, role)}
        check_columns(self.path, found, needed | {name: name for name in also})
        if "image" in roles and self.root != self.path.parent and not os.path.isdir(self.root):
            raise InvalidSetting(f"{self.root}: no such folder; images are searched for in it")
        present = {role for role in wants if getattr(names, role) in found}
        if parts and "reference" in wants:
            present.add("reference")
        return replace(
            self,
            needs=frozenset(needs),
            wants=frozenset(present - set(needs)),
            also=tuple(also),
            parts=parts,
        )

    def required(self, roles: Collection[str]) -> "StudyTable":
        """Return the same table, of which rows need these roles alone and have the others or not.

        Every column must be there already, as `needs` says.
        """
        needs = self.needs & frozenset(roles)
        return replace(self, needs=needs, wants=self.wants | (self.needs - needs))

    @property
    def has_priors(self) -> bool:
        """Return whether the table has the column "prior", of earlier images."""
        return PRIOR in self.found

    def _wanted(self) -> set[str]:
        names = {getattr(self.columns, role) for role in self.roles} | {self.columns.id}
        if "image" in self.roles:
            names |= {self.columns.view, PRIOR}
        return names | set(self.also) | (set(self.parts) if "reference" in self.roles else set())

    def _made(self, id: str, number: int, record: Record) -> Study:
        names, roles = self.columns, self.roles
        images: tuple[Path, ...] = ()
        views = reference = candidate = parts = prior = None
        lacking: dict[str, str] = {}
        if "image" in roles:
            with self._noting("image", lacking):
                found = paths_of(record.get(names.image), names.image, self.root)
                views = views_of(record.get(names.view), len(found), names.view)
                images = found
                if not is_missing(record.get(PRIOR)):
                    prior = paths_of(record[PRIOR], PRIOR, self.root)[0]
        if "reference" in roles:
            with self._noting("reference", lacking):
                if self.parts:
                    parts = parts_in(record, self.parts)
                    reference = " ".join(parts.values())
                elif (reference := text_in(record, names.reference)) is None:
                    raise InvalidStudy(f'column "{names.reference}" is empty')
        if "candidate" in roles:
            # An empty report is an answer of the generator and is scored.
            candidate = text_in(record, names.candidate) or ""
        extra = {name: record[name] for name in self.also if name in record}
        for name, value in extra.items():
            check_encodable([value], name)
        return Study(id, images, views, reference, candidate, number, parts, extra, prior, lacking)

    @contextlib.contextmanager
    def _noting(self, role: str, lacking: dict[str, str]) -> Iterator[None]:
        """Note why a row lacks what it need not have; raise where it must have it."""
        try:
            yield
        except InvalidStudy as error:
            if role in self.needs:
                raise
            lacking[role] = printable_text(str(error))


def open_studies(
    path: str | Path,
    *,
    needs: Collection[str] = ROLES,
    wants: Collection[str] = (),
    image_root: str | Path | None = None,
    columns: ColumnNames | Mapping[str, str] | None = None,
    also: Sequence[str] = (),
    unique: bool = True,
    limit: int | None = None,
) -> StudyTable:
    """Open a .jsonl, .json, .csv, .tsv or .parquet table of studies; docs/tables.md has the rules.

    Args:
        needs: those of "image", "reference" and "candidate" that every row must have.
        wants: the others that are read if present; a row without them is not a bad row.
        image_root: folder that image paths start from; default: the table's.
        columns: other names of columns, as in {"reference": "gt"}.
        also: further columns to read, into `Study.extra`.
        unique: treat a row that repeats an earlier id as a bad row.
        limit: read only so many rows, the first ones; None for all.

    Returns: an iterable of a Study or a Failure for every row, in order.

    Raises:
        InvalidTable: the file cannot be read, holds no row, or lacks a column.
        InvalidSetting: `image_root` is no folder, a role is unknown, or `limit` is below 1.
    """
    path = path_of(path)
    names, found = ColumnNames.named(columns), columns_found(path)
    opened = StudyTable(
        path=path,
        found=tuple(found),
        id_column=names.id,
        unique=unique,
        columns=names,
        needs=frozenset(),
        wants=frozenset(),
        root=path.parent if image_root is None else Path(image_root),
        limit=checked_limit(limit),
    )
    return opened.with_roles(needs, wants, also)


def as_table(
    table: str | Path | StudyTable,
    needs: Collection[str] = (),
    wants: Collection[str] = (),
    *,
    also: Sequence[str] = (),
    unique: bool = True,
) -> StudyTable:
    """Return a table of studies, opened for some roles: what functions do with their argument.

    Args:
        table: path; or a table that is open already, of whatever roles: its columns, the folder of
            its images and its limit count.
        needs, wants, also, unique: as of `open_studies`.

    Raises: as `open_studies`.
    """
    if not isinstance(table, StudyTable):
        return open_studies(table, needs=needs, wants=wants, also=also, unique=unique)
    return replace(table, unique=unique).with_roles(needs, wants, also)
