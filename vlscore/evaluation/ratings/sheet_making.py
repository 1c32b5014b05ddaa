"""Blinded sheets on which raters judge the reports of systems, or compare them in pairs.

Source of the design: Yu et al. 2023 (ReXVal), where radiologists count errors by category; Rawat
2022: clinicians and lay readers rate the reports of generators and compare them in pairs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import ResultFolder, differing, finished_run, run_record, writing
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.ratings.questions import (
    DIMENSIONS,
    ERRORS,
    PREFERENCES,
    Question,
    questions_of,
)
from vlscore.evaluation.ratings.rated_reports import Material
from vlscore.evaluation.ratings.sheet_files import (
    FORMATS,
    KEY,
    QUESTIONS,
    SheetItem,
    embedded_images,
    sheet_name,
    write_key,
    write_page,
    write_questions,
    write_sheet,
)

INSTRUCTIONS = "instructions.md"
_RATER = re.compile(r"\w[\w.-]{0,59}")
_WAYS = {
    "csv": "fill in the table `sheet-NAME.csv`",
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


def ratings_make(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    raters: Sequence[str] = ("rater-1",),
    ask: Sequence[str] = (ERRORS,),
    formats: Sequence[str] = ("csv",),
    sample: int | None = None,
    raters_per_study: int | None = None,
    images: bool = False,
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
        sources, studies, image_root: see `Material`.
        out: folder for the results.
        raters: their names.
        ask: "errors", "dimensions" or both; or "preferences".
        formats: "csv" and "html".
        sample: draw so many studies; default: all.
        raters_per_study: how many of the raters are asked about a study; default: all.
        images: embed the images, shrunk, in the HTML pages.
        dimensions: file of dimensions; default: the bundled one.
        seed: of the studies that are drawn, and of every order.

    Raises:
        InvalidTable: a table cannot be read, studies or references differ, or a folder holds no
            oracle's hits.
        InvalidSetting: a setting that cannot be used, or `out` holds other sheets.
        FolderInUse, ChecksumMismatch: as of any folder of results.
    """
    per_study = len(raters) if raters_per_study is None else raters_per_study
    questions = questions_of(ask, dimensions)
    _check(raters, sample, per_study, formats, images)
    material = Material(sources, studies, image_root, images)
    key: dict[str, Any] = {
        "command": "ratings make",
        **material.key,
        "raters": list(raters),
        "sample": sample,
        "seed": seed,
        "questions": [question.to_dict() for question in questions],
        "formats": list(formats),
        "raters_per_study": per_study,
        "images": images,
    }

    # Sheets that were made may be filled in by now: they are neither checked nor replaced.
    made = finished_run(out)
    if made is not None and (differs := differing(made.key, key)):
        raise InvalidSetting(
            f"{out} holds other sheets or results, which may be filled in (what differs: "
            f"{', '.join(differs)}); choose another folder"
        )
    items: list[SheetItem] = []
    notes: list[str] = []
    shown = None
    if made is None:
        items, notes, found = material.read()
        items = _named(items, questions[0].ask, list(raters), per_study, sample, seed)
        if images:
            shown, about_images = embedded_images(found, (item.study for item in items))
            notes += about_images

    def write(folder: Path) -> dict[str, Any]:
        with writing(folder):
            write_key(folder / KEY, items)
            write_questions(folder / QUESTIONS, questions)
            about = _instructions(questions, formats)
            (folder / INSTRUCTIONS).write_text(about, encoding="utf-8")
            for number, rater in enumerate(raters):
                own = [item for item in items if rater in item.raters]
                order = np.random.default_rng([seed, number]).permutation(len(own))
                mine = [own[k] for k in order]
                if "csv" in formats:
                    write_sheet(folder / sheet_name(rater), mine, questions)
                if "html" in formats:
                    write_page(folder / sheet_name(rater, ".html"), rater, mine, questions, shown)
        # The two orders of a comparison are one item.
        judged = {(item.study, frozenset(item.reports)) for item in items}
        studies_of = {item.study for item in items}
        return run_record(items=len(judged), studies=len(studies_of), notes=notes)

    with ResultFolder(out, key, is_for_users=True) as folder:
        record = folder.record or folder.finish(write)
    sheets = {rater: Path(out) / sheet_name(rater, f".{formats[0]}") for rater in raters}
    return RatingSheets(
        Path(out),
        sheets,
        record["items"],
        record["studies"],
        tuple(record["notes"]),
        folder.unchanged,
    )


def _check(
    raters: Sequence[str], sample: int | None, per_study: int, formats: Sequence[str], images: bool
) -> None:
    """Raise InvalidSetting for what no sheets can be made with."""
    for rater in raters:
        if not _RATER.fullmatch(rater):
            raise InvalidSetting(
                f"{rater!r} cannot be in the name of a file; name raters by 1 to 60 letters, "
                "digits, -, _"
            )
    if not raters or len(set(raters)) < len(raters):
        raise InvalidSetting(f"raters need different names, these are {', '.join(raters)}")
    if sample is not None and sample < 1:
        raise InvalidSetting(f"a sample is of at least 1 study, not {sample}")
    if not 1 <= per_study <= len(raters):
        raise InvalidSetting(f"a study can have 1 to {len(raters)} raters, not {per_study}")
    if unknown := [form for form in formats if form not in FORMATS]:
        raise InvalidSetting(f"sheets are {', '.join(FORMATS)}, not {unknown[0]!r}")
    if not formats or len(set(formats)) < len(formats):
        raise InvalidSetting(f"name each of {', '.join(FORMATS)} at most once, and at least one")
    if images and "html" not in formats:
        raise InvalidSetting("images are shown by the page alone; add the format html")


def _instructions(questions: Sequence[Question], formats: Sequence[str]) -> str:
    categories = [q.name.rpartition(", ")[0] for q in questions if q.ask == ERRORS]
    dimensions = [
        f"- {q.name}: {q.text} 1: {q.ends[0]}; 5: {q.ends[1]}"
        for q in questions
        if q.ask == DIMENSIONS
    ]
    about = "\n\n".join(_ABOUT[ask] for ask in dict.fromkeys(q.ask for q in questions)).format(
        categories="\n".join(f"- {name}" for name in dict.fromkeys(categories)),
        dimensions="\n".join(dimensions),
    )
    ways = ", or ".join(_WAYS[form] for form in formats)
    return _TEXT.format(ways=ways[0].upper() + ways[1:], about=about)


def _named(
    items: Sequence[SheetItem],
    ask: str,
    raters: list[str],
    per_study: int,
    sample: int | None,
    seed: int,
) -> list[SheetItem]:
    """Return the items of the drawn studies, named in a random order, which hides the systems."""
    rng = np.random.default_rng(seed)
    studies = list(dict.fromkeys(item.study for item in items))
    if sample is not None and sample < len(studies):
        studies = [studies[k] for k in rng.permutation(len(studies))[:sample]]
    drawn = set(studies)
    selected = [item for item in items if item.study in drawn]
    raters_of = _raters_of(sorted(drawn), raters, per_study, seed)
    if ask == PREFERENCES:
        return _compared(selected, raters_of, rng)
    digits = len(str(len(selected)))
    return [
        replace(selected[k], name=f"item-{number:0{digits}}", raters=raters_of[selected[k].study])
        for number, k in enumerate(rng.permutation(len(selected)), start=1)
    ]


def _raters_of(
    studies: Sequence[str], raters: list[str], per_study: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """Return the raters of each study; loads differ by one study at most.

    Of raters who have equally much to do, those are asked who met the others least often.
    """
    count = len(raters)
    if per_study == count:
        return dict.fromkeys(studies, tuple(raters))
    rng = np.random.default_rng([seed, count, per_study])
    load, met = np.zeros(count), np.zeros((count, count))
    found = {}
    for k in rng.permutation(len(studies)):
        chosen: list[int] = []
        chance = rng.random(count)
        while len(chosen) < per_study:
            left = [r for r in range(count) if r not in chosen]
            chosen.append(min(left, key=lambda r: (load[r], met[r, chosen].sum(), chance[r])))
        load[chosen] += 1
        met[np.ix_(chosen, chosen)] += 1
        found[studies[k]] = tuple(raters[r] for r in sorted(chosen))
    return found


def _compared(
    selected: Sequence[SheetItem], raters: Mapping[str, tuple[str, ...]], rng: np.random.Generator
) -> list[SheetItem]:
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
    # How often a rater has read the first of two systems as report A, less how often as report B.
    leads: dict[tuple[str, str, str], int] = {}
    found: list[SheetItem] = []
    for k in rng.permutation(len(couples)):
        (one,), (other,) = (item.reports for item in couples[k])
        study = couples[k][0]
        is_asked: dict[bool, list[str]] = {True: [], False: []}
        for rater in raters[study.study]:
            systems = (rater, one.systems[0], other.systems[0])
            lead = leads.get(systems, 0)
            is_first = lead < 0 or (lead == 0 and bool(rng.integers(2)))
            leads[systems] = lead + (1 if is_first else -1)
            is_asked[is_first].append(rater)
        for is_first, two in ((True, (one, other)), (False, (other, one))):
            if asked := tuple(is_asked[is_first]):
                found.append(replace(study, reports=two, raters=asked))
    # Numbers are drawn last: sides alternate above, and a name must not show which system is A.
    digits = len(str(len(found)))
    return [
        replace(found[k], name=f"pair-{number:0{digits}}")
        for number, k in enumerate(rng.permutation(len(found)), start=1)
    ]
