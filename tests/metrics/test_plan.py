"""What metrics need, in which order they run, and metrics of users' own."""

import copy
import pickle

import numpy as np
import pytest

from tests.metrics import own
from tests.metrics.contract import check_metric, corpus_of
from vlscore.core import Signature
from vlscore.errors import InvalidSetting, MissingDependency, UnknownName, VLScoreError
from vlscore.evaluation.comparison.statistics import facts_of
from vlscore.metrics import (
    METRICS,
    Batch,
    Computed,
    EmbeddingTriples,
    Metric,
    Output,
    Plan,
    Scorer,
    compute,
    find_metric,
    lacks,
    register,
    text_metric,
    usable_metrics,
)

CANDIDATES = ["small left effusion", "clear lungs", "the heart is normal"]
REFERENCES = ["left effusion", "the lungs are clear", "normal heart"]


def triples(count=3, **options):
    i, g, r = np.random.default_rng(1).normal(size=(3, count, 4))
    facts = Signature("embeddings").plus(enc="test@0", img="auto", views="first-frontal")
    options = {"C": 2.0, **options}
    return EmbeddingTriples(i, g, r, facts.flagged("DEMONSTRATION-ENCODER"), **options)


def made(kind=own.SumOfTwo, **facts):
    """The metric of a class with other facts about it."""
    return type(kind.__name__, (kind,), facts)()


@pytest.mark.parametrize(
    ("names", "roles", "embeddings"),
    [
        ("bleu-1", {"candidate", "reference"}, False),
        ("cosine", {"candidate", "reference"}, True),
        ("clipscore", {"candidate", "image"}, True),
        ("bleu-1,clipscore", {"candidate", "image", "reference"}, True),
        ([own.WITH_IMAGE], {"candidate", "image", "reference"}, True),
        ([own.COMPOSITE], {"candidate", "reference"}, False),
    ],
)
def test_a_plan_needs_what_its_metrics_and_their_inputs_look_at(names, roles, embeddings):
    needs = Plan(names).needs
    assert needs.roles == roles
    assert needs.embeddings == embeddings


def test_composites_run_last_on_values_that_are_computed_once():
    plan = Plan([own.COMPOSITE, "rouge-l"])
    assert [str(step) for step in plan.steps] == ["bleu-1", "rouge-l", "length-ratio", "sum-of-two"]
    values = plan.values(Batch(CANDIDATES, REFERENCES))
    # Only what was asked for comes back, in that order.
    assert [str(metric) for metric in values] == ["sum-of-two", "rouge-l"]
    alone = compute(["bleu-1", "rouge-l", own.length_ratio], CANDIDATES, REFERENCES)
    expected = np.mean([alone["bleu-1"], alone["rouge-l"], alone["length-ratio"]], axis=0)
    np.testing.assert_array_equal(values[own.COMPOSITE].columns[0], expected)
    check_metric(own.COMPOSITE)


def test_a_composites_signature_contains_those_of_its_inputs():
    plan = Plan([own.COMPOSITE])
    found = plan.signature_of(own.COMPOSITE)
    assert found.subject == "sum-of-two"
    for name in ("bleu-1", "rouge-l", own.length_ratio):
        one = str(plan.signature_of(find_metric(name)))
        assert one.replace("|", ",") in found.get("of")
    assert found.get("own") == "2"
    assert Signature.parse(str(found)) == found


def test_a_composite_of_embedded_metrics_is_marked_like_them():
    plan = Plan([own.WITH_IMAGE])
    values = plan.values(Batch(CANDIDATES, REFERENCES, triples()))[own.WITH_IMAGE]
    assert values.signature.has("DEMONSTRATION-ENCODER")
    assert "enc:test@0" in values.signature.get("of")
    alone = compute("vlscore,cosine", CANDIDATES, REFERENCES, embeddings=triples())
    np.testing.assert_array_equal(values.columns[0], np.mean([*alone.values()], axis=0))


@pytest.fixture
def forgotten():
    """What a test registers is forgotten afterwards."""
    before = METRICS.names()
    yield
    for name in METRICS.names():
        if name not in before:
            METRICS.unregister(name)


@pytest.mark.usefixtures("forgotten")
def test_a_metric_computed_from_itself_is_refused():
    one = made(name="one", inputs=("two",))
    register(made(name="two", inputs=(one,)))
    with pytest.raises(InvalidSetting, match="computed from itself: one -> two -> one"):
        Plan([one])


def test_two_metrics_of_one_name_are_refused():
    with pytest.raises(InvalidSetting, match="two different metrics have the column 'bleu-1'"):
        Plan(["bleu-1", made(name="bleu-1")])


def test_a_primary_number_is_one_of_the_corpus_values():
    with pytest.raises(InvalidSetting, match="primary is the name of a corpus value, not 'corpsu'"):
        made(corpus=METRICS["bleu-1"].corpus, primary="corpsu")
    with pytest.raises(InvalidSetting, match="not 'corpus'; it has none"):
        made(primary="corpus")


@pytest.mark.parametrize("better", [True, False])
def test_numbers_have_the_direction_of_their_metric_unless_they_state_one(better):
    other = Output("other", "b", higher_is_better=not better)
    metric = made(higher_is_better=better, corpus=(Output("corpus", "a"), other), statistics=1)
    found = [number["higher_is_better"] for number in facts_of(metric)]
    assert found == [better, better, not better]


@pytest.mark.parametrize("name", ["a b", "a|b", "a,b", "a:b", "a(b)", "a\nb"])
def test_names_that_would_not_be_found_again_are_refused(name):
    with pytest.raises(InvalidSetting, match="a metric cannot be called"):
        made(name=name)


def test_metrics_are_values_with_parameters_of_their_own():
    one, other = own.SharedWords(power="2"), find_metric(own.SharedWords)(power=2.0)
    assert one == other
    assert {one: "x"}[other] == "x"
    assert one != own.SharedWords()
    assert str(one) == "shared-words(power=2)"
    assert [(p.name, p.description) for p in one.parameters] == [("power", "exponent of the share")]
    with pytest.raises(InvalidSetting, match="power must be greater than 0"):
        own.SharedWords(power=0)
    with pytest.raises(InvalidSetting, match="no parameter 'size'; it has: power"):
        one(size=3)


def test_metrics_of_functions_go_to_other_processes():
    for metric in (own.length_ratio, own.SharedWords(power=2), Scorer(metrics=own.length_ratio)):
        again = pickle.loads(pickle.dumps(metric))
        assert type(again) is type(metric)
    assert pickle.loads(pickle.dumps(own.length_ratio)) == own.length_ratio
    assert copy.deepcopy(own.length_ratio) == own.length_ratio


def test_what_fails_for_one_metric_leaves_the_others():
    @text_metric("fragile", "cannot stand lungs")
    def fragile(candidate, reference):
        if "lungs" in candidate:
            raise ValueError("lungs!")
        return 1.0

    both = made(inputs=("bleu-1", fragile))
    values = Plan([fragile, "bleu-1", both]).values(Batch(CANDIDATES, REFERENCES))
    assert list(values[fragile].failures) == [1]
    assert str(values[fragile].failures[1]) == "fragile: ValueError: lungs!"
    assert np.isnan(values[fragile].columns[0]).tolist() == [False, True, False]
    assert values[find_metric("bleu-1")].failures == {}
    # What is computed from it lacks a value for the same reason.
    assert values[both].failures == values[fragile].failures


def test_values_that_are_no_numbers_are_failures_not_numbers():
    @text_metric("infinite", "divides by nothing")
    def infinite(candidate, reference):
        return float("inf") if "heart" in candidate else 0.0

    values = Plan(infinite).values(Batch(CANDIDATES, REFERENCES))[infinite]
    assert list(values.failures) == [2]
    assert "no finite value" in str(values.failures[2])
    assert np.isnan(values.columns[0][2])


def test_what_is_out_of_the_bounds_that_a_metric_states_is_no_value():
    lengths = text_metric("share", "a share", bounds=(0.0, 1.0))(lambda g, _: len(g) / 20)
    with pytest.warns(UserWarning, match="share is nan for 1 of 2 .* 1.5, but states the bounds 0"):
        found = compute(lengths, ["x" * 20, "x" * 30], ["a", "b"])
    assert found["share"][0] == 1


def test_why_a_metric_of_embeddings_has_no_value():
    found = triples()
    found.candidates[0] = np.nan
    values = Plan(made(uses_embeddings=True, inputs=(), compute=lambda self, b: np.full(3, np.nan)))
    ((_, computed),) = values.values(Batch(CANDIDATES, REFERENCES, found)).items()
    reasons = [str(error) for error in computed.failures.values()]
    assert ["embedding" in reason for reason in reasons] == [True, False, False]


@pytest.mark.parametrize(
    "returned", [1.0, np.ones((3, 2)), ["a", "b", "c"], None, [[1.0], [1.0, 2.0]]], ids=str
)
def test_a_metric_that_returns_no_number_for_each_study_is_refused(returned):
    metric = made(inputs=(), compute=lambda self, batch: returned)
    with pytest.raises(InvalidSetting, match="the metric sum-of-two must return"):
        compute(metric, CANDIDATES, REFERENCES)


def test_a_metric_that_computes_nothing_is_refused():
    with pytest.raises(InvalidSetting, match="needs a method `value` or `compute`"):
        compute(made(Metric, name="empty"), CANDIDATES, REFERENCES)


def test_values_that_are_missing_are_warned_of():
    @text_metric("broken", "fails")
    def broken(candidate, reference):
        return None if "lungs" in candidate else 1.0

    with pytest.warns(UserWarning, match=r"broken is nan for 1 of 3 .* candidate 1, .*TypeError"):
        compute(broken, CANDIDATES, REFERENCES)
    with pytest.warns(UserWarning, match=r"cider-d is nan for 1 of 1"):
        compute("cider-d", ["a"], ["b"])


class Half(Metric):
    """It fails for the second candidate."""

    name = "half"
    description = "ones"
    statistics = 1
    corpus = METRICS["bleu-1"].corpus

    def compute(self, batch):
        return Computed([np.ones(3)], np.full((3, 1), 5.0), {1: VLScoreError("no")})

    def corpus_values(self, sums):
        return {"corpus": sums[:, 0]}


def test_failed_rows_count_nothing_in_a_corpus_value():
    values = Plan(Half()).values(Batch(CANDIDATES, REFERENCES))[Half()]
    assert values.statistics.tolist() == [[5.0], [0.0], [5.0]]
    assert corpus_of(values, metric=Half())["corpus"].tolist() == [10.0]


@pytest.mark.usefixtures("forgotten")
def test_a_metric_of_ones_own_by_object_class_name_and_module():
    expected = [3 / 2, 2 / 4, 4 / 2]
    for named in (own.length_ratio, "tests.metrics.own:length_ratio"):
        assert compute(named, CANDIDATES, REFERENCES)["length-ratio"].tolist() == expected
    with pytest.raises(UnknownName):
        compute("length-ratio", CANDIDATES, REFERENCES)
    register(own.length_ratio, aliases=("lr",))
    for named in ("Length_Ratio", "LR"):
        assert compute(named, CANDIDATES, REFERENCES)["length-ratio"].tolist() == expected
    assert "own:7" in str(Plan("lr").signature_of(own.length_ratio))
    assert register(own.SharedWords) is own.SharedWords
    for named in ("shared-words(power=2)", "tests.metrics.own:SharedWords(power=2)"):
        assert find_metric(named) == own.SharedWords(power=2)


def test_metrics_that_look_at_what_is_not_there_say_so():
    cosine, vlscore = find_metric("cosine"), find_metric("vlscore")
    assert lacks(find_metric("bleu-1"), None) is None
    assert "no encoder" in lacks(cosine, None)
    assert lacks(cosine, triples(), images=False) is None
    assert "no images" in lacks(vlscore, triples(), images=False)
    assert "constant C" in lacks(vlscore, triples(C=None))
    assert lacks(vlscore(C=3), triples(C=None)) is None
    assert lacks(vlscore, triples(C=None), C=3.0) is None


@pytest.mark.usefixtures("forgotten")
def test_only_free_metrics_run_unnamed():
    register(made(name="paid-judge", cost="paid"))
    usable, left_out = usable_metrics(triples())
    assert "paid-judge" not in map(str, usable)
    assert "only if it is named, because a service charges money" in left_out["paid-judge"]
    assert {"vlscore", "cosine", "bleu-4", "rouge-l", "findings-f1"} <= set(map(str, usable))


def test_a_metric_that_cannot_run_is_refused_before_anything_is_computed():
    metric = made(missing=lambda self: "mine is not installed: pip install mine")
    with pytest.raises(MissingDependency, match="sum-of-two: mine is not installed"):
        compute(["bleu-1", metric], CANDIDATES, REFERENCES)


def test_a_metric_states_its_number_of_columns_and_rows():
    metric = made(inputs=(), compute=lambda self, batch: [np.zeros(3), np.zeros(3)])
    with pytest.raises(InvalidSetting, match="must return 1 columns"):
        compute(metric, CANDIDATES, REFERENCES)


def test_a_metric_of_pairs_that_does_not_say_so_is_told():
    def compute_pairs(self, batch):
        return np.zeros(len(batch.pairs()))

    metric = made(inputs=(), uses_reference=False, compute=compute_pairs)
    with pytest.raises(InvalidSetting, match="uses_reference=True"):
        compute(metric, CANDIDATES, None)
