"""Metrics as a user would write them, outside of the package."""

import numpy as np

from vlscore.metrics import Metric, parameter, text_metric


@text_metric("length-ratio", "words of the candidate for each of the reference", version="7")
def length_ratio(candidate: str, reference: str) -> float:
    return len(candidate.split()) / max(len(reference.split()), 1)


class SharedWords(Metric):
    """A sound metric: words of the candidate that the reference has, of all of its words."""

    name = "shared-words"
    description = "words that both have"
    citation = "none"
    bounds = (0.0, 1.0)
    reference_scores_best = True
    power: float = parameter(1.0, "exponent of the share", above=0)

    def value(self, candidate, reference):
        words = {*candidate.split()}
        return (len(words & {*reference.split()}) / max(len(words), 1)) ** self.power


class SumOfTwo(Metric):
    """Computed from others."""

    name = "sum-of-two"
    description = "mean of its inputs"
    version = "2"
    inputs = ("BLEU_1", "rouge-l", length_ratio)

    def compute(self, batch):
        return np.mean([values.columns[0] for values in batch.inputs], axis=0)


class WithImage(SumOfTwo):
    """Computed from metrics of embeddings."""

    name = "with-image"
    description = "mean of vlscore and cosine"
    uses_image = True
    inputs = ("vlscore", "cosine")


COMPOSITE, WITH_IMAGE = SumOfTwo(), WithImage()
NOT_A_METRIC = "a text"
