"""Blinded sheets that raters fill in: their layout, and the ratings in them.

A folder holds one sheet a rater, `sheet-NAME.csv`, with one row an item: a reference, a report to
be judged, and a column of counts for each category of error and significance (Yu et al. 2023).
Which study an item is of, and who chose the report, is in `key.csv` alone.

From what the oracles of several metrics chose to blinded sheets for raters.

Yu et al. 2023 (Patterns): for every study each metric chooses the report of a corpus that it scores
best, and radiologists, who do not know which metric it was, count the errors of these reports.
"""

import csv
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import (
    FinishedRun,
    ResumableFolder,
    Signature,
    atomic_write,
    cells,
    differing,
    end_decided_run,
    finished_run,
    run_record,
)
from vlscore.data import (
    ColumnNames,
    Study,
    TextPolicy,
    columns_of,
    is_missing,
    name_of,
    open_studies,
    read_rows,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import (
    Builder,
    Pair,
    RatedPairs,
    count_of,
    missing_columns,
)
from vlscore.evaluation.alignment.rated_sets import CATEGORIES
from vlscore.retrieval import ANSWERS, read_answers

KEY = "key.csv"
_SHEET, _SUFFIX = "sheet-", ".csv"
_ITEM = "item"
_KEY_COLUMNS = (_ITEM, "study_id", "candidate_id", "reference", "candidate")
# Column -> category and whether the errors matter clinically.
COUNTS = {
    f"{category}, {'significant' if significant else 'insignificant'}": (category, significant)
    for category in CATEGORIES.values()
    for significant in (True, False)
}


@dataclass(frozen=True)
class Item:
    """A report to be judged once, whoever chose it.

    Attributes:
        name: what raters see.
        study: id.
        candidates: what chose this report for the study, at least one.
        reference, text: the reports.
    """

    name: str
    study: str
    candidates: tuple[str, ...]
    reference: str
    text: str

    @property
    def pairs(self) -> list[Pair]:
        """(study, candidate) of everyone who chose the report."""
        return [(self.study, candidate) for candidate in self.candidates]


def sheet_name(rater: str) -> str:
    """Name of a rater's sheet."""
    return f"{_SHEET}{rater}{_SUFFIX}"


def write_sheet(path: Path, items: Iterable[Item]) -> None:
    """Write an empty sheet; nothing in it tells who chose a report."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow([_ITEM, "reference", "candidate", *COUNTS])
        for item in items:
            row = [item.name, item.reference, item.text, *[""] * len(COUNTS)]
            writer.writerow(cells(row))


def write_key(path: Path, items: Iterable[Item]) -> None:
    """Write what the items are."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(_KEY_COLUMNS)
        for item in items:
            for candidate in item.candidates:
                row = [item.name, item.study, candidate, item.reference, item.text]
                writer.writerow(cells(row))


def read_sheets(folder: str | Path) -> RatedPairs:
    """The ratings of a folder of sheets, unblinded by its key.

    A row whose counts are all empty is not rated yet; where some are filled in, an empty one is 0.
    Reports are read from the key: a program for tables may have changed those in a sheet.

    Raises: InvalidTable where there is no sheet, a file lacks columns, or nothing is rated. A row
    that cannot be used is in `bad`, with the name of its sheet.
    """
    folder = Path(folder)
    items = _read_key(folder / KEY)
    sheets = sorted(folder.glob(f"{_SHEET}*{_SUFFIX}"))
    if not sheets:
        raise InvalidTable(f"{folder}: has {KEY}, and no sheet: {_SHEET}NAME{_SUFFIX}, one a rater")
    builder = Builder((folder / KEY, *sheets))
    for path in sheets:
        rater = path.name.removeprefix(_SHEET).removesuffix(_SUFFIX)
        rated = _read_sheet(builder, path, rater, items)
        if rated < len(items):
            builder.notes.append(f"{path.name}: {rated} of {len(items)} reports are rated")
    return builder.build()


def _read_key(path: Path) -> dict[str, Item]:
    missing_columns(path, columns_of(path), _KEY_COLUMNS)
    found: dict[str, Item] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        try:
            name, study, candidate = (name_of(record[c], c) for c in _KEY_COLUMNS[:3])
        except InvalidStudy as error:
            raise InvalidTable(f"{path}, row {number}: {error}") from None
        earlier = found[name].candidates if name in found else ()
        reports = (str(record["reference"] or ""), str(record["candidate"] or ""))
        found[name] = Item(name, study, (*earlier, candidate), *reports)
    return found


def _read_sheet(builder: Builder, path: Path, rater: str, items: dict[str, Item]) -> int:
    """Give the ratings of one sheet to the builder; returns how many reports are rated."""
    missing_columns(path, columns_of(path), (_ITEM, *COUNTS))
    rated: set[str] = set()
    for number, record in read_rows(path):
        if isinstance(record, str):
            builder.refuse(number, f"{path.name}: {record}")
            continue
        pairs: Sequence[Pair] = ()
        try:
            name = name_of(record[_ITEM], _ITEM)
            if name not in items:
                raise InvalidStudy(f'column "{_ITEM}" holds {name!r}, which is not in {KEY}')
            if all(is_missing(record[column]) for column in COUNTS):
                continue
            pairs = items[name].pairs
            _add(builder, items[name], rater, record)
            rated.add(name)
        except InvalidStudy as error:
            for pair in pairs or (None,):
                builder.refuse(number, f"{path.name}: {error}", pair, rater)
    return len(rated)


def _add(builder: Builder, item: Item, rater: str, record: dict[str, Any]) -> None:
    for pair in item.pairs:
        builder.add_pair(pair, item.reference, item.text)
        for column, (category, significant) in COUNTS.items():
            count = 0.0 if is_missing(record[column]) else count_of(record[column], column)
            builder.add_count(pair, rater, category, significant, count)


INSTRUCTIONS = "instructions.md"

# Facts of an oracle's signature that decide which reports there were to choose from.
_SAME = {"txt": "sections of reports", "excl": "what was excluded"}
_RATER = re.compile(r"\w[\w.-]*")

_TEXT = """# How to fill in a sheet

Each row is one report to be judged (`candidate`) beside what a radiologist wrote of the same study
(`reference`). Count the errors of the candidate, by category:

{categories}

An error is *significant* where it could change what is done for the patient, else *insignificant*;
each category has a column for either. Write whole numbers. An empty cell beside others is 0. A row
that is left empty is not rated. Leave the first three columns and the name of the file as they are.
"""


@dataclass(frozen=True)
class RatingSheets:
    """Sheets that were made.

    Attributes:
        folder: with one sheet a rater, key.csv, instructions.md and run.json.
        sheets: name of the rater -> the sheet.
        items: reports to be judged.
        studies: of which they are.
        notes: what a user should know besides.
        unchanged: the same sheets had been made before.
    """

    folder: Path
    sheets: Mapping[str, Path]
    items: int
    studies: int
    notes: tuple[str, ...]
    unchanged: bool = False


def make_sheets(
    oracles: Sequence[str | Path],
    out: str | Path,
    *,
    raters: Sequence[str] = ("rater-1",),
    sample: int | None = None,
    studies: str | Path | None = None,
    seed: int = 0,
) -> RatingSheets:
    """Blinded sheets of the best report of each oracle for each study.

    A report that several oracles chose for a study is judged once. Names of items say nothing of
    where they come from, and each rater's sheet has an order of its own. `read_ratings` reads the
    folder when the sheets are filled in.

    Args:
        oracles: folders of `find_oracles`, as they are or as "name=folder"; of one table of
            studies and one index. A folder is called by its metric.
        out: folder for the results.
        raters: their names.
        sample: draw so many studies; default: all.
        studies: the table that was searched for, where it has moved.
        seed: of the studies that are drawn, and of every order.

    Raises:
        InvalidTable: a folder holds no oracle's hits, or the table is gone or another.
        InvalidSetting: the oracles chose among different reports or for different studies, or
            `out` holds other sheets.
        FolderInUse, ChecksumMismatch: as of any folder of results.
    """
    began = time.monotonic()
    for rater in raters:
        if not _RATER.fullmatch(rater):
            raise InvalidSetting(
                f"{rater!r} cannot be in the name of a file; name raters by letters, digits, -, _"
            )
    if not raters or len(set(raters)) < len(raters):
        raise InvalidSetting(f"raters need different names, these are {', '.join(raters)}")
    if sample is not None and sample < 1:
        raise InvalidSetting(f"a sample is of at least 1 study, not {sample}")
    found = _opened(oracles)
    key = {
        "oracles": {name: run.digests[ANSWERS] for name, run in found.items()},
        "raters": list(raters),
        "sample": sample,
        "seed": seed,
    }
    sheets = {rater: Path(out) / sheet_name(rater) for rater in raters}
    # A run that was killed while its results took their places is ended first.
    end_decided_run(out)
    # Sheets that were made may be filled in by now: they are neither checked nor replaced.
    facts = _made_before(Path(out), key)
    unchanged = facts is not None
    if facts is None:
        chosen, notes = _chosen(found, _references(found, studies))
        items = _items(chosen, sample, seed)
        facts = {
            "items": len(items),
            "studies": len({item.study for item in items}),
            "notes": notes,
        }
        with ResumableFolder(out, key, results=(KEY, INSTRUCTIONS, *map(sheet_name, raters))) as to:
            _write(
                to, items, raters, seed, {**facts, "seconds": round(time.monotonic() - began, 3)}
            )
    return RatingSheets(
        Path(out), sheets, facts["items"], facts["studies"], tuple(facts["notes"]), unchanged
    )


def _write(
    folder: ResumableFolder,
    items: Sequence[Item],
    raters: Sequence[str],
    seed: int,
    facts: Mapping[str, Any],
) -> None:
    def write(place: Path) -> dict[str, Any]:
        write_key(place / KEY, items)
        for number, rater in enumerate(raters):
            order = np.random.default_rng([seed, number]).permutation(len(items))
            write_sheet(place / sheet_name(rater), [items[k] for k in order])
        listed = "\n".join(f"- {category}" for category in CATEGORIES.values())
        (place / INSTRUCTIONS).write_text(_TEXT.format(categories=listed), encoding="utf-8")
        return run_record(**facts)

    folder.finish(write, rows=0)


def _made_before(out: Path, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was noted of the same sheets; raises InvalidSetting where the folder holds others."""
    earlier = finished_run(out)
    if earlier is None and not (out / KEY).exists():
        return None
    differs = differing(earlier.key, key) if earlier is not None else ["everything"]
    if differs or earlier is None:
        raise InvalidSetting(
            f"{out} holds other sheets or results, which may be filled in (what differs: "
            f"{', '.join(differs)}); choose another folder"
        )
    return earlier.record


def _opened(given: Sequence[str | Path]) -> dict[str, FinishedRun]:
    """Name -> the oracle's run; all of the same table, index, sections and exclusions."""
    found: dict[str, FinishedRun] = {}
    for each in given:
        text = str(each)
        name, separator, folder = text.partition("=")
        is_named = bool(separator and name and folder) and not Path(text).exists()
        path = Path(folder if is_named else text)
        run = finished_run(path)
        if run is None or ANSWERS not in run.digests:
            raise InvalidTable(
                f"{path}: holds no hits; give the folder that vlscore oracle --out wrote"
            )
        run.check()
        called = name if is_named else Signature.parse(run.key["signature"]).subject
        if called in found:
            raise InvalidSetting(f"two oracles would be called {called}; name them, as in b={path}")
        found[called] = run
    if not found:
        raise InvalidSetting("sheets are made of at least one oracle's hits; give its folder")
    first = next(iter(found.values()))
    for run in found.values():
        mine, theirs = _made_of(first), _made_of(run)
        if differs := [name for name in mine if mine[name] != theirs[name]]:
            raise InvalidSetting(
                f"{first.folder} and {run.folder} cannot be judged beside each other: they differ "
                f"in {', '.join(differs)}"
            )
    return found


def _made_of(run: FinishedRun) -> dict[str, Any]:
    """What must be equal for oracles to have had the same choice."""
    signature = Signature.parse(run.key["signature"])
    return {
        "the table of studies": run.key["table_sha256"],
        "the index": run.key["index"]["table"],
        **{said: signature.get(name) for name, said in _SAME.items()},
    }


def _references(found: Mapping[str, FinishedRun], table: str | Path | None) -> dict[str, str]:
    """Study -> the section of its reference that the oracles saw."""
    run = next(iter(found.values()))
    path = Path(table if table is not None else run.record["table"])
    columns = ColumnNames(**run.key["columns"])
    studies = open_studies(path, needs={"reference"}, columns=columns)
    if studies.sha256 != run.key["table_sha256"]:
        raise InvalidTable(f"{path}: is not the table that {run.folder} was made of")
    printed = Signature.parse(run.key["signature"]).get("txt") or "all"
    policy = TextPolicy(printed.split(",")[0].removeprefix("ref="))
    rows = (row.selected(policy) for row in studies if isinstance(row, Study))
    return {row.id: row.reference or "" for row in rows}


def _chosen(
    found: Mapping[str, FinishedRun], references: Mapping[str, str]
) -> tuple[list[Item], list[str]]:
    """One item a study and text, its name yet to be given, of studies that all oracles answer."""
    best: dict[str, dict[str, str]] = {}
    for name, run in found.items():
        for answer in read_answers(run.file(ANSWERS)):
            if answer.hits and answer.id is not None and answer.id in references:
                best.setdefault(answer.id, {})[name] = answer.hits[0].text
    items, left_out = [], 0
    for study, by_oracle in best.items():
        if len(by_oracle) < len(found):
            left_out += 1
            continue
        for text in dict.fromkeys(by_oracle.values()):
            candidates = tuple(name for name, chosen in by_oracle.items() if chosen == text)
            items.append(Item("", study, candidates, references[study], text))
    if not items:
        raise InvalidTable("no study has a hit of every oracle; look into their failures")
    notes = [f"{left_out} studies without a hit of every oracle are left out"] if left_out else []
    return items, notes


def _items(chosen: Sequence[Item], sample: int | None, seed: int) -> list[Item]:
    """The items of the studies that are drawn, named in an order that tells nothing."""
    rng = np.random.default_rng(seed)
    studies = list(dict.fromkeys(item.study for item in chosen))
    drawn = set(studies)
    if sample is not None and sample < len(studies):
        drawn = {studies[k] for k in rng.permutation(len(studies))[:sample]}
    kept = [item for item in chosen if item.study in drawn]
    digits = len(str(len(kept)))
    return [
        replace(kept[k], name=f"item-{number:0{digits}}")
        for number, k in enumerate(rng.permutation(len(kept)), start=1)
    ]
