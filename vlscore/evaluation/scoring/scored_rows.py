"""Scored rows of a table as data frames, written into the folder of an evaluation and read again.

| file | holds, a row for every row of the table |
|---|---|
| scores.parquet or .csv | row, id, the user's own columns, every number, flags, error |
| sums.parquet | what values of the whole corpus are computed from |
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import FinishedRun, Signature, read_frame
from vlscore.data import Study, StudyTable, are_unlike_sections, is_missing, read_rows
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.score_table import GUESSED, Row
from vlscore.metrics import (
    FLAGS,
    NUMBERS,
    Item,
    Metric,
    Scorer,
    ScoreTable,
    metric_from_file,
    percentile_column,
)
from vlscore.text import has_headings

if TYPE_CHECKING:
    import pandas

ROW, ID, ERROR = "row", "id", "error"
SCORES = ("scores.parquet", "scores.csv")
SUMS = "sums.parquet"
HEADINGS = "references with headings, scored whole"
UNLIKE = "impressions scored against findings, or the reverse"
# Beyond these, a candidate is near the line through image and reference, but not near the latter.
_FOOT_NEAR = (-0.5, 1.5)


@dataclass(frozen=True)
class ScoredRows:
    """The scored rows of a table.

    Attributes:
        scores: one row a row of the table; see above.
        sums: metric -> (n, s), for metrics with values of the whole corpus.
        metrics: in order, each with what its numbers depend on.
    """

    scores: "pandas.DataFrame"
    sums: Mapping[str, NDArray[np.float64]]
    metrics: Mapping[Metric, Signature]

    def files(self, format: str) -> dict[str, "pandas.DataFrame"]:
        """Return the files of `Content.rows`.

        Args: format: of the scores, "parquet" or "csv".
        """
        import pandas

        found = {f"scores.{format}": self.scores}
        if self.sums:
            found[SUMS] = pandas.DataFrame(
                {
                    f"{m}.{k}": each[:, k]
                    for m, each in self.sums.items()
                    for k in range(each.shape[1])
                }
            )
        return found

    @classmethod
    def read(cls, run: FinishedRun, metrics: Iterable[Metric] = ()) -> "ScoredRows":
        """Read what a finished evaluation wrote.

        Args: metrics: metrics that no registry has.
        Raises: InvalidTable where the run is no evaluation; InvalidSetting for an unknown metric.
        """
        name = next((name for name in SCORES if name in run.digests), None)
        if name is None or "metrics" not in run.key:
            raise InvalidTable(
                f"{run.folder / 'run.json'} is not that of `vlscore evaluate`: give the folder of "
                "a finished evaluation, or a table"
            )
        own = {str(metric): metric for metric in metrics}
        found = {
            own.get(n) or metric_from_file(n, f"{run.folder}/run.json"): Signature.parse(text)
            for n, text in run.key["metrics"].items()
        }
        texts = (ID, ERROR, *own_names(run.key.get("own_columns") or {}))
        sums: dict[str, NDArray[np.float64]] = {}
        if SUMS in run.digests:
            columns = read_frame(run.folder / SUMS)
            for metric in found:
                if metric.statistics:
                    wanted = [f"{metric}.{k}" for k in range(metric.statistics)]
                    sums[str(metric)] = columns[wanted].to_numpy(dtype=np.float64)
        return cls(read_frame(run.folder / name, texts=texts), sums, found)


def scored_rows(
    rows: Sequence[Study | Failure],
    table: ScoreTable,
    own: Mapping[str, Mapping[Any, str | None]],
    part: Sequence[int],
) -> ScoredRows:
    """Return the values of rows with their ids and the reasons of failures.

    Args:
        table: values of the n rows.
        own: name of a user's own column -> number of a row -> its text.
        part: positions of the rows that are returned.
    """
    import pandas

    reasons: list[dict[str, None]] = [{} for _ in rows]
    for values in table.values.values():
        for row, error in values.failures.items():
            reasons[row][str(error)] = None
    texts = {
        ID: [row.id or None for row in rows],
        **{name: [column[row.row] for row in rows] for name, column in own.items()},
    }
    numbers = {
        name: np.where(np.isfinite(column), column, np.nan) if column.dtype != bool else column
        for name, column in table.columns.items()
        if name != GUESSED or column.any()
    }
    scores = pandas.DataFrame(
        {
            ROW: [row.row for row in rows],
            **{name: pandas.Series(column, dtype=object) for name, column in texts.items()},
            **numbers,
            ERROR: pandas.Series(["; ".join(each) or None for each in reasons], dtype=object),
        }
    )
    scores = scores.iloc[list(part)].reset_index(drop=True)
    scores.attrs = {"signatures": {name: str(each) for name, each in table.signatures.items()}}
    sums = {
        str(metric): values.statistics[list(part)]
        for metric, values in table.values.items()
        if values.statistics is not None and metric.corpus
    }
    metrics = {metric: table.signatures[str(metric)] for metric in table.metrics}
    return ScoredRows(scores, sums, metrics)


def item_of(row: Study | Failure, scorer: Scorer, position: int | None = None) -> Row:
    """Return what `score_table` scores; an error for a row that could not be read.

    Args: position: of the row in its table, from 0.
    """
    if isinstance(row, Failure):
        return InvalidStudy(row.reason)
    if not scorer.needs.images:
        return Item(row.candidate or "", row.reference, None, row.parts, row.lacking, position)

    from vlscore.embedding import StudyViews  # loads torch

    shown = None if "image" in row.lacking else StudyViews.of(row)
    return Item(row.candidate or "", row.reference, shown, row.parts, row.lacking, position)


def counts_of(
    rows: Sequence[Study | Failure], scored: ScoredRows, scorer: Scorer
) -> list[dict[str, Any]]:
    """Return how many rows have values, and how many are special cases, where there are some."""
    scores = scored.scores
    studies = [row for row in rows if isinstance(row, Study)]
    failed = int(scores[ERROR].notna().sum())
    found: dict[str, int] = {
        "rows": len(scores),
        "rows with every value": len(scores) - failed,
    }
    for flag in FLAGS:
        if flag in scores:
            found[f"{flag.partition('_')[0]}s truncated"] = int(scores[flag].sum())
    if "foot" in scores:
        low, high = _FOOT_NEAR
        foot = scores["foot"]
        found["foot far from the reference"] = int(((foot < low) | (foot > high)).sum())
    noticed = {
        "empty candidates, scored as they are": sum(
            not (study.candidate or "").strip() for study in studies
        ),
        **{
            f'{role}s that say "nan", "None", "[\'...\']" or the like': sum(
                role in study.suspicious for study in studies
            )
            for role in ("candidate", "reference")
        },
        "studies whose frontal view is a guess": int(scores[GUESSED].sum())
        if GUESSED in scores
        else 0,
        HEADINGS: count_headings(studies, scorer),
        UNLIKE: count_unlike_sections(studies, scorer),
    }
    found |= {name: count for name, count in noticed.items() if count}
    return [{"what": name, "n": count} for name, count in found.items()]


def count_headings(studies: Iterable[Study], scorer: Scorer) -> int:
    """Return how many references have headings although they are scored whole."""
    if scorer.text_policy.section_of("reference") != "all" or not scorer.needs.references:
        return 0
    return sum(s.parts is None and has_headings(s.reference or "") for s in studies)


def count_unlike_sections(studies: Iterable[Study], scorer: Scorer) -> int:
    """Return how many candidates have another section scored than their references."""
    if not scorer.needs.references:
        return 0
    return sum(are_unlike_sections(study, scorer.text_policy) for study in studies)


def own_names(own: Mapping[str, Any]) -> list[str]:
    """Return the names of a user's own columns, each once.

    Args: own: `keep` and `by`, lists of columns, and `patient`, a column or None.
    """
    patient = [own["patient"]] if own.get("patient") else []
    return list(dict.fromkeys((*own.get("keep", ()), *own.get("by", ()), *patient)))


def read_own(
    names: Sequence[str], table: StudyTable, metrics: Iterable[Metric]
) -> dict[str, dict[int, str | None]]:
    """Return column -> number of a row -> its text, None for an empty cell.

    Raises: InvalidTable for a column that the table lacks; InvalidSetting for one whose name the
        results have already, of a metric too.
    """
    if lacking := [name for name in names if name not in table.found]:
        raise InvalidTable(
            f"{table.path}: no column {', '.join(lacking)}; found: {', '.join(table.found)}"
        )
    taken = {ROW, ID, ERROR, GUESSED, *NUMBERS, *FLAGS}
    for metric in metrics:
        if unlucky := taken & set(metric.columns):
            raise InvalidSetting(
                f"the metric {metric} has the column {min(unlucky)}, which every table of scores "
                "has already; give the metric another name"
            )
        taken |= {*metric.columns, percentile_column(metric)}
    if twice := [name for name in names if name in taken]:
        raise InvalidSetting(
            f"{table.path}: the results have a column {twice[0]} already; give yours another name"
        )
    found: dict[str, dict[int, str | None]] = {name: {} for name in names}
    for number, record in read_rows(table.path, names) if names else ():
        for name, column in found.items():
            column[number] = None if isinstance(record, str) else _text(record.get(name))
    return found


def _text(value: Any) -> str | None:
    if is_missing(value):
        return None
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
