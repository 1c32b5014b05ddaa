"""Values of metrics for the rows of a command, computed here or elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.precomputed import Precomputed

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(eq=False)
class Measured:
    """Values of metrics for n rows.

    Attributes:
        values: name of a metric -> (n,) or (k, n) float64, nan where there is none.
        higher_is_better: name -> direction.
        signatures: name -> what the values depend on.
        failures: (position of a row, name) -> why it has no value.
    """

    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    higher_is_better: dict[str, bool] = field(default_factory=dict)
    signatures: dict[str, object] = field(default_factory=dict)
    failures: dict[tuple[int, str], str] = field(default_factory=dict)

    def add(self, read: Precomputed, suffixes: Sequence[str] = ("",)) -> None:
        """Add values that were computed elsewhere, as `read_precomputed` read them.

        Args: suffixes: of the columns of a metric, whose values become (k, n); "" gives (n,).
        """
        for name in read.higher_is_better:
            columns = [read.values[name + suffix] for suffix in suffixes]
            self.values[name] = columns[0] if len(columns) == 1 else np.stack(columns)
            self.signatures[name] = read.signature.of(name)
        self.higher_is_better |= read.higher_is_better
        self.failures |= read.reasons

    def metrics(self) -> "DataFrame":
        """Return name, higher_is_better and n of each metric: rows with all of its values."""
        from pandas import DataFrame

        counts = [np.isfinite(np.atleast_2d(each)).all(0).sum() for each in self.values.values()]
        better = [self.higher_is_better[name] for name in self.values]
        return DataFrame({"name": list(self.values), "higher_is_better": better, "n": counts})
