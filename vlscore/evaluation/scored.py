"""Values of rows: one frame that every command fills, groups and writes.

An evaluation writes it into its folder:

| file | holds, a row for every row of the table |
|---|---|
| scores.parquet or .csv | row, id, the user's own columns, every number, flags, error |
| sums.parquet | what values of the whole corpus are computed from |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import FinishedRun, Signature, read_frame
from vlscore.errors import Failure, InvalidTable
from vlscore.evaluation.score_table import VIEW_GUESSED
from vlscore.metrics import Metric, ScoreTable, metric_from_file

if TYPE_CHECKING:
    import pandas

ROW, ID, ERROR = "row", "id", "error"
# What names of baselines begin with, in comparisons and signatures.
BASELINE = "baseline:"
_SCORES = ("scores.parquet", "scores.csv")
_SUMS = "sums.parquet"


@dataclass(frozen=True, eq=False)
class Scored:
    """Values of n rows, computed here or elsewhere.

    Attributes:
        rows: n rows: what names each, its numbers (nan where it has none) and its flags.
        signatures: each metric, or the name of values from elsewhere -> what they depend on.
        higher_is_better: number -> its direction.
        failures: (row, metric) -> why it has no value.
        sums: metric -> (n, s), for metrics with values of the whole corpus.
        notes: what a user should know, one sentence each.
    """

    rows: "pandas.DataFrame"
    signatures: Mapping[Any, Signature]
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    failures: Mapping[tuple[int, str], str] = field(default_factory=dict)
    sums: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: ScoreTable, names: Mapping[str, Any]) -> "Scored":
        """Return the values of a table of scores.

        Args: names: column -> what it says of each of the n rows.
        """
        import pandas

        columns = {n: c for n, c in table.columns.items() if n != VIEW_GUESSED or c.any()}
        numbers = {
            name: column if column.dtype == bool else np.where(np.isfinite(column), column, np.nan)
            for name, column in columns.items()
        }
        return cls(
            pandas.DataFrame({**names, **numbers}),
            {
                metric: values.signature
                for metric, values in table.values.items()
                if values.signature
            },
            directions(table.values),
            {
                (row, str(metric)): str(error)
                for metric, values in table.values.items()
                for row, error in values.failures.items()
            },
            {
                str(metric): values.statistics
                for metric, values in table.values.items()
                if values.statistics is not None and metric.corpus
            },
        )

    @classmethod
    def read(cls, run: FinishedRun, metrics: Iterable[Metric] = ()) -> "Scored":
        """Read what a finished evaluation wrote.

        Args: metrics: metrics that no registry has.
        Raises: InvalidTable where the run is no evaluation; InvalidSetting for an unknown metric.
        """
        name = next((name for name in _SCORES if name in run.digests), None)
        found = signatures_in(run, metrics)
        if name is None:
            raise no_evaluation(run)
        texts = (ID, ERROR, *own_names(run.key.get("own_columns") or {}))
        rows = read_frame(run.folder / name, texts=texts)
        sums: dict[str, NDArray[np.float64]] = {}
        if _SUMS in run.digests:
            columns = read_frame(run.folder / _SUMS)
            for metric in found:
                if metric.statistics:
                    wanted = [f"{metric}.{k}" for k in range(metric.statistics)]
                    sums[str(metric)] = columns[wanted].to_numpy(dtype=np.float64)
        failures = {(k, ERROR): str(e) for k, e in enumerate(rows.pop(ERROR)) if e == e and e}
        return cls(rows, found, directions(found), failures, sums)

    @classmethod
    def joined(cls, parts: Sequence["Scored"]) -> "Scored":
        """Return the rows of several parts, which have the same metrics, one after the other."""
        import pandas

        starts = np.cumsum([0, *(len(part.rows) for part in parts)]).tolist()
        return replace(
            parts[0],
            rows=pandas.concat([part.rows for part in parts], ignore_index=True),
            failures={
                (start + row, name): why
                for start, part in zip(starts, parts, strict=False)
                for (row, name), why in part.failures.items()
            },
            sums={name: np.concatenate([p.sums[name] for p in parts]) for name in parts[0].sums},
        )

    def at(self, places: Sequence[int]) -> "Scored":
        """Return the rows at these places, in their order."""
        known: dict[int, list[int]] = {}
        for place, row in enumerate(places):
            known.setdefault(row, []).append(place)
        return replace(
            self,
            rows=self.rows.iloc[list(places)].reset_index(drop=True),
            failures={
                (place, name): why
                for (row, name), why in self.failures.items()
                for place in known.get(row, ())
            },
            sums={name: each[list(places)] for name, each in self.sums.items()},
        )

    def filled(self, read: "Scored | None") -> "Scored":
        """Return the rows with the numbers of values that were computed elsewhere, if there are."""
        if read is None:
            return self
        return replace(
            self,
            rows=self.rows.assign(**{name: read.rows[name].to_numpy() for name in read.rows}),
            signatures={**self.signatures, **read.signatures},
            higher_is_better={**self.higher_is_better, **read.higher_is_better},
            failures={**self.failures, **read.failures},
            notes=(*self.notes, *read.notes),
        )

    @property
    def values(self) -> dict[str, NDArray[np.float64]]:
        """Return number -> (n,) float64, nan where a row has none."""
        return {name: self.rows[name].to_numpy(np.float64) for name in self.higher_is_better}

    @property
    def reasons(self) -> dict[int, str]:
        """Return row -> the reason why its first missing number is missing."""
        found: dict[int, str] = {}
        for (row, _), why in self.failures.items():
            found.setdefault(row, why)
        return dict(sorted(found.items()))

    @property
    def errors(self) -> list[str | None]:
        """Return (n,) the reasons why metrics have no value, each once; None where all have one."""
        found: dict[int, dict[str, None]] = {}
        for (row, _), why in self.failures.items():
            found.setdefault(row, {})[why] = None
        return ["; ".join(found[k]) if k in found else None for k in range(len(self.rows))]

    def failed(self, row: str, id: str) -> list[Failure]:
        """Return the rows that lack a value; `row` and `id` are the columns that name them."""
        named = zip(self.rows[row], self.rows[id], self.errors, strict=True)
        return [
            Failure(number, "" if name is None else str(name), why)
            for number, name, why in named
            if why is not None
        ]

    def with_errors(self) -> "pandas.DataFrame":
        """Return the rows as they are written: with the column of errors, the last one."""
        import pandas

        return self.rows.assign(**{ERROR: pandas.Series(self.errors, dtype=object)})

    def files(self, format: str) -> dict[str, "pandas.DataFrame"]:
        """Return the files of an evaluation, for `Content.rows`.

        Args: format: of the scores, "parquet" or "csv".
        """
        import pandas

        scores = self.with_errors()
        scores.attrs = {"signatures": {str(m): str(each) for m, each in self.signatures.items()}}
        found = {f"scores.{format}": scores}
        if self.sums:
            found[_SUMS] = pandas.DataFrame(
                {
                    f"{m}.{k}": each[:, k]
                    for m, each in self.sums.items()
                    for k in range(each.shape[1])
                }
            )
        return found

    def counts(self, ends: Sequence[str] = ("",)) -> "pandas.DataFrame":
        """Return name, higher_is_better and n of each number: rows with all of its values.

        Args: ends: of the columns of a number, as in ".original" and ".perturbed".
        """
        from pandas import DataFrame

        known = [self.rows[[name + end for end in ends]] for name in self.higher_is_better]
        return DataFrame(
            {
                "name": list(self.higher_is_better),
                "higher_is_better": list(self.higher_is_better.values()),
                "n": [int(np.isfinite(each.to_numpy()).all(1).sum()) for each in known],
            }
        )


def directions(metrics: Iterable[Metric]) -> dict[str, bool]:
    """Return number of a metric -> whether a larger one is better."""
    return {
        name: metric.direction(output)
        for metric in metrics
        for name, output in zip(metric.columns, metric.outputs, strict=True)
    }


def signatures_in(run: FinishedRun, metrics: Iterable[Metric] = ()) -> dict[Metric, Signature]:
    """Return the metrics of a finished evaluation, and what their numbers depend on.

    Args, Raises: as of `Scored.read`.
    """
    if "metrics" not in run.key:
        raise no_evaluation(run)
    own = {str(metric): metric for metric in metrics}
    return {
        own.get(n) or metric_from_file(n, f"{run.folder}/run.json"): Signature.parse(text)
        for n, text in run.key["metrics"].items()
    }


def no_evaluation(run: FinishedRun) -> InvalidTable:
    """Return the error for the folder of another command than `vlscore evaluate`."""
    return InvalidTable(
        f"{run.folder / 'run.json'} is not that of `vlscore evaluate`: give the folder of a "
        "finished evaluation, or a table"
    )


def own_names(own: Mapping[str, Any]) -> list[str]:
    """Return the names of a user's own columns, each once.

    Args: own: `keep` and `by`, lists of columns, and `patient`, a column or None.
    """
    patient = [own["patient"]] if own.get("patient") else []
    return list(dict.fromkeys((*own.get("keep", ()), *own.get("by", ()), *patient)))
