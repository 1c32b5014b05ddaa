"""Blinded, randomised, balanced sheets for raters: reports of systems, or those that metrics chose.

Yu et al. 2023 (Patterns): for every study each metric chooses the report of a corpus that it scores
best, and radiologists, who do not know which metric it was, count the errors of these reports.
Rawat 2022: clinicians and lay readers rate the reports of generators and compare them in pairs.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import ResumableFolder, differing, end_decided_run, finished_run, run_record
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.ratings.questions import (
    DIMENSIONS,
    ERRORS,
    PREFERENCES,
    Question,
    questions_of,
)
from vlscore.evaluation.ratings.rated_reports import (
    Material,
    are_oracles,
    open_oracles,
    reports_of_oracles,
    reports_of_systems,
    sources_key,
)
from vlscore.evaluation.ratings.sheet_files import (
    FORMATS,
    KEY,
    QUESTIONS,
    AnyItem,
    ItemPair,
    SheetItem,
    embedded_films,
    sheet_name,
    write_csv_sheet,
    write_key,
    write_page,
    write_questions,
    write_xlsx_sheet,
)

INSTRUCTIONS = "instructions.md"

_RATER = re.compile(r"\w[\w.-]*")

_WAYS = {
    "csv": "fill in the table `sheet-NAME.csv`",
    "xlsx": "fill in the workbook `sheet-NAME.xlsx`",
    "html": "open the page `sheet-NAME.html` in a browser, and give back the file that it saves",
}
_ABOUT = {
    ERRORS: """Count the errors of the report, by category:

{categories}

An error is *significant* where it could change what is done for the patient, else *insignificant*;
each category has a column for either. Write whole numbers. An empty cell next to others is 0.""",
    DIMENSIONS: """Rate the report from 1 to 5 on each dimension:

{dimensions}""",
    PREFERENCES: """Two reports, A and B, are about one study. Write which of
them is better: A, B, or tie where both are equally good.""",
}
_TEXT = """# How to rate

{ways}. Each item shows what a radiologist wrote about a study (`reference`) and what is to be
judged.

{about}

An item that is left empty is not rated. Leave the other columns and the name of the file as they
are.
The sheets hold patients' data: do not pass them on.
"""


@dataclass(frozen=True)
class RatingSheets:
    """Result of `ratings_make`.

    Attributes:
        folder: with the sheets, key.csv, questions.json, instructions.md and run.json.
        sheets: name of the rater -> the first of the sheets that were made for that rater.
        items: reports to be judged, or comparisons.
        studies: of which they are.
        notes: notes for the user, one sentence each.
        unchanged: the same sheets had been made before.
    """

    folder: Path
    sheets: Mapping[str, Path]
    items: int
    studies: int
    notes: tuple[str, ...]
    unchanged: bool = False


@dataclass(frozen=True)
class _Wanted:
    """Settings of the sheets: raters, studies, questions and formats."""

    raters: tuple[str, ...]
    sample: int | None
    seed: int
    questions: tuple[Question, ...]
    formats: tuple[str, ...]
    raters_per_study: int
    films: bool

    @property
    def compares(self) -> bool:
        """Return whether two reports are compared."""
        return self.questions[0].ask == PREFERENCES

    def key(self) -> dict[str, Any]:
        """Return what the sheets depend on, besides the reports."""
        return {
            "raters": list(self.raters),
            "sample": self.sample,
            "seed": self.seed,
            "questions": [question.to_dict() for question in self.questions],
            "formats": list(self.formats),
            "raters_per_study": self.raters_per_study,
            "films": self.films,
        }

    def names(self) -> list[str]:
        """Return names of all files."""
        sheets = [sheet_name(rater, f".{form}") for form in self.formats for rater in self.raters]
        return [KEY, QUESTIONS, INSTRUCTIONS, *sheets]


def ratings_make(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    raters: Sequence[str] = ("rater-1",),
    ask: Sequence[str] = (ERRORS,),
    formats: Sequence[str] = ("csv",),
    sample: int | None = None,
    raters_per_study: int | None = None,
    films: bool = False,
    dimensions: Path | None = None,
    studies: str | Path | None = None,
    image_root: str | Path | None = None,
    seed: int = 0,
) -> RatingSheets:
    """Make blinded sheets of systems' reports, or of the best report of each oracle.

    Equal reports of a study are judged once. Names of items do not show where they come from, and
    each rater's sheet has an order of its own. A study's reports go to the same raters, so that
    every rater reads every system equally often; of two reports, each system's is report A for a
    rater as often as report B, but for one. `read_ratings` and `ratings_read` read the
    folder when the sheets are filled in.

    Args:
        sources: tables of candidates, one a system, or folders of `oracle`, of one table of
            studies and one index; as they are or as "name=path".
        out: folder for the results.
        raters: their names.
        ask: "errors", "dimensions" or both; or "preferences".
        formats: "csv", "xlsx" and "html".
        sample: draw so many studies; default: all.
        raters_per_study: how many of the raters are asked about a study; default: all.
        films: embed the films, shrunk, in the HTML pages.
        dimensions: file of dimensions; default: the bundled one.
        studies: of oracles, the table that was searched for, where it has moved; of systems, a
            table with the images.
        image_root: folder that image paths start from; default: the table's.
        seed: of the studies that are drawn, and of every order.

    Raises:
        InvalidTable: a table cannot be read, studies or references differ, or a folder holds no
            oracle's hits.
        InvalidSetting: a setting that cannot be used, or `out` holds other sheets.
        FolderInUse, ChecksumMismatch: as of any folder of results.
    """
    began = time.monotonic()
    per_study = len(raters) if raters_per_study is None else raters_per_study
    wanted = _Wanted(
        tuple(raters), sample, seed, tuple(questions_of(ask, dimensions)), tuple(formats),
        per_study, films,
    )  # fmt: skip
    _check(wanted)
    found = open_oracles(sources) if are_oracles(sources) else {}
    key = {**sources_key(sources, found, studies, image_root), **wanted.key()}
    suffix = f".{wanted.formats[0]}"
    sheets = {rater: Path(out) / sheet_name(rater, suffix) for rater in raters}
    # A run that was killed while its results took their places is ended first.
    end_decided_run(out)
    # Sheets that were made may be filled in by now: they are neither checked nor replaced.
    facts = _made_before(Path(out), key)
    unchanged = facts is not None
    if facts is None:
        material = (
            reports_of_oracles(found, studies, image_root, films)
            if found
            else reports_of_systems(sources, studies, image_root, films)
        )
        items = _named(material.items, wanted)
        facts = {
            "items": len({item.name.rstrip("xy") for item in items}),
            "studies": len({item.study for item in items}),
            "notes": list(material.notes),
        }
        with ResumableFolder(out, key, results=wanted.names()) as to:
            _write(to, items, wanted, material, facts, began)
    return RatingSheets(
        Path(out), sheets, facts["items"], facts["studies"], tuple(facts["notes"]), unchanged
    )


def _check(wanted: _Wanted) -> None:
    """Raise InvalidSetting for what no sheets can be made with."""
    raters = wanted.raters
    for rater in raters:
        if not _RATER.fullmatch(rater):
            raise InvalidSetting(
                f"{rater!r} cannot be in the name of a file; name raters by letters, digits, -, _"
            )
    if not raters or len(set(raters)) < len(raters):
        raise InvalidSetting(f"raters need different names, these are {', '.join(raters)}")
    if wanted.sample is not None and wanted.sample < 1:
        raise InvalidSetting(f"a sample is of at least 1 study, not {wanted.sample}")
    if not 1 <= wanted.raters_per_study <= len(raters):
        raise InvalidSetting(
            f"a study can have 1 to {len(raters)} raters, not {wanted.raters_per_study}"
        )
    if unknown := [form for form in wanted.formats if form not in FORMATS]:
        raise InvalidSetting(f"sheets are {', '.join(FORMATS)}, not {unknown[0]!r}")
    if not wanted.formats or len(set(wanted.formats)) < len(wanted.formats):
        raise InvalidSetting(f"name each of {', '.join(FORMATS)} at most once, and at least one")
    if wanted.films and "html" not in wanted.formats:
        raise InvalidSetting("films are shown by the page alone; add the format html")


def _write(
    folder: ResumableFolder,
    items: Sequence[AnyItem],
    wanted: _Wanted,
    material: Material,
    facts: dict[str, Any],
    began: float,
) -> None:
    def write(place: Path) -> dict[str, Any]:
        films = None
        if wanted.films:
            films, notes = embedded_films(material.images, (item.study for item in items))
            facts["notes"] += notes
        write_key(place / KEY, items)
        write_questions(place / QUESTIONS, wanted.questions)
        (place / INSTRUCTIONS).write_text(_instructions(wanted), encoding="utf-8")
        for number, rater in enumerate(wanted.raters):
            own = [item for item in items if rater in item.raters]
            order = np.random.default_rng([wanted.seed, number]).permutation(len(own))
            shown = [own[k] for k in order]
            for form in wanted.formats:
                path = place / sheet_name(rater, f".{form}")
                if form == "html":
                    write_page(path, rater, shown, wanted.questions, films)
                else:
                    make = write_csv_sheet if form == "csv" else write_xlsx_sheet
                    make(path, shown, wanted.questions)
        return run_record(**facts, seconds=round(time.monotonic() - began, 3))

    folder.finish(write, rows=0)


def _instructions(wanted: _Wanted) -> str:
    asks = dict.fromkeys(question.ask for question in wanted.questions)
    categories = [q.name.rpartition(", ")[0] for q in wanted.questions if q.ask == ERRORS]
    dimensions = [
        f"- {q.name}: {q.text} 1: {q.ends[0]}; 5: {q.ends[1]}"
        for q in wanted.questions
        if q.ask == DIMENSIONS
    ]
    about = "\n\n".join(_ABOUT[ask] for ask in asks).format(
        categories="\n".join(f"- {name}" for name in dict.fromkeys(categories)),
        dimensions="\n".join(dimensions),
    )
    ways = ", or ".join(_WAYS[form] for form in wanted.formats)
    return _TEXT.format(ways=ways[0].upper() + ways[1:], about=about)


def _made_before(out: Path, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of the same sheets; raise InvalidSetting where there are others."""
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


def _named(chosen: Sequence[SheetItem], wanted: _Wanted) -> list[AnyItem]:
    """Return the items of the drawn studies, named in a random order, which hides the systems."""
    rng = np.random.default_rng(wanted.seed)
    studies = list(dict.fromkeys(item.study for item in chosen))
    if wanted.sample is not None and wanted.sample < len(studies):
        studies = [studies[k] for k in rng.permutation(len(studies))[: wanted.sample]]
    drawn = set(studies)
    selected = [item for item in chosen if item.study in drawn]
    raters = _raters_of(sorted(drawn), wanted)
    if wanted.compares:
        return _compared(selected, raters, wanted, rng)
    digits = len(str(len(selected)))
    return [
        replace(selected[k], name=f"item-{number:0{digits}}", raters=raters[selected[k].study])
        for number, k in enumerate(rng.permutation(len(selected)), start=1)
    ]


def _raters_of(studies: Sequence[str], wanted: _Wanted) -> dict[str, tuple[str, ...]]:
    """Return the raters of each study; loads differ by one study at most.

    Of raters who have equally much to do, those are asked who met the others least often.
    """
    if wanted.raters_per_study == len(wanted.raters):
        return dict.fromkeys(studies, wanted.raters)
    count = len(wanted.raters)
    rng = np.random.default_rng([wanted.seed, count, wanted.raters_per_study])
    load, met = np.zeros(count), np.zeros((count, count))
    found = {}
    for k in rng.permutation(len(studies)):
        chosen: list[int] = []
        chance = rng.random(count)
        while len(chosen) < wanted.raters_per_study:
            left = [r for r in range(count) if r not in chosen]
            chosen.append(min(left, key=lambda r: (load[r], met[r, chosen].sum(), chance[r])))
        load[chosen] += 1
        met[np.ix_(chosen, chosen)] += 1
        found[studies[k]] = tuple(wanted.raters[r] for r in sorted(chosen))
    return found


def _compared(
    selected: Sequence[SheetItem],
    raters: Mapping[str, tuple[str, ...]],
    wanted: _Wanted,
    rng: np.random.Generator,
) -> list[AnyItem]:
    """Return the comparisons of every two reports of a study, each in the orders that are asked."""
    by_study: dict[str, list[SheetItem]] = {}
    for item in selected:
        by_study.setdefault(item.study, []).append(item)
    couples = [two for items in by_study.values() for two in combinations(items, 2)]
    if not couples:
        raise InvalidTable(
            "there are no two different reports of one study to compare; preferences need two "
            "systems"
        )
    digits = len(str(len(couples)))
    # How often a rater has read the first of two systems as report A, less how often as report B.
    leads: dict[tuple[str, str, str], int] = {}
    found: list[AnyItem] = []
    for number, k in enumerate(rng.permutation(len(couples)), start=1):
        first, second = couples[k]
        orders: dict[str, list[str]] = {"x": [], "y": []}
        for rater in raters[first.study]:
            systems = (rater, first.candidates[0], second.candidates[0])
            lead = leads.get(systems, 0)
            is_first = lead < 0 or (lead == 0 and bool(rng.integers(2)))
            leads[systems] = lead + (1 if is_first else -1)
            orders["x" if is_first else "y"].append(rater)
        for letter, two in (("x", (first, second)), ("y", (second, first))):
            if asked := tuple(orders[letter]):
                found.append(ItemPair(f"pair-{number:0{digits}}{letter}", *two, asked))
    return found
