"""What a provider is: a library that computes metrics."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.metric import Metric


class Provider(ABC):
    """Computes metrics, mostly by a library that it wraps.

    A pair of reports gets the same number whatever its neighbours are; what a metric knows of a
    whole run's references comes to it in `Batch.fitted`. A provider keeps no state of a run.

    Attributes:
        library: the distribution whose version the signature states.
        module: what is imported of it; default: its name.
        extra: the extra of vlscore that brings it; None where vlscore itself does.
        supports: names of the metrics it computes.
    """

    library: ClassVar[str]
    module: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None
    supports: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def compute(self, metric: Metric, batch: Batch) -> Computed:
        """Values for every study of a batch.

        Raises: MissingDependency where the library, or data that it needs, is absent. What is
            wrong with one study alone is no exception: it stands in `Computed.failures`.
        """

    def is_fitted(self, metric: Metric) -> bool:
        """Whether the metric's numbers depend on statistics over all references of a run."""
        return False

    def fit(self, metric: Metric, references: Iterable[str], state: Any = None) -> Any:
        """The statistics over some references, added to those over earlier ones.

        Args: state: what an earlier call returned, or None; it may be changed in place.
        """
        raise NotImplementedError(f"{metric.name} is not fitted on references")

    def missing(self, metric: Metric) -> str | None:
        """What is absent on this machine and how to get it; None where the metric can run.

        Loads no library.
        """
        name = self.module or self.library.replace("-", "_")
        return None if _is_importable(name) else self._how_to_install()

    def conventions(self, metric: Metric) -> dict[str, str]:
        """What else the number depends on, besides the metric's parameters."""
        return {}

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        """Corpus values from statistics summed over candidates.

        Args: sums: (k, s), one row for each corpus or resample of it.
        Returns: name of each of `metric.corpus` -> (k,).
        """
        raise NotImplementedError(f"{metric.name} has no corpus value")

    def version(self) -> str:
        """Version of the library; raises MissingDependency where it is absent."""
        try:
            return version(self.library)
        except PackageNotFoundError:
            raise MissingDependency(self._how_to_install()) from None

    def facts(self, metric: Metric) -> dict[str, Any]:
        """What the signature says of the metric beside its parameters."""
        return {**self.conventions(metric), self.library: self.version()}

    def _module(self, name: str) -> Any:
        try:
            return import_module(name)
        except ImportError:
            raise MissingDependency(self._how_to_install()) from None

    def _how_to_install(self) -> str:
        package = f"vlscore[{self.extra}]" if self.extra else self.library
        return f"{self.library} is not installed: pip install '{package}'"


def one_column(values: Any) -> Computed:
    """The result of a metric with one number a candidate."""
    return Computed([np.asarray(values, dtype=np.float64)])


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
