"""Base of metrics on embedded triples; the metrics are in `vlscore.metrics.library.embedded`."""

from typing import Any, ClassVar

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Bounds, Computed
from vlscore.metrics.metric import Metric


class EmbeddedMetric(Metric):
    """Base of these metrics; they are computed in float64 for embeddings of any precision.

    Attributes:
        function: name of the function of `vlscore.metrics.similarity`; default: the metric's name.
        takes_areas: whether it takes the areas of the triangles, which are computed once a batch.
    """

    uses_embeddings = True
    uses_image = True
    reference_scores_best = True
    bounds: ClassVar[Bounds] = (0.0, 1.0)
    library = "vlscore"
    function: ClassVar[str] = ""
    takes_areas: ClassVar[bool] = False

    def compute(self, batch: Batch) -> Computed:
        import torch

        from vlscore.metrics import similarity

        triples = batch.embeddings
        assert triples is not None
        names = ["images"] * self.uses_image + ["candidates"] + ["references"] * self.uses_reference
        arguments: list[Any] = []
        for name in names:
            if (part := getattr(triples, name)) is None:
                raise InvalidSetting(
                    f"{self.name} needs the embeddings of the {name}, but there are none"
                )
            arguments.append(torch.as_tensor(part))
        if self.takes_areas:
            arguments = [triples.areas]
        for name, value in vars(self).items():
            arguments.append(constant_of(self, triples.C) if name == "C" else value)
        function = getattr(similarity, self.function or self.name.replace("-", "_"))
        values = function(*arguments).double().cpu().numpy()
        undefined = np.flatnonzero(~np.isfinite(values)).tolist()
        reasons = {row: triples.failures[row] for row in undefined if row in triples.failures}
        return Computed([np.array(values)], failures=reasons)


def constant_of(metric: Metric, published: float | None) -> float:
    """Return C of the metric, else of the encoder; raise InvalidSetting if neither is known."""
    chosen = getattr(metric, "C")  # noqa: B009 - of some metrics alone
    C = published if chosen is None else float(chosen)
    if C is None:
        raise InvalidSetting(
            f"{metric.name} needs the constant C, but the encoder has none; set C, as in "
            '"vlscore(C=20)" or --C 20, or choose a metric without it, such as '
            "image-centred-cosine"
        )
    return C
