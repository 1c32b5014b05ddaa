"""Ratings of filled-in sheets: checked tables, agreement of raters, and ranked systems."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlscore.core import checked_arguments, file_digest, frame
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.ratings.questions import PREFERRED
from vlscore.evaluation.ratings.rater_agreement import preferences_of, rater_agreement, strengths
from vlscore.evaluation.ratings.sheet_reading import RANK, read_sheets
from vlscore.stats import (
    Array,
    Content,
    Presentation,
    Result,
    TextTable,
    places_by_group,
    text_table,
    without_rounding,
)

if TYPE_CHECKING:
    from pandas import DataFrame

RATINGS, COUNTED, COMPARISONS, RANKS = "ratings.csv", "counts.csv", "comparisons.csv", "ranks.csv"
ALL = "all"
_AGREEMENT = (
    "alpha: Krippendorff's, ordinal (of preferences nominal). kappa: Cohen's, with quadratic "
    "weights (of preferences without), mean over all pairs of raters. units: reports or "
    "comparisons that two raters rated. In brackets: 95 % bootstrap intervals over studies."
)
_SYSTEMS = (
    "preferred: share of comparisons, a tie is one half. strength: log worth of Bradley and "
    "Terry's model with Davidson's ties, of mean 0; a dash where the comparisons do not determine "
    "it. In brackets: 95 % bootstrap intervals over studies."
)


@checked_arguments
def ratings_read(
    folder: str | Path,
    out: str | Path,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> Result:
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

    Returns: frames "agreement" (of a group on a rating) and "systems" (share and strength of each);
        counts.csv and ratings.csv (of preferences: ranks.csv and comparisons.csv), which
        `vlscore align` reads; `record["align_with"]` has the commands.
    Raises:
        InvalidTable: there are no sheets, or nothing is rated. A row that cannot be used raises
            nothing: it is in failures.csv, with its sheet.
        InvalidSetting: a group names a rater without a sheet, or `out` holds other results.
    """
    pairs, answers, sheets = read_sheets(folder)
    chosen = _groups(groups or {}, pairs.raters)
    key = {
        "command": "ratings read",
        "sheets": {path.name: file_digest(path) for path in pairs.files},
        "groups": {name: list(raters) for name, raters in (groups or {}).items()},
        "resamples": resamples,
        "seed": seed,
    }

    def compute(_: Path) -> Content:
        options = {"resamples": resamples, "seed": seed}
        agreement, systems = [], []
        for group, members in chosen.items():
            own = [k for k, rater in enumerate(pairs.raters) if rater in members]
            for rating, values, studies, level in _rated(pairs, answers):
                found = rater_agreement(values[own], studies, level=level, **options)
                if found is not None:
                    agreement.append({"group": group, "rating": rating, "level": level, **found})
            preferred = {PREFERRED: answers}
            if answers.empty:
                preferred = {name: implied_preferences(pairs, name) for name in pairs.primary}
            systems += [
                {"rating": rating, "group": group, **row}
                for rating, each in preferred.items()
                for row in strengths(each[each["rater"].isin(members)], **options)
            ]
        frames = {"sheets": sheets, "agreement": agreement, "systems": systems}
        rows, align_with = _tables_to_align(pairs, answers)
        commands = [f"vlscore align {Path(out) / name} {how}".strip() for name, how in align_with]
        return Content(
            {name: frame(records) for name, records in frames.items()},
            rows,
            pairs.bad,
            notes=pairs.notes,
            facts={"raters": list(pairs.raters), "align_with": commands},
        )

    return Result.make(out, key, compute, overwrite=overwrite)


def _groups(named: Mapping[str, Sequence[str]], raters: Sequence[str]) -> dict[str, list[str]]:
    """Return all raters, and each group. Raises: InvalidSetting for a rater without a sheet."""
    for name, members in named.items():
        if unknown := sorted(set(members) - set(raters)):
            raise InvalidSetting(
                f"the group {name} has {', '.join(unknown)}, who rated nothing; raters are "
                f"{', '.join(raters)}"
            )
        if name == ALL or not members:
            raise InvalidSetting(f"a group needs raters and a name other than {ALL!r}")
    return {ALL: list(raters), **{name: list(members) for name, members in named.items()}}


def _rated(
    pairs: RatedPairs, answers: "DataFrame"
) -> Iterator[tuple[str, Array, Sequence[str], str]]:
    """Yield name, values (raters, units), studies of the units and level of measurement.

    Reports of a study that are equal are judged once: they are one unit.
    """
    if len(answers):
        unit = ["study", "first", "second"]
        own = answers[~answers["repeats"]]
        own = own.drop_duplicates(["rater", *unit], keep="last")
        table = own.pivot(index="rater", columns=unit, values="answer")
        values = table.reindex(list(pairs.raters)).to_numpy(np.float64)
        yield PREFERRED, values, table.columns.get_level_values("study").tolist(), "nominal"
        return
    reports = list(zip(pairs.studies, pairs.texts or pairs.candidates, strict=True))
    first = {report: k for k, report in reversed(list(enumerate(reports)))}
    units = sorted(first.values())
    studies = [pairs.studies[k] for k in units]
    for name, values in pairs.ratings.items():
        yield name, values[:, units], studies, "ordinal"


def implied_preferences(pairs: RatedPairs, rating: str) -> "DataFrame":
    """Return which of every two reports of a study each rater's ratings prefer."""
    values = pairs.sign_of(rating) * np.array([*map(without_rounding, pairs.ratings[rating])])
    return preferences_of(
        (study, rater, pairs.candidates[i], pairs.candidates[j], int(np.sign(lead)), False)
        for row, rater in enumerate(pairs.raters)
        for study, places in places_by_group(pairs.studies).items()
        for i, j in combinations(places, 2)
        for lead in [values[row, i] - values[row, j]]
        if not np.isnan(lead)
    )


def _tables_to_align(
    pairs: RatedPairs, answers: "DataFrame"
) -> "tuple[dict[str, DataFrame], list[tuple[str, str]]]":
    """Return the tables that `vlscore align` reads, and name and options of each."""
    from pandas import DataFrame

    # A row a pair and rater.
    of_pair = {
        "study_id": pairs.studies, "candidate_id": pairs.candidates, "rater": None,
        "reference": pairs.references, "candidate": pairs.texts,
    }  # fmt: skip
    rows = DataFrame(of_pair, dtype=object).loc[np.repeat(np.arange(len(pairs)), len(pairs.raters))]
    rows = rows.assign(rater=np.tile(pairs.raters, len(pairs))).reset_index(drop=True)

    def long(names: Sequence[str]) -> "DataFrame":
        values = DataFrame({name: pairs.ratings[name].T.ravel() for name in names})
        return rows.join(values.map("{:g}".format))[values.notna().any(axis=1)]

    if len(answers):
        comparisons = answers.drop(columns="repeats")
        tables = {
            RANKS: long([RANK]),
            COMPARISONS: comparisons.rename(columns={"study": "study_id"}),
        }
        return tables, [(RANKS, f'--rename rating="{RANK}" --ratings-are ranks')]
    tables, align_with = {}, []
    if pairs.counts:
        counts = DataFrame({key: values.T.ravel() for key, values in pairs.counts.items()})
        counts.columns = counts.columns.set_names(["category", "significant"])
        stacked = counts.stack(["category", "significant"], future_stack=True).dropna()
        found = stacked.rename("rating").map("{:g}".format).reset_index(counts.columns.names)
        found["significant"] = found["significant"].map(
            {True: "true", False: "false", None: "none"}
        )
        tables[COUNTED] = rows.join(found, how="right")
        align_with.append((COUNTED, ""))
    if pairs.qualities:
        names = [name for name in pairs.ratings if name in pairs.qualities]
        tables[RATINGS] = long(names)
        renamed = ",".join(f"rating={name}" for name in names)
        how = f'--rename "{renamed}" --ratings-are quality'
        align_with.append((RATINGS, how))
    return tables, align_with


def _tables(run: Result) -> list[TextTable]:
    tables = [text_table("Sheets", run.frames["sheets"])]
    agreement, systems = run.frames["agreement"], run.frames["systems"]
    if len(agreement):
        named = [
            rating if group == ALL else f"{rating}, {group}"
            for rating, group in zip(agreement["rating"], agreement["group"], strict=True)
        ]
        rows = agreement.assign(rating=named)
        shown = ("rating", "raters", "units", "alpha", "kappa")
        tables.append(text_table("Agreement of raters", rows, _AGREEMENT, columns=shown, digits=2))
    columns = {"system": "system", "comparisons": "comparisons", "share": "preferred"}
    columns["strength"] = "strength"
    for (rating, group), rows in (
        systems.groupby(["rating", "group"], sort=False) if len(systems) else ()
    ):
        title = f"Systems by {rating}: {'all raters' if group == ALL else group}"
        tables.append(text_table(title, rows, _SYSTEMS, columns=columns))
    return tables


PRESENTATION = Presentation(_tables)
