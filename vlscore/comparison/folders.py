"""Values of a finished evaluation, in the order of the studies that are compared."""

from collections.abc import Mapping, Sequence

import numpy as np

from vlscore._resumable import FinishedRun
from vlscore._signature import Signature, difference
from vlscore.comparison.computing import Layout, SystemValues
from vlscore.errors import InvalidSetting
from vlscore.evaluation.results import layout_of_run, read_rows_of
from vlscore.evaluation.rows import ID, STATISTICS, reasons_of
from vlscore.metrics import Metric
from vlscore.studies import Study

_TRUNCATED = "candidate_truncated"


def signatures_of(run: FinishedRun) -> dict[Metric, Signature]:
    """The metrics of a finished evaluation, and what their numbers depend on."""
    return dict(layout_of_run(run).metrics)


def read_values(
    run: FinishedRun, signatures: Mapping[Metric, Signature], studies: Sequence[Study]
) -> SystemValues:
    """The values that a finished evaluation has of these metrics.

    Raises: InvalidSetting where it lacks a metric, or has it with another signature.
    """
    layout = layout_of_run(run, {str(metric): metric for metric in signatures})
    there = {str(metric): signature for metric, signature in layout.metrics}
    for metric, wanted in signatures.items():
        found = there.get(str(metric))
        if found is None:
            raise InvalidSetting(
                f"{run.folder} has no values of {metric}; it has {', '.join(there)}. Add them with "
                "`vlscore evaluate --metrics`, or give its table instead of the folder"
            )
        if found != wanted:
            raise InvalidSetting(
                f"{run.folder} holds {metric} computed in another way than the others: "
                f"{difference(found, wanted)}. Values of different signatures are not compared"
            )
    place = {study.id: k for k, study in enumerate(studies)}
    target = Layout(tuple(signatures))
    values = SystemValues(np.full((len(studies), target.width), np.nan))
    for table in read_rows_of(run, layout):
        ids = table[ID].to_pylist()
        rows = [k for k, name in enumerate(ids) if name in place]
        to = [place[ids[k]] for k in rows]
        for metric in signatures:
            columns = [table[name].to_numpy()[rows] for name in metric.columns]
            values.numbers[to, target.columns(metric)] = np.stack(columns, axis=1)
            if metric.statistics:
                flat = np.asarray(table[f"{STATISTICS}{metric}"].combine_chunks().flatten())
                sums = flat.reshape(len(table), metric.statistics)
                values.numbers[to, target.statistics(metric)] = sums[rows]
        if _TRUNCATED in table.column_names:
            if values.truncated is None:
                values.truncated = np.zeros(len(studies), dtype=bool)
            values.truncated[to] = table[_TRUNCATED].to_numpy()[rows]
        wanted_names = {str(metric) for metric in signatures}
        for _, name, reasons in reasons_of(table):
            if name in place:
                kept = {m: reason for m, reason in reasons.items() if m in wanted_names}
                if "row" in reasons:
                    kept = dict.fromkeys(wanted_names, reasons["row"])
                if kept:
                    values.failures[place[name]] = kept
    return values
