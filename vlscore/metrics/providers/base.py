"""What a provider is: a library that computes metrics."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

from numpy.typing import NDArray

from vlscore.errors import MissingDependency
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric


class Provider(ABC):
    """Wraps one library. It must give the same number for a pair whatever its neighbours are.

    Attributes:
        library: the distribution whose version the signature states.
        install: what a user types where it is absent.
    """

    library: ClassVar[str]
    install: ClassVar[str] = "pip install 'vlscore[metrics]'"

    @abstractmethod
    def supports(self, metric: Metric) -> bool:
        """Whether this library computes that metric."""

    @abstractmethod
    def compute(
        self,
        metric: Metric,
        candidates: Sequence[str],
        references: Sequence[str],
        embeddings: EmbeddingTriples | None,
    ) -> NDArray[Any]:
        """(n,) values, one a pair.

        Raises: MissingDependency where the library, or data that it needs, is absent.
        """

    def conventions(self, metric: Metric) -> dict[str, str]:
        """What else the number depends on, besides the metric's parameters."""
        return {}

    def version(self) -> str:
        """Version of the library; raises MissingDependency where it is absent."""
        self._module(self.library.replace("-", "_"))
        return version(self.library)

    def _module(self, name: str) -> Any:
        try:
            return import_module(name)
        except ImportError as error:
            raise MissingDependency(f"{self.library} is not installed: {self.install}") from error
