"""Callback of Lightning that logs metrics of vlscore at the end of each validation."""

from collections.abc import Mapping
from typing import Any

from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.integrations.report_metric import ReportMetric

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise MissingDependency(
            "lightning is not installed: pip install 'vlscore[integrations]'"
        ) from None


class LogReportMetric(Callback):  # type: ignore[misc]
    """Callback that scores what `validation_step` returns, and logs the values of a validation.

    `validation_step` returns a mapping with the generated reports of its batch, a list of texts.
    References and images are read from that mapping, else from the batch.

    Args:
        metric: a `ReportMetric`, or what it takes: a `Scorer` or names of metrics.
        candidate, reference, image: keys of the generated reports, the references and the images
            (lists of one length).
        prefix: is written before the name of each value.
    """

    def __init__(
        self,
        metric: Any,
        *,
        candidate: str = "candidate",
        reference: str = "reference",
        image: str = "image",
        prefix: str = "val/",
    ) -> None:
        self.metric = metric if isinstance(metric, ReportMetric) else ReportMetric(metric)
        self.candidate, self.reference, self.image = candidate, reference, image
        self.prefix = prefix

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Discard the scores of the validation before, on the device of the model."""
        self.metric.to(pl_module.device)
        self.metric.reset()

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Score one batch. Raises: InvalidSetting where it has no candidates or references."""
        sources = [each for each in (outputs, batch) if isinstance(each, Mapping)]
        needs = self.metric.scorer.plan.needs
        candidate = _found(sources[:1], self.candidate)
        reference = _found(sources, self.reference) if needs.references else None
        image = _found(sources, self.image) if needs.images else None
        self.metric.update(image, candidate, reference)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the values; with several processes they are those of all studies."""
        found = self.metric.compute()
        values = found if isinstance(found, dict) else {str(self.metric.value): found}
        # Every process has the same values: Lightning's mean over processes does not change them.
        pl_module.log_dict(
            {f"{self.prefix}{name}": value for name, value in values.items()}, sync_dist=True
        )


def _found(sources: list[Mapping[str, Any]], key: str) -> Any:
    for source in sources:
        if key in source:
            return source[key]
    raise InvalidSetting(
        f'neither the result of validation_step nor the batch has "{key}": return '
        '{"candidate": [texts], "reference": [texts]}, or name the keys in LogReportMetric'
    )
