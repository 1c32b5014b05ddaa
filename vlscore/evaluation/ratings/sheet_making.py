"""Blinded sheets on which raters judge the reports of systems, or compare them in pairs.

Source of the design: Yu et al. 2023 (ReXVal), where radiologists count errors by category; Rawat
2022: clinicians and lay readers rate the reports of generators and compare them in pairs.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import (
    checked_arguments,
    differing,
    finished_run,
    output_folder,
    plain,
    run_record,
    write_json,
    write_results,
    writing,
)
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.command_settings import SheetSettings
from vlscore.evaluation.ratings.questions import (
    DIMENSIONS,
    ERRORS,
    PREFERENCES,
    Question,
    questions_of,
)
from vlscore.evaluation.ratings.reports_to_judge import open_reports_to_judge
from vlscore.evaluation.ratings.sheet_files import (
    KEY,
    QUESTIONS,
    SheetItem,
    embedded_images,
    sheet_name,
    write_key,
    write_page,
    write_sheet,
)
from vlscore.stats import Result

INSTRUCTIONS = "instructions.md"
_TEXTS = Path(__file__).with_name("instructions.toml")


@checked_arguments
def ratings_make(
    sources: Sequence[str | Path],
    out: str | Path,
    settings: SheetSettings | None = None,
    *,
    studies: str | Path | None = None,
    image_root: str | Path | None = None,
) -> Result:
    """Make blinded sheets of systems' reports, or of the best report of each oracle.

    Equal reports of a study are judged once. Names of items do not show where they come from, and
    each rater's sheet has an order of its own. A study's reports go to the same raters, so that
    every rater reads every system equally often; of two reports, each system's is report A for a
    rater as often as report B, but for one. `read_ratings` and `ratings_read` read the
    folder when the sheets are filled in.

    Args:
        sources, studies, image_root: see `open_reports_to_judge`.
        out: folder for the results.

    Returns: `record` has the numbers of "items" (reports to be judged, or comparisons) and
        "studies".
    Raises:
        InvalidTable: a table cannot be read, studies or references differ, or a folder holds no
            oracle's hits.
        InvalidSetting: a setting that cannot be used, or `out` holds other sheets.
        FolderInUse, ChecksumMismatch: as of any folder of results.
    """
    settings = settings or SheetSettings()
    questions = questions_of(settings.ask, settings.dimensions)
    reports, read = open_reports_to_judge(sources, studies, image_root, settings.images)
    key: dict[str, Any] = {
        "command": "ratings make",
        **reports,
        **plain(replace(settings, dimensions=None)),
        "questions": plain(questions),
    }
    # Sheets that were made may be filled in by now: they are neither checked nor replaced.
    made = finished_run(out)
    if made is not None and (differs := differing(made.key, key)):
        raise InvalidSetting(
            f"{out} holds other sheets or results, which may be filled in (what differs: "
            f"{', '.join(differs)}); choose another folder"
        )

    def write(folder: Path) -> dict[str, Any]:
        items, notes, images = read()
        items = _named(items, questions[0].ask, settings)
        shown = None
        if settings.images:
            shown, about_images = embedded_images(images, (item.study for item in items))
            notes = [*notes, *about_images]
        with writing(folder):
            write_key(folder / KEY, items)
            write_json(folder / QUESTIONS, {"questions": questions})
            about = _instructions(questions, settings.format)
            (folder / INSTRUCTIONS).write_text(about, encoding="utf-8")
            for number, rater in enumerate(settings.raters):
                own = [item for item in items if rater in item.raters]
                order = np.random.default_rng([settings.seed, number]).permutation(len(own))
                mine = [own[k] for k in order]
                if "csv" in settings.format:
                    write_sheet(folder / sheet_name(rater), mine, questions)
                if "html" in settings.format:
                    write_page(folder / sheet_name(rater, ".html"), rater, mine, questions, shown)
        # The two orders of a comparison are one item.
        judged = {(item.study, frozenset(item.reports)) for item in items}
        studies_of = {item.study for item in items}
        return run_record(items=len(judged), studies=len(studies_of), notes=notes)

    with output_folder(out, key, may_be_edited=True) as finished:
        run = finished or write_results(Path(out), key, write)
    return Result(run.folder, run.record, finished is not None)


def _instructions(questions: Sequence[Question], formats: Sequence[str]) -> str:
    texts = tomllib.loads(_TEXTS.read_text(encoding="utf-8"))
    categories = [q.name.rpartition(", ")[0] for q in questions if q.ask == ERRORS]
    dimensions = [
        f"- {q.name}: {q.text} 1: {q.ends[0]}; 5: {q.ends[1]}"
        for q in questions
        if q.ask == DIMENSIONS
    ]
    about = "\n\n".join(texts["about"][ask] for ask in dict.fromkeys(q.ask for q in questions))
    about = about.format(
        categories="\n".join(f"- {name}" for name in dict.fromkeys(categories)),
        dimensions="\n".join(dimensions),
    )
    ways = ", or ".join(texts["ways"][form] for form in formats)
    written: str = texts["text"].format(ways=ways[0].upper() + ways[1:], about=about)
    return written


def _named(items: Sequence[SheetItem], ask: str, settings: SheetSettings) -> list[SheetItem]:
    """Return the items of the drawn studies, named in a random order, which hides the systems."""
    rng = np.random.default_rng(settings.seed)
    studies = list(dict.fromkeys(item.study for item in items))
    if settings.sample is not None and settings.sample < len(studies):
        studies = [studies[k] for k in rng.permutation(len(studies))[: settings.sample]]
    raters = _raters_of(sorted(studies), settings)
    drawn = [replace(item, raters=raters[item.study]) for item in items if item.study in raters]
    found = _comparisons(drawn, rng) if ask == PREFERENCES else drawn
    # Numbers are drawn last: sides alternate, and a name must not show which system is A.
    name, digits = "pair" if ask == PREFERENCES else "item", len(str(len(found)))
    return [
        replace(found[k], name=f"{name}-{number:0{digits}}")
        for number, k in enumerate(rng.permutation(len(found)), start=1)
    ]


def _raters_of(studies: Sequence[str], settings: SheetSettings) -> dict[str, tuple[str, ...]]:
    """Return the raters of each study; loads differ by one study at most.

    Of raters who have equally much to do, those are asked who met the others least often.
    """
    raters, count = settings.raters, len(settings.raters)
    per_study = settings.raters_per_study or count
    if per_study == count:
        return dict.fromkeys(studies, tuple(raters))
    rng = np.random.default_rng([settings.seed, count, per_study])
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


def _comparisons(selected: Sequence[SheetItem], rng: np.random.Generator) -> list[SheetItem]:
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
        (one,), (other,) = (item.reports.items() for item in couples[k])
        study = couples[k][0]
        is_asked: dict[bool, list[str]] = {True: [], False: []}
        for rater in study.raters:
            systems = (rater, one[1][0], other[1][0])
            lead = leads.get(systems, 0)
            is_first = lead < 0 or (lead == 0 and bool(rng.integers(2)))
            leads[systems] = lead + (1 if is_first else -1)
            is_asked[is_first].append(rater)
        for is_first, two in ((True, (one, other)), (False, (other, one))):
            if asked := tuple(is_asked[is_first]):
                found.append(replace(study, reports=dict(two), raters=asked))
    return found
