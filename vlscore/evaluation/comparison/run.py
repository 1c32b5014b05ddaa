"""Comparison of systems, in a resumable folder of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import OnPhase, OnProgress, ResumableFolder, frame, settings_in
from vlscore.data import ColumnNames, ReportTable
from vlscore.evaluation.command_settings import ComparisonSettings, TableSettings
from vlscore.evaluation.comparison.comparison_figures import draw_comparison
from vlscore.evaluation.comparison.comparison_job import ComparisonJob, open_systems
from vlscore.evaluation.comparison.known import EXTENDS
from vlscore.evaluation.comparison.paper_table import check_table, paper_table
from vlscore.evaluation.comparison.statistics import Comparison
from vlscore.evaluation.comparison.systems import Source
from vlscore.evaluation.comparison.tables import (
    CONTENT,
    RESULTS,
    VALUES,
    first_failures,
    write_paper_table,
)
from vlscore.evaluation.finished_folders import METHODS, REFERENCES, methods
from vlscore.metrics import Scorer
from vlscore.stats import FAILURES, Failure, Run, TextTable, check_drawable, write_changed

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ComparisonRun(Run):
    """A comparison and its files; docs/comparing.md describes them.

    Attributes:
        result: the numbers; None where the run had ended before.
        taken_up: how many columns of an earlier comparison in the folder were used again, a column
            being the values of one system in one metric.
    """

    content_file = CONTENT
    results = RESULTS

    result: Comparison | None = None
    taken_up: int = 0

    @property
    def failed(self) -> int:
        """Return the number of missing values."""
        return sum(sum(counts.values()) for counts in self.content["failed"].values())

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a system and number: value, its bounds, n, support. Needs pandas."""
        return frame(
            {
                "system": system,
                "metric": each["name"],
                "value": each["values"][system],
                "n": each["count"],
                "support": each["support"].get(system),
                "higher_is_better": each["higher_is_better"],
            }
            for each in self.content["measured"]
            for system in self.content["systems"]
        )

    def table(self, settings: TableSettings | None = None) -> TextTable:
        """Return the one table of the comparison; see `TableSettings`."""
        return paper_table(self.content, settings)

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """Return the first missing values, each reason once; `row` is the system."""
        return first_failures(self.folder / FAILURES)[:count]


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
    table: TableSettings | None = None,
    figure: str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase | None = None,
) -> ComparisonRun:
    """Compare systems that wrote reports for the same studies, and write tables and values.

    Every image and every reference is embedded once for all systems. All systems' texts and
    numbers are held in memory.

    Called again after a stop with the same arguments, a run resumes where it was. Called again
    when it has ended, it changes nothing. Called with other metrics or systems, it computes those
    that are new alone, and writes the tables of what was asked for.

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
            `read_elsewhere`.
        resamples, permutations, seed, ignore_blanks, patient_column, against: see there.
        table: how the one table is printed; also of a run that has ended.
        figure: "png", "svg" or "pdf": also draw the table's numbers, their paired differences
            and the systems' ranks; also of a run that has ended.
        workers: processes that decode images.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_progress: called with (rows done, values lacking), where there is no `on_phase`.
        on_phase: called at the beginning of each phase with (what is done, how many in all);
            returns what is called with (done, failed).

    Raises: InvalidTable where studies or references differ; InvalidSetting where signatures do, or
        metrics are lacking; FolderInUse.
    """
    settings = settings_in(ComparisonSettings, locals())
    if figure is not None:
        check_drawable(figure)
    run = ComparisonJob(open_systems(systems, columns), scorer, settings, image_root)

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        result = run.compare(folder, workers, on_progress, on_phase)
        return {"result": result, "taken_up": run.taken_up}

    shown = table or TableSettings()
    check_table(shown, run.signatures, [each.name for each in run.given], against)
    ended = ComparisonRun.make(out, run.key(), compute, overwrite=overwrite, extends=EXTENDS)
    write_paper_table(ended.folder, ended.content, shown)
    described = methods(ended.folder)
    write_changed(ended.folder / METHODS, described.markdown)
    write_changed(ended.folder / REFERENCES, described.bibtex)
    if figure is not None:
        draw_comparison(ended.folder, ended.content, figure, shown.columns, VALUES)
    return ended
