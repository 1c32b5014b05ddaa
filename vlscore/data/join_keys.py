"""The key that joins two files of reports: columns that both files have, or else nothing.

A wrong join gives every candidate the reference of another study, and looks like a bad generator.
So rows are joined by a column that names studies in both files, and by their order only where the
user says so, or where the files hold nothing but one report a line.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from vlscore.data.cells import id_of
from vlscore.errors import InvalidStudy, InvalidTable

if TYPE_CHECKING:
    from vlscore.data.tables import Table

# Names of columns of ids, without case, blanks and signs; then others that name one study.
_IDS = ("id", "studyid")
_KEYS = (
    *_IDS,
    *("study", "studyno", "studynumber", "studyuid", "studyinstanceuid", "accession"),
    *("accessionnumber", "accessionno", "dicomid", "dicom", "imageid", "imgid", "uid", "uuid"),
    *("sopinstanceuid", "seriesinstanceuid", "examid", "examinationid", "caseid", "case"),
    *("reportid", "sampleid", "recordid", "questionid", "identifier", "key", "filename", "file"),
    *("filepath", "path", "image", "images", "imagename", "imagefile", "imagepath", "img"),
    *("imgpath", "imgname", "dicompath", "pathfrontal", "name"),
)
_NAMED = 5


def plain_column(name: str) -> str:
    """Return a name, as of a column, in lower case and without blanks and signs.

    >>> plain_column("Study ID"), plain_column("study_id")
    ('studyid', 'studyid')
    """
    return re.sub(r"[\W_]+", "", name).casefold()


@dataclass(frozen=True, eq=False)
class JoinedFile:
    """One of two files that are joined.

    Attributes:
        path: the file.
        role: "references" or "candidates".
        records: number and content of each row, or why it cannot be read.
        texts: columns of the reports.
        is_lines: whether the file has no columns, but one report a line.
        named: column of ids that the user named; None for none.
    """

    path: Path
    role: str
    records: Sequence[tuple[int, Mapping[str, Any] | str]]
    texts: Collection[str]
    is_lines: bool = False
    named: str | None = None

    @cached_property
    def columns(self) -> dict[str, tuple[str | None, ...]]:
        """Return name of a column -> the id in each row, None for an empty or odd cell."""
        rows = [record for _, record in self.records if not isinstance(record, str)]
        names = dict.fromkeys(name for row in rows for name in row if name not in self.texts)
        return {name: tuple(_as_id(row.get(name), name) for row in rows) for name in names}

    @property
    def id_column(self) -> str | None:
        """Return the column that the user named, else one that is called id or study_id."""
        if self.named is not None:
            return self.named
        exact = [name for name in ("id", "study_id") if name in self.columns]
        return next(iter([*exact, *(n for n in self.columns if plain_column(n) in _IDS)]), None)

    @cached_property
    def names(self) -> dict[str, frozenset[str | None]]:
        """Return column -> its values, of columns with another value in each row.

        Columns that merely number the rows of their file are left out.
        """
        found = {}
        for column, values in self.columns.items():
            numbers = [tuple(str(k + first) for k in range(len(values))) for first in (0, 1)]
            every = frozenset(values)
            if None not in every and len(every) == len(values) and values not in numbers:
                found[column] = every
        return found


def key_columns(
    ours: JoinedFile, theirs: JoinedFile, by_order: bool = False
) -> tuple[str, str] | None:
    """Return the columns that join two files, None for their order.

    Raises: InvalidTable where no column does, or another column of both files contradicts it.
    """
    shared = _shared(ours, theirs)
    if by_order:
        _check_order(ours, theirs, shared)
        return None
    if ours.is_lines and theirs.is_lines:
        return None
    ids = ours.id_column, theirs.id_column
    if ids[0] is not None and ids[1] is not None:
        key = ids[0], ids[1]
    else:
        known = [pair for pair in shared if plain_column(pair[0]) in _KEYS]
        usable = [pair for pair in known if _joins(ours, theirs, pair)]
        if ours.named or theirs.named or not usable:
            raise InvalidTable(_no_key(ours, theirs))
        key = min(usable, key=lambda pair: _KEYS.index(plain_column(pair[0])))
    if not (ours.named or theirs.named):
        _check_others(ours, theirs, key, shared)
    return key


def _shared(ours: JoinedFile, theirs: JoinedFile) -> list[tuple[str, str]]:
    """Return the columns of one name, by their names in both files."""
    other = {plain_column(name): name for name in reversed(list(theirs.columns))}
    return [(n, other[plain_column(n)]) for n in ours.columns if plain_column(n) in other]


def _joins(ours: JoinedFile, theirs: JoinedFile, key: tuple[str, str]) -> bool:
    """Return whether two columns name rows, and have a value in common."""
    one, two = (side.columns[name] for side, name in zip((ours, theirs), key, strict=True))
    are_names = all(None not in each and len(set(each)) == len(each) for each in (one, two))
    return are_names and not set(one).isdisjoint(two)


def _are_same(ours: JoinedFile, theirs: JoinedFile, key: tuple[str, str]) -> bool:
    """Return whether two columns hold the same names of rows, in any order."""
    one, two = ours.names.get(key[0]), theirs.names.get(key[1])
    return one is not None and one == two


def _check_order(ours: JoinedFile, theirs: JoinedFile, shared: Sequence[tuple[str, str]]) -> None:
    for name in ours.texts:
        # Candidates are often next to a copy of the references.
        copies = [
            [row.get(name) for _, row in side.records if not isinstance(row, str)]
            for side in ((ours, theirs) if name in theirs.columns else ())
        ]
        if (
            copies
            and copies[0] != copies[1]
            and Counter(map(str, copies[0])) == Counter(map(str, copies[1]))
        ):
            raise InvalidTable(
                f'both files have the column "{name}", whose texts are in another order in '
                f"{theirs.path} than in {ours.path}: the rows cannot be joined by their order"
            )
    # The ids of one file may have any name in the other one.
    known = [(ours.id_column, name) for name in theirs.columns if ours.id_column is not None]
    known += [(name, theirs.id_column) for name in ours.columns if theirs.id_column is not None]
    for key in [*known, *shared]:
        if not _are_same(ours, theirs, key):
            continue
        both = ours.columns[key[0]], theirs.columns[key[1]]
        if both[0] != both[1]:
            raise InvalidTable(
                f"the rows of {theirs.path} are in another order than those of {ours.path}, by "
                f"their {_named(key)}: leave --by-order out, and join by --rename "
                f"{_rename(key)}"
            )


def _check_others(
    ours: JoinedFile, theirs: JoinedFile, key: tuple[str, str], shared: Sequence[tuple[str, str]]
) -> None:
    """Refuse a key if rows that it joins have other values in a second column of names."""
    partner = {name: row for row, name in enumerate(theirs.columns[key[1]])}
    for other in shared:
        if other == key or plain_column(other[0]) not in _KEYS:
            continue
        if not _are_same(ours, theirs, other):
            continue
        one, two = ours.columns[other[0]], theirs.columns[other[1]]
        for row, name in enumerate(ours.columns[key[0]]):
            if name is not None and name in partner and one[row] != two[partner[name]]:
                raise InvalidTable(
                    f"{ours.path} and {theirs.path} have two keys that contradict each other: "
                    f"the {_named(key)} joins {name!r}, where the {_named(other)} holds "
                    f"{one[row]!r} and {two[partner[name]]!r}. Name the right one with --rename "
                    f"{_rename(other)} or --rename {_rename(key)}"
                )


def _named(key: tuple[str, str]) -> str:
    return f'column "{key[0]}"' if key[0] == key[1] else f'columns "{key[0]}" and "{key[1]}"'


def _rename(key: tuple[str, str]) -> str:
    if key[0] == key[1]:
        return f"'id={key[0]}'"
    return f"'references.id={key[0]},candidates.id={key[1]}'"


def _no_key(ours: JoinedFile, theirs: JoinedFile) -> str:
    """Return why two files cannot be joined, and the columns that would do it."""
    have = {side.role: side.id_column for side in (ours, theirs)}
    if any(have.values()):
        side, other = (ours, theirs) if ours.id_column else (theirs, ours)
        found = f'{side.path} has the ids "{side.id_column}", and {other.path} has no such column'
    else:
        found = f"{ours.path} and {theirs.path} have no column of ids in common"
    same = [
        (one, two)
        for one in ours.columns
        for two in theirs.columns
        if _are_same(ours, theirs, (one, two))
    ]
    if same:
        advice = (
            f"The {_named(same[0])} hold{'s' if same[0][0] == same[0][1] else ''} the same values "
            f"in both: --rename {_rename(same[0])} joins by it"
        )
    else:
        listed = "; ".join(
            f"{side.path.name} has {', '.join(side.columns) or 'reports alone'}"
            for side in (ours, theirs)
        )
        advice = f"Name it with --rename candidates.id=NAME (or references.id=NAME): {listed}"
    return f"{found}. {advice}; --by-order joins the rows by their order"


def _as_id(value: Any, column: str) -> str | None:
    try:
        return id_of(value, column)
    except InvalidStudy:
        return None


# What programs do to ids -> how, and what to do about it.
_NEAR: tuple[tuple[Callable[[str], str], str], ...] = (
    (
        lambda id: id.lstrip("0") or "0",
        "by zeros at their beginning alone, which a spreadsheet removes: read the column as text, "
        "and save the file again",
    ),
    (str.casefold, "in capital letters alone"),
    (lambda id: id.removesuffix(".0"), 'by ".0" at their end alone: save them as whole numbers'),
    (lambda id: re.sub(r"\.[A-Za-z]{2,6}$", "", id), "by the suffix of a file alone"),
    (lambda id: PurePath(id.replace("\\", "/")).stem, "by the folder or suffix of a file alone"),
    (plain_column, "by blanks and signs alone"),
    (lambda id: re.sub(r"^[A-Za-z_-]+", "", id), "by letters at their beginning alone"),
)


def how_ids_differ(ours: Collection[str], theirs: Collection[str]) -> str | None:
    """Return how ids of two files without a partner differ, if they are nearly equal.

    >>> how_ids_differ(["000779"], ["779"])[:44]
    'ids differ by zeros at their beginning alone'
    """
    for change, words in _NEAR:
        known = {change(id): id for id in theirs}
        for id in ours:
            if (near := known.get(change(id))) is not None and change(id):
                return f"ids differ {words} ({id} and {near})"
    return None


def shared_ids_note(
    table: "Table[Any]",
    ids: Iterable[str],
    learnt: "Table[Any]",
    their_ids: Iterable[str],
    so: str,
) -> list[str]:
    """Return a note on studies whose id is in a table that was learnt from; none for none.

    Of a table without a column of ids, nothing is known, unless it is the same file.

    Args: so: what follows for these studies.
    """
    has_ids = all(each.id_column in each.found for each in (table, learnt))
    known = set(their_ids) if has_ids or table.sha256 == learnt.sha256 else set()
    if not (count := sum(name in known for name in ids)):
        return []
    has = "study has" if count == 1 else "studies have"
    return [f"{count:,} {has} an id that {learnt.path} has as well: {so}"]


def listed_ids(ids: Sequence[str]) -> str:
    """Return the first ids, and the number of the others.

    >>> listed_ids(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more
