"""Metrics of vlscore as one metric of torchmetrics, for a loop in one or several processes."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vlscore.core import check_word
from vlscore.data import check_texts
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.integrations.grpo_reward import fitted_scorer
from vlscore.metrics import (
    DEFAULT_METRIC,
    FLAGS,
    Scorer,
    ScoreTable,
    corpus_name,
    corpus_of_sums,
)

try:
    from torchmetrics import Metric as TorchMetric
    from torchmetrics.utilities import dim_zero_cat
except ImportError:
    raise MissingDependency(
        "torchmetrics is not installed: pip install 'vlscore[torchmetrics]'"
    ) from None

_ROWS, _FAILED, _TRUNCATED = "rows", "failed", "truncated"


class ReportMetric(TorchMetric):  # type: ignore[misc]
    """Metric of torchmetrics that computes any metrics of vlscore.

    `update` scores a batch, `compute` returns what `vlscore.evaluate` reports for the same studies:
    the mean of each column over the studies that have a value, and corpus values such as corpus
    BLEU. With several processes, the numbers of the studies are gathered, and the statistics that
    corpus values are computed from are summed; every process returns the same values.

    Args:
        scorer: a `Scorer`, or names of metrics as in "vlscore,bleu-4". For a metric that weighs
            words by the number of references that contain them (CIDEr-D), pass
            `scorer.fit(references)` with all references.
        value: name of one value, as in "bleu-4 corpus": `compute` then returns this number alone.
        on_error: "raise" the first error of a batch, or "keep" the other studies and count it.
        options: options of `torchmetrics.Metric`, such as `dist_sync_on_step`.

    Raises:
        MissingDependency: torchmetrics is not installed.
        InvalidSetting: a metric is not fitted, or no value has the name `value`.
    """

    full_state_update = False
    is_differentiable = False
    rows: list[Tensor]
    failed: Tensor
    truncated: Tensor

    def __init__(
        self,
        scorer: Scorer | Any = DEFAULT_METRIC,
        *,
        value: str | None = None,
        on_error: Literal["raise", "keep"] = "raise",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_word("on_error", on_error, ("raise", "keep"))
        self.scorer = fitted_scorer(scorer)
        self.value = value
        self.on_error: Literal["raise", "keep"] = on_error
        columns = [name for metric in self.scorer.metrics for name in metric.columns]
        self._no_rows = torch.zeros(0, len(columns), dtype=torch.float64)
        self.add_state(_ROWS, [], dist_reduce_fx="cat")
        for number, metric in enumerate(self.scorer.metrics):
            zeros = torch.zeros(metric.statistics, dtype=torch.float64)
            self.add_state(f"sums_{number}", zeros, dist_reduce_fx="sum")
        for name in (_FAILED, _TRUNCATED):
            self.add_state(name, torch.tensor(0), dist_reduce_fx="sum")
        if value is not None and value not in (names := list(self._values())):
            raise InvalidSetting(f"there is no value {value!r}; the values are {', '.join(names)}")

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        """Return the direction of `value`; None for several values, or a count."""
        directions: dict[str, bool] = {}
        for metric in self.scorer.metrics:
            columns = zip(metric.columns, metric.outputs, strict=True)
            if metric.has_direction:
                directions |= {name: metric.direction(output) for name, output in columns}
            corpus = {corpus_name(metric, each.name): each for each in metric.corpus}
            directions |= {name: metric.direction(output) for name, output in corpus.items()}
        return directions.get(self.value or "")

    def update(self, image: Any, candidate: Any, reference: Any = None) -> None:
        """Score a batch and store its numbers; arguments as in `Scorer.score`, each a list."""
        check_texts("candidate", candidate)
        table: ScoreTable = self.scorer.score(image, candidate, reference, on_error=self.on_error)
        numbers = [column for values in table.values.values() for column in values.columns]
        self.rows.append(self._tensor(np.stack(numbers, axis=1)))
        for number, values in enumerate(table.values.values()):
            if values.statistics is not None:
                sums = getattr(self, f"sums_{number}")
                sums += self._tensor(values.statistics.sum(axis=0))
        self.failed += len(table.failures)
        flags = [table.geometry[name] for name in FLAGS if name in table.geometry]
        self.truncated += int(np.any(flags, axis=0).sum()) if flags else 0

    def sync(self, *args: Any, **options: Any) -> None:
        """Gather the numbers of all processes; one may have had no batch."""
        if not len(self.rows):
            self.rows: Any = [self._all_rows()]
        super().sync(*args, **options)

    def compute(self) -> dict[str, Tensor] | Tensor:
        """Return name -> value, (), float64; nan where no study has one.

        "failed" is the number of studies without a value; "truncated" (with an encoder) the number
        of studies of which the encoder did not read a report's end.
        """
        found = {name: self._tensor(value) for name, value in self._values().items()}
        return found if self.value is None else found[self.value]

    def _all_rows(self) -> Tensor:
        """Return the numbers of the studies, (studies, columns)."""
        # Gathered rows are one tensor, those of a single process a list of batches.
        return dim_zero_cat(self.rows) if len(self.rows) else self._no_rows.to(self.device)

    def _values(self) -> dict[str, float]:
        rows, found, start = self._all_rows().cpu().numpy(), {}, 0
        for number, metric in enumerate(self.scorer.metrics):
            own = rows[:, start : start + len(metric.columns)]
            start += len(metric.columns)
            for name, column in zip(metric.columns, own.T, strict=True):
                valid = column[np.isfinite(column)]
                found[name] = float(valid.mean()) if len(valid) else float("nan")
            sums = getattr(self, f"sums_{number}").cpu().numpy()
            has_values = bool(np.isfinite(own[:, 0]).any())
            for output in metric.corpus:
                value = corpus_of_sums(metric, sums[None])[output.name][0] if has_values else np.nan
                found[corpus_name(metric, output.name)] = float(value)
        found[_FAILED] = float(self.failed)
        if self.scorer.needs.embeddings:
            found[_TRUNCATED] = float(self.truncated)
        return found

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float64, device=self.device)
