"""Effect of a lower precision on the numbers, measured on a user's own studies."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.data import Study
from vlscore.errors import InvalidSetting
from vlscore.evaluation.scoring.executor import Row
from vlscore.metrics import Item, Scorer, ScoreTable
from vlscore.stats import TextTable, kendall_tau_b, number

if TYPE_CHECKING:
    pass


_AREA = "area"
_FEWEST = 2


@dataclass(frozen=True)
class Drift:
    """Change of one number from fp32 to another precision.

    Attributes:
        number: "area" (T of Eq. 1), or a column of a metric.
        relative: whether the changes are shares of the number in fp32, as of the area, or its own
            units.
        median, largest: change of a study, without its sign.
        mean: change of the mean over studies, with its sign.
        tau_b: Kendall's tau_b between the two orders of studies, 1 where they are the same; nan
            where all studies are equal.
    """

    number: str
    relative: bool
    median: float
    largest: float
    mean: float
    tau_b: float


@dataclass(frozen=True)
class PrecisionCheck:
    """Changes in the numbers of some studies from fp32 to another precision.

    Attributes:
        precision: the one that was compared with fp32.
        device: on which both were computed.
        studies: how many have values in both.
        drifts: of the area, where there is one, and of each metric that looks at embeddings.
    """

    precision: str
    device: str
    studies: int
    drifts: tuple[Drift, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for json."""
        return asdict(self)

    def table(self) -> TextTable:
        """Return the table that is printed."""
        rows = (
            {
                "number": drift.number,
                "median change": _shown(drift.median, drift.relative),
                "largest": _shown(drift.largest, drift.relative),
                "of the mean": _shown(drift.mean, drift.relative),
                "tau_b": number(drift.tau_b, 4),
            }
            for drift in self.drifts
        )
        caption = (
            f"{self.precision} against fp32 on {self.studies} studies ({self.device}). Of the area "
            "changes are in percent of T; tau_b compares the order of the studies, 1 is the same."
        )
        return TextTable.of("", rows, caption)


def check_drift(studies: Iterable[Row], scorer: Scorer, count: int = 100) -> PrecisionCheck:
    """Embed the first studies in fp32 and in the scorer's precision, and compare the numbers.

    Args:
        studies: rows of a table; those that cannot be read are left out.
        count: how many studies to take.

    Raises: InvalidSetting where there is nothing to compare: the precision is fp32, no metric looks
        at embeddings, or fewer than two studies have values.
    """
    embedder = scorer.embedder
    if embedder is None or embedder.engine.precision == "fp32":
        what = "no metric looks at embeddings" if embedder is None else "the precision is fp32"
        raise InvalidSetting(
            f"the check of a precision compares it with fp32, but {what}; name another with "
            "precision= (--precision), or leave the check out"
        )
    metrics = [metric for metric in scorer.metrics if metric.uses_embeddings]
    some = scorer.of_some(metrics)
    usable = [row for row in islice(studies, count) if isinstance(row, Study)]
    full = embedder.like_this(precision="fp32", cache=embedder.engine.cache or False)
    tables = [
        Scorer(each, metrics=metrics, text_policy=scorer.text_policy).score_items(_items(usable))
        for each in (full, embedder)
    ]
    columns = [name for metric in some.metrics for name in metric.columns]
    if _AREA in tables[0].columns:
        columns = [_AREA, *columns]
    drifts, counts = [], []
    for column in columns:
        before, after = _both(tables, column)
        if len(before) >= _FEWEST:
            drifts.append(_drift(column, before, after))
            counts.append(len(before))
    if not drifts:
        raise InvalidSetting(
            f"fewer than two of the first {count} studies have values: there is nothing to compare "
            "a precision by"
        )
    return PrecisionCheck(
        embedder.engine.precision, str(embedder.encoder.device), max(counts), tuple(drifts)
    )


def _items(studies: Iterable[Study]) -> list[Item]:
    from vlscore.embedding import StudyViews

    return [
        Item(row.candidate or "", row.reference, StudyViews(row.images, row.views), row.parts)
        for row in studies
    ]


def _both(tables: list[ScoreTable], column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    before, after = (np.asarray(table.columns[column], np.float64) for table in tables)
    have = np.isfinite(before) & np.isfinite(after)
    return before[have], after[have]


def _drift(column: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Drift:
    is_area = column == _AREA
    change, mean = np.abs(after - before), float(after.mean() - before.mean())
    if is_area:
        # An area of 0 has no relative change; its absolute change is in the mean.
        change = change[before > 0] / before[before > 0]
        mean = mean / float(before.mean()) if before.any() else float("nan")
    some = len(change) > 0
    return Drift(
        number=column,
        relative=is_area,
        median=float(np.median(change)) if some else float("nan"),
        largest=float(change.max()) if some else float("nan"),
        mean=mean,
        tau_b=kendall_tau_b(before, after),
    )


def _shown(value: float, relative: bool) -> str:
    if not np.isfinite(value):
        return "-"
    return f"{100 * value:.3f} %" if relative else f"{value:.2e}"
