"""Ratings of filled-in sheets: checked tables, agreement of raters, and ranked systems."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import ResumableFolder, __version__, file_digest, plain, run_record, write_json
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.evaluation.ratings.questions import DIMENSIONS, ERRORS, PREFERRED
from vlscore.evaluation.ratings.rater_agreement import (
    Agreement,
    Preference,
    Strength,
    rater_agreement,
    strengths,
)
from vlscore.evaluation.ratings.sheet_reading import RANK, FilledSheets, read_filled
from vlscore.evaluation.row_chunks import RunOfRows, csv_of
from vlscore.stats import FAILURES, TextTable, interval, number, places_by_group, write_tables

RATINGS, COUNTED, COMPARISONS, RANKS = "ratings.csv", "counts.csv", "comparisons.csv", "ranks.csv"
AGREEMENT, SYSTEMS, CONTENT = "agreement.csv", "systems.csv", "ratings.json"
ALL = "all"
_TABLES = ("tables.md", "tables.tex")


@dataclass(frozen=True)
class RatingsRun(RunOfRows):
    """Answers of a reading study, and the files made from them.

    counts.csv and ratings.csv (of preferences: ranks.csv and comparisons.csv) are tables that
    `vlscore align` reads; agreement.csv, systems.csv, ratings.json, tables.md, tables.tex and
    failures.csv hold the rest.
    """

    content_file = CONTENT
    results = (
        RATINGS,
        COUNTED,
        RANKS,
        COMPARISONS,
        AGREEMENT,
        SYSTEMS,
        CONTENT,
        *_TABLES,
        FAILURES,
    )
    rows = "systems"

    @property
    def align_with(self) -> list[str]:
        """Return commands that compare metrics with these ratings, one a table."""
        found: list[str] = self.content["align_with"]
        return found


def ratings_read(
    folder: str | Path,
    out: str | Path,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> RatingsRun:
    """Read the sheets of a folder that `ratings_make` made, and write the raters' answers.

    Systems are ranked by how often raters prefer them, by Bradley and Terry's model with Davidson's
    ties. Preferences are the answers, or follow from the ratings: of two reports of one study, the
    one with fewer errors, or the higher rating by the same rater, is preferred.

    Args:
        folder: with the filled-in sheets.
        out: folder for the results; another one.
        groups: name -> raters, such as clinicians and lay readers; numbers are then of each group,
            too.
        resamples, seed: of the bootstrap over studies.
        overwrite: make anew; earlier results stay until the new ones are complete.

    Raises:
        InvalidTable: there are no sheets, or nothing is rated. A row that cannot be used raises
            nothing: it is in failures.csv, with its sheet.
        InvalidSetting: a group names a rater without a sheet, or `out` holds other results.
    """
    filled = read_filled(folder)
    chosen = _groups(groups or {}, filled)
    key = {
        "vlscore": __version__,
        "sheets": {path.name: file_digest(path) for path in filled.pairs.files},
        "groups": {name: list(raters) for name, raters in (groups or {}).items()},
        "resamples": resamples,
        "seed": seed,
    }

    def compute(to: ResumableFolder) -> None:
        study = _ReadingStudy(filled, chosen, resamples, seed)
        to.finish(lambda place: study.write(place, Path(out)), rows=0)

    return RatingsRun.make(out, plain(key), compute, overwrite=overwrite)


def _groups(given: Mapping[str, Sequence[str]], filled: FilledSheets) -> dict[str, list[str]]:
    """Return all raters, and each group. Raises: InvalidSetting for a rater without a sheet."""
    raters = list(filled.pairs.raters)
    for name, members in given.items():
        if unknown := sorted(set(members) - set(raters)):
            raise InvalidSetting(
                f"the group {name} has {', '.join(unknown)}, who rated nothing; raters are "
                f"{', '.join(raters)}"
            )
        if name == ALL or not members:
            raise InvalidSetting(f"a group needs raters and a name other than {ALL!r}")
    return {ALL: raters, **{name: list(members) for name, members in given.items()}}


class _ReadingStudy:
    """The answers, and the tables that are made of them."""

    def __init__(
        self, filled: FilledSheets, groups: Mapping[str, list[str]], resamples: int, seed: int
    ) -> None:
        self._filled, self._pairs, self._groups = filled, filled.pairs, groups
        self._bootstrap = {"resamples": resamples, "seed": seed}
        self._asks = {question.ask for question in filled.questions}

    def write(self, place: Path, out: Path) -> dict[str, Any]:
        """Write all files, and return the content of run.json."""
        agreements = list(self._agreements())
        ranked = [
            each for name, members in self._groups.items() for each in self._ranked(name, members)
        ]
        written = self._write_ratings(place)
        tables = [self._sheets_table(), _agreement_table(agreements), *_system_tables(ranked)]
        content = plain(
            {
                "raters": list(self._pairs.raters),
                "groups": self._groups,
                "agreement": [{"group": group, **asdict(each)} for group, each in agreements],
                "systems": [asdict(each) for each in ranked],
                "align_with": [
                    f"vlscore align {out / name} {how}".strip() for name, how in written
                ],
                "tables": [asdict(table) for table in tables],
            }
        )
        write_json(place / CONTENT, content)
        _write_csv(place / AGREEMENT, _agreement_rows(agreements))
        _write_csv(place / SYSTEMS, _system_rows(ranked))
        write_tables(place, tables)
        failures = [("row", "id", "error"), *((b.row, b.id, b.reason) for b in self._pairs.bad)]
        _write_csv(place / FAILURES, failures)
        return run_record(notes=list(self._pairs.notes))

    def _agreements(self) -> Iterator[tuple[str, Agreement]]:
        for group, members in self._groups.items():
            for rating, values, studies, level in self._rated():
                rows = [k for k, rater in enumerate(self._pairs.raters) if rater in members]
                found = rater_agreement(
                    rating, values[rows], studies, level=level, **self._bootstrap
                )
                if found is not None:
                    yield group, found

    def _rated(self) -> Iterator[tuple[str, Array, Sequence[str], str]]:
        """Yield name, values (raters, units), studies of the units and level of measurement.

        Reports of a study that are equal are judged once: they are one unit.
        """
        if self._filled.preferences:
            values, studies = _comparison_values(self._filled.preferences, self._pairs.raters)
            yield PREFERRED, values, studies, "nominal"
            return
        pairs = self._pairs
        reports = list(zip(pairs.studies, pairs.texts or pairs.candidates, strict=True))
        places: dict[tuple[str, str], int] = {}
        units = [k for k, report in enumerate(reports) if k == places.setdefault(report, k)]
        studies = [pairs.studies[k] for k in units]
        for name, values in pairs.ratings.items():
            yield name, values[:, units], studies, "ordinal"

    def _ranked(self, group: str, members: Sequence[str]) -> list[Strength]:
        if self._filled.preferences:
            own = [each for each in self._filled.preferences if each.rater in members]
            return strengths(own, PREFERRED, group, **self._bootstrap)
        names = self._pairs.headlines
        return [
            each
            for name in names
            for each in strengths(
                implied_preferences(self._pairs, name, members), name, group, **self._bootstrap
            )
        ]

    def _write_ratings(self, place: Path) -> list[tuple[str, str]]:
        """Write the tables that `vlscore align` reads; return name and options of each."""
        written = []
        if self._filled.preferences:
            _write_csv(place / RANKS, self._long([RANK]))
            head = ("study_id", "rater", "first", "second", "answer")
            rows = [
                (p.study, p.rater, p.first, p.second, p.answer) for p in self._filled.preferences
            ]
            _write_csv(place / COMPARISONS, [head, *rows])
            return [(RANKS, f'--rating-columns "{RANK}" --ratings-are ranks')]
        if ERRORS in self._asks:
            _write_csv(place / COUNTED, self._counts())
            written.append((COUNTED, ""))
        if DIMENSIONS in self._asks:
            names = [q.name for q in self._filled.questions if q.ask == DIMENSIONS]
            _write_csv(place / RATINGS, self._long(names))
            written.append((RATINGS, f'--rating-columns "{",".join(names)}" --ratings-are quality'))
        return written

    def _each(self) -> Iterator[tuple[int, int, list[Any]]]:
        """Yield place of the pair, place of the rater, and the first cells of their row."""
        pairs = self._pairs
        texts, references = pairs.texts or (), pairs.references or ()
        for k in range(len(pairs)):
            for row, rater in enumerate(pairs.raters):
                yield k, row, [
                    pairs.studies[k], pairs.candidates[k], rater, references[k], texts[k],
                ]  # fmt: skip

    def _long(self, names: Sequence[str]) -> Iterator[Sequence[Any]]:
        yield ("study_id", "candidate_id", "rater", "reference", "candidate", *names)
        for k, row, first in self._each():
            values = [float(self._pairs.ratings[name][row, k]) for name in names]
            if not all(map(np.isnan, values)):
                yield [*first, *(f"{value:g}" for value in values)]

    def _counts(self) -> Iterator[Sequence[Any]]:
        head = ("study_id", "candidate_id", "rater", "reference", "candidate")
        yield (*head, "category", "significant", "rating")
        for k, row, first in self._each():
            for (category, significant), values in self._pairs.counts.items():
                if not np.isnan(values[row, k]):
                    yield [*first, category, str(significant).lower(), f"{values[row, k]:g}"]

    def _sheets_table(self) -> TextTable:
        return TextTable(
            "Sheets",
            ("sheet", "answered", "asked"),
            tuple((n, str(done), str(asked)) for n, (done, asked) in self._filled.sheets.items()),
        )


def implied_preferences(pairs: RatedPairs, rating: str, raters: Iterable[str]) -> list[Preference]:
    """Return which of every two reports of a study each rater's ratings prefer."""
    chosen = set(raters)
    sign, values = pairs.sign_of(rating), pairs.ratings[rating]
    by_study = places_by_group(pairs.studies)
    found = []
    for row, rater in enumerate(pairs.raters):
        if rater not in chosen:
            continue
        for study, places in by_study.items():
            for i, j in combinations(places, 2):
                difference = sign * (values[row, i] - values[row, j])
                if np.isnan(difference):
                    continue
                names = pairs.candidates[i], pairs.candidates[j]
                found.append(Preference(study, rater, *names, int(np.sign(difference))))
    return found


def _comparison_values(
    preferences: Sequence[Preference], raters: Sequence[str]
) -> tuple[Array, list[str]]:
    """Return the answers (raters, comparisons) and the study of each comparison."""
    own = [each for each in preferences if not each.repeats]
    units = list(dict.fromkeys((each.study, each.first, each.second) for each in own))
    places = {unit: k for k, unit in enumerate(units)}
    rows = {rater: k for k, rater in enumerate(raters)}
    values = np.full((len(raters), len(units)), np.nan)
    for each in own:
        if each.rater in rows:
            values[rows[each.rater], places[each.study, each.first, each.second]] = each.answer
    return values, [study for study, *_ in units]


def _write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    path.write_text(csv_of(rows), encoding="utf-8", newline="")


_MEASURES = ("alpha", "kappa", "w", "equal")


def _agreement_table(found: Sequence[tuple[str, Agreement]]) -> TextTable:
    rows = tuple(
        (
            each.rating if group == ALL else f"{each.rating}, {group}",
            str(each.raters),
            str(each.units),
            str(each.complete),
            *(interval(getattr(each, name), 2) for name in _MEASURES),
        )
        for group, each in found
    )
    return TextTable(
        "Agreement of raters",
        ("rating", "raters", "units", "by all", "alpha", "kappa", "W", "equal"),
        rows,
        "alpha: Krippendorff's, ordinal (of preferences nominal); kappa: Fleiss'; W: Kendall's; "
        "equal: share of pairs of raters with the same answer. Kappa and W are of the units that "
        "all raters rated. In brackets: 95 % bootstrap intervals over studies.",
    )


def _system_tables(ranked: Sequence[Strength]) -> list[TextTable]:
    tables = []
    for rating, group in dict.fromkeys((each.rating, each.group) for each in ranked):
        rows = (
            {
                "system": each.system,
                "comparisons": str(each.comparisons),
                "preferred": interval(each.share),
                "strength": interval(each.strength, 2),
            }
            for each in ranked
            if (each.rating, each.group) == (rating, group)
        )
        who = "all raters" if group == ALL else group
        tables.append(
            TextTable.of(
                f"Systems by {rating}: {who}",
                rows,
                "preferred: share of comparisons, a tie is one half. strength: log worth of "
                "Bradley and Terry's model with Davidson's ties, of mean 0; a dash where the "
                "comparisons do not determine it. In brackets: 95 % bootstrap intervals over "
                "studies.",
            )
        )
    return tables


def _agreement_rows(found: Sequence[tuple[str, Agreement]]) -> Iterator[Sequence[Any]]:
    ends = [f"{name}{end}" for name in _MEASURES for end in ("", ".low", ".high")]
    yield ("group", "rating", "level", "raters", "units", "complete", *ends)
    for group, each in found:
        values = [getattr(each, name) for name in _MEASURES]
        numbers = [number(x, 6) for v in values for x in (v.estimate, v.low, v.high)]
        yield (group, each.rating, each.level, each.raters, each.units, each.complete, *numbers)


def _system_rows(ranked: Sequence[Strength]) -> Iterator[Sequence[Any]]:
    ends = [f"{name}{end}" for name in ("share", "strength") for end in ("", ".low", ".high")]
    yield ("rating", "group", "system", "comparisons", *ends)
    for each in ranked:
        values = [x for v in (each.share, each.strength) for x in (v.estimate, v.low, v.high)]
        numbers = [number(value, 6) for value in values]
        yield (each.rating, each.group, each.system, each.comparisons, *numbers)
