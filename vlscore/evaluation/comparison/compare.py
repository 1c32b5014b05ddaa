"""Comparison of systems that wrote reports for the same studies, into a folder of results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import OnProgress, atomic_write, checked_arguments, frame, no_progress
from vlscore.errors import InvalidSetting
from vlscore.evaluation.comparison.comparison_settings import ComparisonSettings, TableSettings
from vlscore.evaluation.comparison.language import language_facts, same_words, text_facts
from vlscore.evaluation.comparison.methods import paragraph
from vlscore.evaluation.comparison.paper_table import (
    chosen_numbers,
    paper_table,
    with_preset_columns,
)
from vlscore.evaluation.comparison.sources import Source, open_sources
from vlscore.evaluation.comparison.statistics import (
    Number,
    facts_of,
    numbers_and_tests,
    numbers_of,
)
from vlscore.evaluation.comparison.system_values import (
    SYSTEM,
    TRUNCATED,
    baseline_reports,
    values_of,
)
from vlscore.evaluation.comparison.systems import Systems, read_systems
from vlscore.evaluation.comparison.tables import VALUES, baseline_notes
from vlscore.evaluation.methods_text import REFERENCES, MethodsText
from vlscore.evaluation.scored import BASELINE, ID, Scored
from vlscore.metrics import Scorer
from vlscore.stats import Content, Result, benjamini_hochberg

if TYPE_CHECKING:
    import pandas

PAPER, METHODS = "table", "methods.md"


@checked_arguments
def compare(
    systems: Sequence[str | Path | Source],
    out: str | Path,
    scorer: Scorer | None = None,
    settings: ComparisonSettings | None = None,
    *,
    table: TableSettings | None = None,
    image_root: str | Path | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Compare systems that wrote reports for the same studies, and write tables and values.

    All systems' texts and numbers are held in memory. Called again when it has ended, it changes
    no number; the one table is written as `table` says. `draw` draws the finished folder.

    Args:
        systems: tables of studies with candidates, folders of finished evaluations, "name=path",
            or what `open_sources` returned. Images are read from the first table that has them,
            and only where a metric looks at them.
        out: folder for the results.
        scorer: the metrics; None where all systems are finished evaluations, whose metrics are
            then those of the first.
        settings: what the numbers depend on.
        table: how the one table is printed; also of a run that has ended.
        image_root: folder that image paths start from; default: that of their table.
        workers: processes that decode images.
        overwrite: compute again, and replace results when the new ones are complete.
        on_progress: called with (rows done, rows failed), a row being a study of a system.

    Returns: the result with the frames "systems" (one row a number and system), "differences" (one
        a number and pair of systems) and "texts"; with `by` also "subgroups" and
        "subgroup_differences" (of each value of each column, the primary numbers); with rates of
        errors of the references also "reference_errors" (one row a number and system, corrected),
        "reference_errors_pairs" and "reference_errors_rates".
    Raises: InvalidTable where studies or references differ; InvalidSetting where signatures do, or
        metrics are lacking; FolderInUse.
    """
    settings, sources = settings or ComparisonSettings(), open_sources(systems)
    joined = read_systems(sources, scorer, settings, image_root)
    shown = with_preset_columns(table or TableSettings(), scorer)
    further = joined.precomputed.signatures if joined.precomputed is not None else ()
    expected = [facts for each in (*joined.signatures, *further) for facts in facts_of(each)]
    # An unknown column is refused before anything is computed.
    chosen_numbers(expected, shown.columns)
    key = {"command": "compare", **joined.key, **settings.key()}
    if settings.reference_errors is not None:
        from vlscore.evaluation.comparison.reference_errors import errors_key  # most need none

        key |= errors_key(joined.signatures, settings)

    def compute(path: Path) -> Content:
        return _results_of(joined, settings, workers, on_progress)

    result = Result.make(out, key, compute, images=joined.image_files, overwrite=overwrite)
    paper = paper_table(result, shown)
    described = MethodsText(paragraph(result, shown.columns))
    texts = {f"{PAPER}.md": paper.markdown(), f"{PAPER}.tex": paper.latex()}
    texts |= {METHODS: described.markdown, REFERENCES: described.bibtex}
    for name, text in texts.items():
        with atomic_write(result.folder / name) as stream:
            stream.write(text)
    return result


def _results_of(
    systems: Systems, settings: ComparisonSettings, workers: int, on_progress: OnProgress
) -> Content:
    """Return the values of all systems and baselines, compared."""
    baselines, notes = baseline_reports(systems, settings, workers)
    names = [*systems.candidates, *baselines]
    if settings.against is not None and settings.against not in names:
        raise InvalidSetting(
            f"no system is called {settings.against}; there are {', '.join(names)}"
        )
    values = values_of(systems, baselines, workers, on_progress)
    numbers = numbers_of(values, len(names))
    drawn = {n: getattr(settings, n) for n in ("resamples", "permutations", "seed", "against")}
    found, tests = numbers_and_tests(names, numbers, patients=systems.patients, **drawn)
    candidates = {
        name: [systems.section(text, "candidate") for text in own]
        for name, own in systems.candidates.items()
    }
    candidates |= {name: [text or "" for text in own] for name, own in baselines.items()}
    facts = _facts_of_texts(systems, candidates, values)
    images = map(systems.images.get, systems.ids)
    has_prior = [getattr(found, "prior", None) is not None for found in images]
    language = language_facts(candidates, [text or "" for text in systems.references], has_prior)
    # What makes all other numbers void comes first.
    notes = [
        *_same_text_notes(facts),
        *baseline_notes(found, tests, f"{BASELINE}normal", "reports that are always normal"),
        *systems.notes,
        *notes,
    ]
    frames = {"systems": frame(found), "texts": frame(facts), "language": frame(language)}
    if tests:
        frames["differences"] = frame(tests)
    frames |= _by_group(names, numbers, systems, drawn)
    if settings.reference_errors is not None:
        from vlscore.evaluation.comparison.reference_errors import corrected_rankings

        corrected = corrected_rankings(systems, names, numbers, settings)
        frames |= corrected.frames
        notes += corrected.notes
    return Content(
        frames,
        {VALUES: values.with_errors().drop(columns=TRUNCATED, errors="ignore")},
        [*systems.failures, *values.failed(SYSTEM, ID)],
        values.signatures,
        notes,
        {
            "tables": {each.name: str(each.table.path.resolve()) for each in systems.sources},
            "studies": len(systems.studies),
        },
    )


def _by_group(
    names: Sequence[str], numbers: Sequence[Number], systems: Systems, drawn: Mapping[str, Any]
) -> "dict[str, pandas.DataFrame]":
    """Return frames of the primary numbers and of their tests in each group of studies.

    p values are adjusted over all tests of a column. The column "number" has the value of the
    number, "value" that of the group.

    Args: drawn: options of `numbers_and_tests`.
    """
    primary = [each for each in numbers if each.facts["primary"]]
    found: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    for column, groups in systems.groups.items():
        for value in sorted(set(groups)):
            rows = [k for k, group in enumerate(groups) if group == value]
            mine = [replace(each, statistics=each.statistics[:, rows]) for each in primary]
            patients = systems.patients and [systems.patients[k] for k in rows]
            own, own_tests = numbers_and_tests(names, mine, patients=patients, **drawn)
            group = {"column": column, "value": value}
            found += [
                group | {("number" if name == "value" else name): v for name, v in each.items()}
                for each in own
            ]
            tests += [group | each for each in own_tests]
    frames = {"subgroups": frame(found)} if found else {}
    if tests:
        tested = frame(tests).drop(columns="adjusted_p_all")
        p = tested.groupby("column", sort=False)["p"].transform(benjamini_hochberg)
        frames["subgroup_differences"] = tested.assign(adjusted_p=p)
    return frames


def _facts_of_texts(
    systems: Systems, texts: Mapping[str, Sequence[str]], values: Scored
) -> list[dict[str, Any]]:
    """Return facts about the candidates of every system as texts."""
    known = {same_words(text) for text in (*systems.references, *(systems.train or ())) if text}
    found = []
    for name, rows in values.rows.groupby(SYSTEM, sort=False):
        lacking = rows[list(map(str, systems.signatures))].isna().sum()
        flags = rows[TRUNCATED].dropna() if TRUNCATED in rows else ()
        found.append(
            {
                "system": name,
                **text_facts(texts[name], known),
                "truncated": float(np.mean(flags)) if len(flags) else None,
                "without_value": ", ".join(f"{m} {count}" for m, count in lacking.items() if count),
            }
        )
    return found


def _same_text_notes(facts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each system that writes the same report for all studies."""
    return [
        f"{each['system']} has one and the same report for all {each['n']} studies, whatever they "
        "show"
        for each in facts
        if each["n"] > 1 and round(each["distinct"] * each["n"]) == 1
        if not each["system"].startswith(BASELINE)
    ]
