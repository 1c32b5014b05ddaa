"""Comparison of systems that wrote reports for the same studies, into a folder of results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import OnProgress, frame, no_progress
from vlscore.data import ColumnNames, ReportTable, Study, select
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.evaluation.command_settings import ComparisonSettings, TableSettings
from vlscore.evaluation.comparison.comparison_figures import VALUES, draw_comparison
from vlscore.evaluation.comparison.inputs import Inputs, opened_systems
from vlscore.evaluation.comparison.language import language_facts, language_table
from vlscore.evaluation.comparison.paper_table import check_table, paper_table
from vlscore.evaluation.comparison.statistics import (
    Quantity,
    compared,
    quantities_of,
    same_words,
    text_facts,
)
from vlscore.evaluation.comparison.system_values import (
    SystemValues,
    baseline_reports,
    precomputed_values,
    values_of,
)
from vlscore.evaluation.comparison.systems import Source
from vlscore.evaluation.comparison.tables import (
    differences_tables,
    subgroup_tables,
    systems_table,
    texts_table,
)
from vlscore.evaluation.finished_folders import METHODS, REFERENCES, methods
from vlscore.evaluation.scoring.scored_rows import IMAGES, images_frame, require_same_images
from vlscore.metrics import Scorer
from vlscore.stats import (
    Content,
    Failure,
    Result,
    adjusted_p_values,
    check_drawable,
    mean_statistics,
    with_mark,
    write_changed,
)

if TYPE_CHECKING:
    import pandas

PAPER = "table"
PAPER_FORMATS = ("md", "tex")


def compare(
    systems: Sequence[str | Path | Source],
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    baselines: bool = False,
    train: ReportTable | None = None,
    values: str | Path | None = None,
    lower_is_better: Sequence[str] = (),
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
    ignore_blanks: bool = False,
    patient_column: str | None = None,
    against: str | None = None,
    by: Sequence[str] = (),
    table: TableSettings | None = None,
    figure: str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Compare systems that wrote reports for the same studies, and write tables and values.

    All systems' texts and numbers are held in memory. Called again when it has ended, it changes
    no number; the one table is written as `table` says.

    Args:
        systems: tables of studies with candidates, folders of finished evaluations, "name=path",
            or what `open_sources` returned. Images are read from the first table that has them,
            and only where a metric looks at them.
        out: folder for the results.
        scorer: the metrics; None where all systems are finished evaluations, whose metrics are
            then those of the first.
        columns: other names of columns in the tables.
        image_root: folder that image paths start from; default: that of their table.
        baselines, train, values, lower_is_better: see `ComparisonSettings`; `values` is read as by
            `read_precomputed`, with the columns system and id.
        resamples, permutations, seed, ignore_blanks, patient_column, against, by: see there.
        table: how the one table is printed; also of a run that has ended.
        figure: "png", "svg" or "pdf": also draw the table's numbers and their paired differences;
            also of a run that has ended.
        workers: processes that decode images.
        overwrite: compute again, and replace results when the new ones are complete.
        on_progress: called with (rows done, rows failed), a row being a study of a system.

    Returns: the result with the frames "systems" (one row a number and system), "differences" (one
        a number and pair of systems) and "texts"; with `by` also "subgroups" and
        "subgroup_differences" (of each value of each column, the primary numbers).
    Raises: InvalidTable where studies or references differ; InvalidSetting where signatures do, or
        metrics are lacking; FolderInUse.
    """
    settings = ComparisonSettings(
        train=train,
        baselines=baselines,
        values=values,
        lower_is_better=tuple(lower_is_better),
        resamples=resamples,
        permutations=permutations,
        seed=seed,
        ignore_blanks=ignore_blanks,
        against=against,
        by=tuple(by),
        patient_column=patient_column,
    )
    if figure is not None:
        check_drawable(figure)
    inputs = Inputs.read(opened_systems(systems, columns), scorer, settings, image_root)
    shown = table or TableSettings()
    precomputed = inputs.precomputed.higher_is_better if inputs.precomputed is not None else ()
    check_table(shown, inputs.signatures, precomputed)

    def compute(path: Path) -> Content:
        return _compared(inputs, settings, workers, on_progress)

    result = Result.make(out, inputs.key(settings), compute, overwrite=overwrite)
    if result.unchanged and inputs.image_table is not None:
        require_same_images(result.folder)
    paper = paper_table(result, shown)
    for suffix, text in zip(PAPER_FORMATS, (paper.markdown(), paper.latex()), strict=True):
        write_changed(result.folder / f"{PAPER}.{suffix}", text)
    described = methods(result.folder)
    write_changed(result.folder / METHODS, described.markdown)
    write_changed(result.folder / REFERENCES, described.bibtex)
    if figure is not None:
        draw_comparison(result, figure, shown.columns)
    return result


def _compared(
    inputs: Inputs, settings: ComparisonSettings, workers: int, on_progress: OnProgress
) -> Content:
    """Return the values of all systems and baselines, compared."""
    texts: dict[str, Sequence[str | None]] = dict(inputs.systems.candidates)
    baselines, notes = baseline_reports(inputs, settings, workers)
    names = [*texts, *baselines]
    if settings.against is not None and settings.against not in names:
        raise InvalidSetting(
            f"no system is called {settings.against}; there are {', '.join(names)}"
        )
    values = values_of(inputs, baselines, workers, on_progress)
    quantities = [
        quantity
        for metric in inputs.signatures
        for quantity in quantities_of(metric, values.columns, values.sums.get(str(metric)))
    ]
    signatures = {str(metric): str(s) for metric, s in inputs.signatures.items()}
    for name, column in precomputed_values(inputs, names).items():
        assert inputs.precomputed is not None
        better = inputs.precomputed.higher_is_better[name]
        statistics = mean_statistics(column)
        quantities.append(Quantity(name, name, better, statistics, name, all_systems=False))
        values.columns[name] = column
        signatures[name] = str(inputs.precomputed.signature)
    measured, tested = compared(
        names,
        quantities,
        resamples=settings.resamples,
        permutations=settings.permutations,
        seed=settings.seed,
        patients=inputs.patients,
        against=settings.against,
    )
    by_group, tests_by_group = _by_group(names, quantities, inputs, settings)
    read = _read_texts(inputs, {**texts, **baselines}, baselines)
    facts = _facts_of_texts(inputs, read, values)
    language = language_facts(read, *_references(inputs))
    # What makes all other numbers void comes first.
    notes = [*_same_text_notes(facts), *inputs.notes, *notes]
    tables = subgroup_tables(by_group, tests_by_group)
    tables += [texts_table(facts), systems_table(measured, names), language_table(language)]
    tables += differences_tables(measured, tested)
    frames = {"systems": frame(measured), "texts": frame(facts), "language": frame(language)}
    further = {
        "differences": tested,
        "subgroups": by_group,
        "subgroup_differences": tests_by_group,
    }
    frames |= {name: frame(records) for name, records in further.items() if records}
    return Content(
        frames,
        with_mark(tables, signatures.values()),
        _files(inputs, names, values),
        [
            Failure(names[k], inputs.systems.studies[row].id, reason)
            for (k, row), reason in sorted(values.reasons.items())
        ],
        signatures,
        notes,
        {
            "tables": {each.name: str(each.table.path.resolve()) for each in inputs.sources},
            "studies": len(inputs.systems.studies),
        },
    )


def _by_group(
    names: Sequence[str],
    quantities: Sequence[Quantity],
    inputs: Inputs,
    settings: ComparisonSettings,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the primary numbers and their tests in each group of studies.

    p values are adjusted over all tests of a column.
    """
    measured: list[dict[str, Any]] = []
    tested: list[dict[str, Any]] = []
    for column, groups in inputs.groups.items():
        tests: list[dict[str, Any]] = []
        for value in sorted(set(groups)):
            rows = [k for k, group in enumerate(groups) if group == value]
            found, own = compared(
                names,
                [replace(q, statistics=q.statistics[:, rows]) for q in quantities if q.primary],
                resamples=settings.resamples,
                permutations=settings.permutations,
                seed=settings.seed,
                patients=inputs.patients and [inputs.patients[k] for k in rows],
                against=settings.against,
            )
            measured += [{"column": column, "value": value, **each} for each in _renamed(found)]
            tests += [{"column": column, "value": value, **each} for each in own]
        for test, p in zip(tests, adjusted_p_values([t["p"] for t in tests]), strict=True):
            test["adjusted_p"] = float(p)
            del test["adjusted_p_all"]
        tested += tests
    return measured, tested


def _renamed(measured: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records whose number is called "number": "value" is that of the group."""
    return [{("number" if k == "value" else k): v for k, v in each.items()} for each in measured]


def _read_texts(
    inputs: Inputs, texts: Mapping[str, Sequence[str | None]], baselines: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the section of each system's candidates that is scored; "" for none."""

    def selected(text: str) -> str:
        try:
            return select(text, inputs.policy, "candidate")
        except VLScoreError:
            return text

    given = {name: [text or "" for text in own] for name, own in texts.items()}
    return {
        name: own if name in baselines else [*map(selected, own)] for name, own in given.items()
    }


def _references(inputs: Inputs) -> tuple[list[str], list[bool]]:
    """Return the references that are scored, "" for none, and whether each has an earlier image."""
    images = (inputs.systems.images.get(study.id) for study in inputs.systems.studies)
    has_prior = [getattr(found, "prior", None) is not None for found in images]
    return [text or "" for text in inputs.references()], has_prior


def _facts_of_texts(
    inputs: Inputs, texts: Mapping[str, Sequence[str]], values: SystemValues
) -> list[dict[str, Any]]:
    """Return facts about the candidates of every system as texts."""
    known = {same_words(text) for text in inputs.references() if text is not None}
    known |= {same_words(text) for text in inputs.train or ()}
    found = []
    for k, (name, candidates) in enumerate(texts.items()):
        facts = text_facts(candidates, known)
        lacking = {
            str(metric): int((~np.isfinite(values.columns[str(metric)][k])).sum())
            for metric in inputs.signatures
        }
        cut = None if values.truncated is None else float(values.truncated[k].mean())
        without = ", ".join(f"{metric} {count}" for metric, count in lacking.items() if count)
        found.append({"system": name, **facts, "truncated": cut, "without_value": without})
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


def _files(
    inputs: Inputs, names: Sequence[str], values: SystemValues
) -> dict[str, "pandas.DataFrame"]:
    """Return the values of single studies, one row a system and study, and the images."""
    import pandas

    ids = [study.id for study in inputs.systems.studies]
    rows = pandas.DataFrame(
        {
            "system": np.repeat(np.array(names, dtype=object), len(ids)),
            "id": ids * len(names),
            **{name: column.ravel() for name, column in values.columns.items()},
            "error": [
                values.reasons.get((k, row)) for k in range(len(names)) for row in range(len(ids))
            ],
        }
    )
    files = {VALUES: rows.astype({"error": object})}
    if inputs.image_table is not None:
        images = inputs.systems.images.values()
        files[IMAGES] = images_frame(
            path for found in images if isinstance(found, Study) for path in found.images
        )
    return files
