"""Every registered metric keeps the contract, and the contract catches metrics that do not."""

import dataclasses

import numpy as np
import pytest

from vlscore.errors import BrokenContract, MissingDependency, UnknownName
from vlscore.metrics import METRICS, Batch, Computed, Metric, Output, Plan, Provider, text_metric
from vlscore.testing import check_metric, metric_checks


@pytest.fixture(params=[*METRICS, "bleu-2(smoothing=exp,tokens=cxr)", "rouge-l(stemming=true)"])
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


class Lengths(Provider):
    """A sound metric: words of the candidate that the reference has, of all of its words."""

    library = "lengths"

    def missing(self, metric):
        return None

    def version(self):
        return "1"

    def value(self, candidate, reference):
        words = candidate.split()
        return len({*words} & {*reference.split()}) / max(len({*words}), 1)

    def compute(self, metric, batch):
        return Computed([np.array([self.value(g, r) for g, r in batch.pairs()])])


def made(provider, **changes):
    sound = Metric(
        name="shared-words",
        description="words that both have",
        higher_is_better=True,
        bounds=(0.0, 1.0),
        uses_image=False,
        uses_reference=True,
        reference_scores_best=True,
        citation="none",
        provider=provider,
    )
    return dataclasses.replace(sound, **changes)


def test_a_sound_metric_of_ones_own_passes():
    check_metric(made(Lengths()))


class Endless(Lengths):
    def value(self, candidate, reference):
        return float("inf") if "effusion" in candidate else 0.5


class Beyond(Lengths):
    def value(self, candidate, reference):
        return super().value(candidate, reference) + len(candidate) / 100


class LovesSilence(Lengths):
    def value(self, candidate, reference):
        return 1.0 if not candidate else super().value(candidate, reference)


class LovesOthers(Lengths):
    def value(self, candidate, reference):
        return 1 - super().value(candidate, reference)


class Moody(Lengths):
    calls = 0

    def value(self, candidate, reference):
        Moody.calls += 1
        return super().value(candidate, reference) / (1 + Moody.calls % 7)


class Jealous(Lengths):
    """The first pair of a batch is taken for better than the others."""

    def compute(self, metric, batch):
        (column,) = super().compute(metric, batch).columns
        return Computed([column / (1 + np.arange(len(batch)))])


class Relative(Lengths):
    """A value depends on the best of the batch, in whatever order."""

    def compute(self, metric, batch):
        (column,) = super().compute(metric, batch).columns
        return Computed([column / (1 + max(map(len, batch.candidates), default=0))])


class NeedsSome(Lengths):
    def compute(self, metric, batch):
        if not len(batch):
            raise ValueError("nothing to do")
        return super().compute(metric, batch)


class Blind(Lengths):
    def value(self, candidate, reference):
        return min(len(candidate) / 1000, 1.0)


class Short(Lengths):
    def compute(self, metric, batch):
        return Computed([np.zeros(max(len(batch) - 1, 0))])


class NoSums(Lengths):
    def corpus(self, metric, sums):
        return {"corpus": sums[:, 0]}


class GrowingSums(NoSums):
    def compute(self, metric, batch):
        computed = super().compute(metric, batch)
        return Computed(computed.columns, statistics=np.ones((len(batch), 1)) / 100)


CORPUS = {"corpus": (Output("corpus", "sum"),), "statistics": 1}


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (made(Endless()), "not finite for ordinary reports"),
        (made(Short()), "must return 1 columns"),
        (made(Beyond()), "values outside its bounds"),
        (made(LovesSilence()), "an empty report scores as well"),
        (made(LovesOthers()), "another report scores as well"),
        (made(Moody()), "differ from call to call"),
        (made(Jealous()), "depend on the order"),
        (made(Relative()), "depends on other pairs"),
        (made(NeedsSome()), "nothing to do"),
        (made(Blind(), reference_scores_best=False), "ignores the references"),
        (made(Lengths(), uses_reference=False), "uses the references"),
        (made(Lengths(), uses_image=True), "receives no image"),
        (made(NoSums(), **CORPUS), "states 1 statistics"),
        (made(GrowingSums(), **CORPUS), "counted twice"),
        (made(Lengths(), description=" "), "no description"),
    ],
)
def test_a_broken_metric_is_caught_by_name(metric, problem):
    with pytest.raises(BrokenContract, match=problem) as caught:
        check_metric(metric)
    assert str(caught.value).startswith("shared-words: ")


def test_statistics_without_a_corpus_value_are_caught():
    class Sums(Lengths):
        def compute(self, metric, batch):
            return Computed(super().compute(metric, batch).columns, np.ones((len(batch), 1)))

    with pytest.raises(BrokenContract, match="defines no corpus value"):
        check_metric(made(Sums()))


class WithEmbeddings(Lengths):
    """A sound metric of embeddings: how near candidate and image lie."""

    def compute(self, metric, batch):
        assert batch.embeddings is not None
        apart = np.asarray(batch.embeddings.images) - np.asarray(batch.embeddings.candidates)
        return Computed([-np.abs(apart).sum(1)])


EMBEDDED = {
    "bounds": (None, 0.0),
    "uses_image": True,
    "uses_reference": False,
    "artefacts": ("embeddings",),
}


def test_embedded_metrics_of_ones_own_are_checked_for_what_they_look_at():
    check_metric(made(WithEmbeddings(), **EMBEDDED))
    with pytest.raises(BrokenContract, match="ignores the references"):
        check_metric(made(WithEmbeddings(), **{**EMBEDDED, "uses_reference": True}))
    with pytest.raises(BrokenContract, match="uses the images"):
        check_metric(made(WithEmbeddings(), **{**EMBEDDED, "uses_image": False}))


def test_a_metric_that_is_not_found_again_is_caught(monkeypatch):
    other = made(Lengths())
    METRICS.register(made(Blind(), description="another"))
    try:
        with pytest.raises(BrokenContract, match="does not find it by its name"):
            check_metric(other)
    finally:
        METRICS.unregister("shared-words")


def test_a_metric_whose_signature_hides_a_parameter_is_caught(monkeypatch):
    """The plan states every parameter; the check guards the plan."""
    plan_signature = Plan.signature

    def without(self, metric, *rest):
        return plan_signature(self, metric, *rest).without("smoothing")

    monkeypatch.setattr(Plan, "signature", without)
    with pytest.raises(BrokenContract, match="does not name its parameter smoothing"):
        check_metric("bleu-1")


def test_every_check_is_run_and_can_fail():
    names = {check.__name__ for check in metric_checks()}
    assert names == {
        "check_columns",
        "check_bounds",
        "check_reference",
        "check_repeats",
        "check_neighbours",
        "check_nothing",
        "check_uses",
        "check_statistics",
        "check_signature",
        "check_name",
    }


def test_a_metric_that_looks_at_lengths_alone_looks_at_the_reference():
    check_metric("tests.metrics.own:length_ratio")


def test_unknown_and_absent_metrics_are_not_called_broken():
    with pytest.raises(UnknownName):
        check_metric("no-such-metric")

    class Absent(Lengths):
        def missing(self, metric):
            return "lengths is not installed: pip install lengths"

    with pytest.raises(MissingDependency, match="pip install lengths"):
        check_metric(made(Absent()))


def test_a_function_of_two_texts_keeps_the_contract():
    @text_metric("first-words", "whether both begin alike", bounds=(0.0, 1.0))
    def first_words(candidate, reference):
        return float(candidate.split()[:1] == reference.split()[:1])

    check_metric(first_words)
    batch = Batch(["a b", "c"], ["a", "d"])
    assert Plan(first_words).values(batch)[first_words].headline.tolist() == [1.0, 0.0]
