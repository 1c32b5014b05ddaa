"""Every registered metric keeps the contract, and the contract catches metrics that do not."""

import numpy as np
import pytest

from tests.metrics.contract import check_metric
from tests.metrics.own import SharedWords as Lengths
from vlscore.errors import MissingDependency
from vlscore.metrics import METRICS, Batch, Computed, Output, Plan, text_metric


@pytest.fixture(
    params=[*METRICS, "bleu-2(smoothing=exp,tokens=cxr)", "cider-d(sigma=2.5,tokens=cxr)"]
)
def name(request):
    try:
        Plan(request.param).require()
    except MissingDependency as error:
        pytest.skip(str(error))
    return request.param


def test_every_registered_metric_keeps_the_contract(name):
    check_metric(name)


@pytest.mark.parametrize("known", METRICS)
def test_every_registered_metric_is_described_and_cited(known):
    metric = METRICS[known]
    assert metric.description
    assert metric.citation


def made(kind, **facts):
    """The metric of a class with other facts about it."""
    return type(kind.__name__, (kind,), facts)()


def test_a_sound_metric_of_ones_own_passes():
    check_metric(Lengths())
    check_metric(Lengths(power=2))


class Endless(Lengths):
    def value(self, candidate, reference):
        return float("inf") if "effusion" in candidate else 0.5


class Beyond(Lengths):
    def value(self, candidate, reference):
        return super().value(candidate, reference) + len(candidate) / 100


class Moody(Lengths):
    calls = 0

    def value(self, candidate, reference):
        Moody.calls += 1
        return super().value(candidate, reference) / (1 + Moody.calls % 7)


class Jealous(Lengths):
    """The first pair of a batch is taken for better than the others."""

    def compute(self, batch):
        (column,) = super().compute(batch).columns
        return Computed([column / (1 + np.arange(len(batch)))])


class Peeks(Lengths):
    def compute(self, batch):
        return np.array([self.value(g, r) for g, r in batch.pairs()])


class GrowingSums(Lengths):
    def corpus_values(self, sums):
        return {"corpus": sums[:, 0]}

    def compute(self, batch):
        computed = super().compute(batch)
        return Computed(computed.columns, statistics=np.ones((len(batch), 1)) / 100)


CORPUS = {"corpus": (Output("corpus", "sum"),), "statistics": 1}


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (made(Endless), "not finite for ordinary reports"),
        (made(Beyond), "ordinary reports: .* but states the bounds 0 to 1"),
        (made(Moody), "differ from call to call"),
        (made(Jealous), "depend on the order"),
        (made(Peeks, uses_reference=False), "uses the references"),
        (made(GrowingSums, **CORPUS), "counted twice"),
        (made(Lengths, description=" "), "no description"),
    ],
)
def test_a_broken_metric_is_caught(metric, problem):
    with pytest.raises(Exception, match=problem):
        check_metric(metric)


class WithEmbeddings(Lengths):
    """A sound metric of embeddings: how near candidate and image lie."""

    def compute(self, batch):
        assert batch.embeddings is not None
        apart = np.asarray(batch.embeddings.images) - np.asarray(batch.embeddings.candidates)
        return Computed([-np.abs(apart).sum(1)])


EMBEDDED = {
    "bounds": (None, 0.0),
    "uses_image": True,
    "uses_reference": False,
    "uses_embeddings": True,
    "reference_scores_best": False,
}


def test_embedded_metrics_of_ones_own_are_checked_for_what_they_look_at():
    check_metric(made(WithEmbeddings, **EMBEDDED))
    with pytest.raises(AssertionError, match="ignores the references"):
        check_metric(made(WithEmbeddings, **{**EMBEDDED, "uses_reference": True}))
    with pytest.raises(AssertionError, match="uses the images"):
        check_metric(made(WithEmbeddings, **{**EMBEDDED, "uses_image": False}))


def test_a_function_of_two_texts_keeps_the_contract():
    @text_metric("first-words", "whether both begin alike", bounds=(0.0, 1.0))
    def first_words(candidate, reference):
        return float(candidate.split()[:1] == reference.split()[:1])

    check_metric(first_words)
    batch = Batch(["a b", "c"], ["a", "d"])
    assert Plan(first_words).values(batch)[first_words].columns[0].tolist() == [1.0, 0.0]
