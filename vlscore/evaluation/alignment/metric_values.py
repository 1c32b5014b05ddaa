"""Values of metrics for rated pairs: computed here, or read from a table of values."""

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from vlscore.core import cells
from vlscore.data import columns_of
from vlscore.embedding import StudyViews
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, UnknownName
from vlscore.evaluation.alignment.agreement import MeasuredMetric
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.evaluation.alignment.rating_builder import missing_columns
from vlscore.evaluation.row_chunks import read_arrays, write_arrays
from vlscore.metrics import Item, Metric, Scorer, ValueColumns, find_metric, find_metrics

_PAIR_IDS = ("study_id", "candidate_id")
# RadEvalX's table of published values (metrcis_scores_m2tr.csv): the column of its ids, one that is
# no value, and one of which smaller values are better.
_RADEVALX = frozenset({"report_id", "radgraph_f1", "radcliq"})
_RADEVALX_ID, _RADEVALX_OTHER, _RADEVALX_LOWER = "report_id", "id", "radcliq"
# Row of the pairs and name of the metric -> why there is no value.
Failures = dict[tuple[int, str], str]


def check_inputs(scorer: Scorer, pairs: RatedPairs) -> None:
    """Raise InvalidSetting where the rated set lacks what the metrics look at."""
    needs = scorer.plan.needs
    names = ", ".join(map(str, scorer.metrics))
    if pairs.texts is None or (needs.references and pairs.references is None):
        raise InvalidSetting(
            f"{names} look at reports, and {pairs.source} has none: name their columns "
            "(--reference-column, --candidate-column), give each candidate's table (--reports "
            "NAME=TABLE), or values that were computed elsewhere (--values)"
        )
    if needs.images and pairs.images is None:
        raise InvalidSetting(
            f"{names} look at images, and {pairs.source} names none: give a table of the "
            "studies and their images (--studies), or the column of image paths (--image-column)"
        )


def columns_named(metrics: Sequence[Metric], names: Sequence[str]) -> list[tuple[Metric, str]]:
    """Return the named numbers of metrics, as "findings-f1.precision"; default: the first of each.

    Raises: InvalidSetting where a metric has no such number.
    """
    known = {column: (metric, column) for metric in metrics for column in metric.columns}
    # Also by the name without settings, because an option (--C) may have added a setting to it.
    plain = {metric.name: (metric, str(metric)) for metric in metrics if metric.settings}
    if unknown := [name for name in names if name not in known and name not in plain]:
        raise InvalidSetting(
            f"no metric has the value {', '.join(unknown)}; there are {', '.join(known)}"
        )
    return [(plain | known)[name] for name in names or map(str, metrics)]


def split_values(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return metrics to compute, and their numbers, from names such as "findings-f1.recall".

    A name without a point means the metric's first number.

    Raises: UnknownName as `find_metric`, and InvalidSetting where a metric has no such number.

    >>> split_values(["bleu-4", "findings-f1.recall"])
    (['bleu-4', 'findings-f1'], ['bleu-4', 'findings-f1.recall'])
    """
    metrics: dict[Metric, str] = {}
    columns = []
    for name in names:
        base, point, value = name.rpartition(".")
        is_value = bool(point) and ":" not in name and value.replace("-", "").isalnum()
        # A setting may contain a point ("vlscore(C=2.5)"); the name of a number has none.
        is_value = is_value and not value.endswith(")") and base.count("(") == base.count(")")
        written = base if is_value else name
        if is_value:
            metric = find_metric(written)
            metrics.setdefault(metric, written)
            columns.append(f"{metric}.{value}")
            continue
        for metric in find_metrics([written]):
            metrics.setdefault(metric, written if metric == _found(written) else str(metric))
            columns.append(str(metric))
    columns_named(list(metrics), columns)
    return list(metrics.values()), list(dict.fromkeys(columns))


def _found(name: str) -> Metric | None:
    """Return the metric of that name; None if the name is that of a group."""
    try:
        return find_metric(name)
    except UnknownName:
        return None


def compute_values(
    scorer: Scorer, pairs: RatedPairs, rows: range, columns: Sequence[tuple[Metric, str]]
) -> tuple[Array, Failures]:
    """Return values of metrics for some of the pairs.

    Args:
        columns: the numbers that are wanted, from `columns_named`.

    Returns: (columns, rows) float64, nan where there is none; and the reasons.
    """
    items, places = [], []
    failures: Failures = {}
    for row in rows:
        try:
            items.append(_item(scorer, pairs, row))
            places.append(row)
        except InvalidStudy as reason:
            failures |= {(row, name): str(reason) for _, name in columns}
    found = np.full((len(columns), len(rows)), np.nan)
    if not items:
        return found, failures
    table = scorer.score_items(items)
    where = [row - rows.start for row in places]
    for k, (metric, name) in enumerate(columns):
        values = table.values[metric]
        numbers = values.columns[name]
        found[k, where] = np.where(np.isfinite(numbers), numbers, np.nan)
        for position, error in values.failures.items():
            failures[places[position], name] = str(error)
    return found, failures


def _item(scorer: Scorer, pairs: RatedPairs, row: int) -> Item:
    needs = scorer.plan.needs
    assert pairs.texts is not None
    reference = pairs.references[row] if pairs.references is not None else None
    if needs.references and not (reference or "").strip():
        raise InvalidStudy("the reference report is empty")
    shown = None
    if needs.images:
        assert pairs.images is not None
        image = pairs.images[row]
        if image is None:
            raise InvalidStudy(f"no image is known of study {pairs.studies[row]!r}")
        shown = StudyViews(image.images, image.views)
    return Item(pairs.texts[row], reference, shown)


def write_chunk(place: Path, values: Array, failures: Failures) -> None:
    """Write the values of one chunk of pairs."""
    facts = [[row, name, why] for (row, name), why in failures.items()]
    write_arrays(place, facts, values=values)


def read_chunk(place: Path) -> tuple[Array, Failures]:
    """Return what `write_chunk` wrote."""
    arrays, failed = read_arrays(place)
    return arrays["values"], {(row, name): why for row, name, why in failed}


def read_values(
    path: str | Path, pairs: RatedPairs, *, lower_is_better: Collection[str] = ()
) -> tuple[list[MeasuredMetric], Failures, list[str]]:
    """Return values that were computed elsewhere: one row a pair, one column a metric.

    Directions and cells that are no numbers are treated as `ValueColumns` does. RadEvalX's own
    table of values is read as it is published.

    Args:
        path: table with study_id and candidate_id; the latter may be absent if no study has two
            candidates.
        lower_is_better: columns of which smaller values are better.

    Returns: the metrics, the pairs that lack a value, and notes.
    Raises:
        InvalidTable: the file cannot be read, has no column of values, or names a pair twice.
        InvalidSetting: a name in `lower_is_better` is no column.
    """
    path = Path(path)
    found = columns_of(path)
    study_column, candidate_column = _PAIR_IDS
    ids = set(_PAIR_IDS)
    if study_column not in found and set(found) >= _RADEVALX:
        study_column, ids = _RADEVALX_ID, {_RADEVALX_ID, _RADEVALX_OTHER}
        lower_is_better = {*lower_is_better, _RADEVALX_LOWER}
    alone = len(set(pairs.studies)) == len(pairs)
    missing_columns(path, found, [study_column, *([] if alone else [candidate_column])])
    names = [name for name in found if name not in ids]
    if not names:
        raise InvalidTable(f"{path}: has no column of values besides those of the ids")
    columns = ValueColumns(path, names, lower_is_better)
    by_both = not alone or candidate_column in found
    id_columns = (study_column, candidate_column) if by_both else (study_column,)
    places = {
        both[: len(id_columns)]: k
        for k, both in enumerate(zip(pairs.studies, pairs.candidates, strict=True))
    }
    values = {name: np.full(len(pairs), np.nan) for name in names}
    failures: Failures = {}
    seen = set()
    for number, pair, record in columns.rows(*id_columns):
        if pair not in places:
            columns.pass_over()
            continue
        if pair in seen:
            candidate = pair[1] if by_both else ""
            raise InvalidTable(
                f"{path}, row {number}: study {pair[0]!r}, candidate {candidate!r} has an earlier "
                "row"
            )
        seen.add(pair)
        for name in names:
            found_value, why = columns.value(number, record[name], name)
            values[name][places[pair]] = found_value
            if why is not None:
                failures[places[pair], name] = why
    if not seen:
        raise InvalidTable(f"{path}: none of its rows has the ids of a rated pair")
    for name in names:
        for row in np.flatnonzero(np.isnan(values[name])):
            failures.setdefault((int(row), name), columns.lacking)
    signature = str(columns.signature)
    metrics = [
        MeasuredMetric(name, values[name], columns.is_higher_better(name), signature)
        for name in names
    ]
    return metrics, failures, columns.notes("rated pair")


def write_values(path: Path, pairs: RatedPairs, metrics: Sequence[MeasuredMetric]) -> None:
    """Write one row a pair: ids, every metric's value, and the raters' mean of each rating."""
    columns: Mapping[str, Array] = {
        **{metric.name: metric.values for metric in metrics},
        **{f"mean {name}": values for name, values in pairs.means.items()},
    }
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["study_id", "candidate_id", *cells(columns)])
        for row, ids in enumerate(zip(pairs.studies, pairs.candidates, strict=True)):
            numbers = (values[row] for values in columns.values())
            shown = ("" if np.isnan(v) else repr(float(v)) for v in numbers)
            writer.writerow([*cells(ids), *shown])
