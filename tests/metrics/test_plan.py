"""What metrics need, in which order they run, and metrics of users' own."""

import dataclasses
import sys
import threading
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from tests.metrics import own
from vlscore.core import Recent, Signature
from vlscore.errors import InvalidSetting, MissingDependency, UnknownName, VLScoreError
from vlscore.metrics import (
    METRICS,
    Batch,
    Computed,
    EmbeddingTriples,
    Metric,
    Plan,
    Provider,
    compute,
    find_metric,
    lacks,
    register,
    text_metric,
    usable_metrics,
)
from vlscore.metrics.provider import ARTEFACTS, Artefact
from vlscore.testing import check_metric

CANDIDATES = ["small left effusion", "clear lungs", "the heart is normal"]
REFERENCES = ["left effusion", "the lungs are clear", "normal heart"]


def triples(count=3, **options):
    i, g, r = np.random.default_rng(1).normal(size=(3, count, 4))
    facts = Signature("embeddings").plus(enc="test@0", img="auto", views="first-frontal")
    options = {"C": 2.0, **options}
    return EmbeddingTriples(i, g, r, facts.flagged("DEMONSTRATION-ENCODER"), **options)


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


def test_composites_run_last_on_values_that_are_computed_once(monkeypatch):
    ran = []
    real = Plan._finished

    def noted(self, metric, computed, batch):
        ran.append(str(metric))
        return real(self, metric, computed, batch)

    monkeypatch.setattr(Plan, "_finished", noted)
    plan = Plan([own.COMPOSITE, "rouge-l"])
    values = plan.values(Batch(CANDIDATES, REFERENCES))
    assert ran == ["bleu-1", "rouge-l", "length-ratio", "sum-of-two"]
    # Only what was asked for comes back, in that order.
    assert [str(metric) for metric in values] == ["sum-of-two", "rouge-l"]
    alone = compute(["bleu-1", "rouge-l", own.length_ratio], CANDIDATES, REFERENCES)
    expected = np.mean([alone["bleu-1"], alone["rouge-l"], alone["length-ratio"]], axis=0)
    np.testing.assert_array_equal(values[own.COMPOSITE].headline, expected)
    check_metric(own.COMPOSITE)


def test_a_composites_signature_contains_those_of_its_inputs():
    plan = Plan([own.COMPOSITE])
    found = plan.signature(own.COMPOSITE)
    assert found.subject == "sum-of-two"
    for name in ("bleu-1", "rouge-l", own.length_ratio):
        one = str(plan.signature(find_metric(name)))
        assert one.replace("|", ",") in found.get("of")
    assert found.get("mine") == "2"
    assert Signature.parse(str(found)) == found


def test_a_composite_of_embedded_metrics_is_marked_like_them():
    plan = Plan([own.WITH_IMAGE])
    values = plan.values(Batch(CANDIDATES, REFERENCES, triples()))[own.WITH_IMAGE]
    assert values.signature.has("DEMONSTRATION-ENCODER")
    assert "enc:test@0" in values.signature.get("of")
    alone = compute("vlscore,cosine", CANDIDATES, REFERENCES, embeddings=triples())
    np.testing.assert_array_equal(values.headline, np.mean([*alone.values()], axis=0))


def test_a_metric_computed_from_itself_is_refused():
    one = dataclasses.replace(own.COMPOSITE, name="one", inputs=("two",))
    two = dataclasses.replace(own.COMPOSITE, name="two", inputs=(one,))
    METRICS.register(two)
    try:
        with pytest.raises(InvalidSetting, match="computed from itself: one -> two -> one"):
            Plan([one])
    finally:
        METRICS.unregister("two")


def test_two_metrics_of_one_name_are_refused():
    impostor = dataclasses.replace(own.length_ratio, name="bleu-1")
    with pytest.raises(InvalidSetting, match="two different metrics have the column 'bleu-1'"):
        Plan(["bleu-1", impostor])


@pytest.mark.parametrize("name", ["", "a b", "a|b", "a,b", "a:b", "a(b)", "a\nb"])
def test_names_that_would_not_be_found_again_are_refused(name):
    with pytest.raises(InvalidSetting, match="a metric cannot be called"):
        dataclasses.replace(own.COMPOSITE, name=name)


def test_lists_stand_for_tuples_and_a_lone_text_is_refused():
    metric = dataclasses.replace(own.COMPOSITE, inputs=["bleu-1", "rouge-l"])
    assert metric.inputs == ("bleu-1", "rouge-l")
    assert isinstance(hash(metric), int)
    with pytest.raises(InvalidSetting, match="inputs must be a tuple, not a text"):
        dataclasses.replace(own.COMPOSITE, inputs="bleu-1")


def test_a_provider_that_has_no_hash_will_do():
    metric = dataclasses.replace(own.COMPOSITE, inputs=(), provider=own.Unhashable())
    assert compute(metric, CANDIDATES, REFERENCES)["sum-of-two"].tolist() == [0.5] * 3
    assert metric != dataclasses.replace(metric, provider=own.Unhashable(0.7))


def test_what_fails_for_one_metric_leaves_the_others():
    @text_metric("fragile", "cannot stand lungs")
    def fragile(candidate, reference):
        if "lungs" in candidate:
            raise ValueError("lungs!")
        return 1.0

    both = dataclasses.replace(own.COMPOSITE, inputs=("bleu-1", fragile))
    values = Plan([fragile, "bleu-1", both]).values(Batch(CANDIDATES, REFERENCES))
    assert list(values[fragile].failures) == [1]
    assert str(values[fragile].failures[1]) == "fragile: ValueError: lungs!"
    assert np.isnan(values[fragile].headline).tolist() == [False, True, False]
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
    assert np.isnan(values.headline[2])


def test_failed_rows_count_nothing_in_a_corpus_value():
    class Half(Provider):
        library = "half"

        def missing(self, metric):
            return None

        def version(self):
            return "1"

        def compute(self, metric, batch):
            failures = {1: VLScoreError("no")}
            return Computed([np.ones(3)], np.full((3, 1), 5.0), failures)

        def corpus(self, metric, sums):
            return {"corpus": sums[:, 0]}

    metric = dataclasses.replace(
        own.COMPOSITE,
        inputs=(),
        provider=Half(),
        statistics=1,
        corpus=METRICS["bleu-1"].corpus,
    )
    plan = Plan(metric)
    values = plan.values(Batch(CANDIDATES, REFERENCES))[metric]
    assert values.statistics.tolist() == [[5.0], [0.0], [5.0]]
    assert plan.corpus(values)["corpus"].tolist() == [10.0]


def test_an_artefact_is_made_once_a_text(monkeypatch):
    made = []

    def count_words(texts):
        made.extend(texts)
        return [len(text.split()) for text in texts]

    class Ratio(Provider):
        library = "ratio"

        def missing(self, metric):
            return None

        def version(self):
            return "1"

        def compute(self, metric, batch):
            g, r = (np.array(part, dtype=float) for part in batch.artefacts["words"])
            return Computed([g / r if metric.name == "ratio" else r / g])

    ARTEFACTS.register(Artefact("words", count_words))
    try:
        one = dataclasses.replace(
            own.COMPOSITE, name="ratio", inputs=(), artefacts=("words",), provider=Ratio()
        )
        other = dataclasses.replace(one, name="inverse")
        plan = Plan([one, other])
        first = plan.values(Batch(["a b", "a b", "c"], ["x", "x", "c"]))
        assert first[one].headline.tolist() == [2.0, 2.0, 1.0]
        assert first[other].headline.tolist() == [0.5, 0.5, 1.0]
        plan.values(Batch(["c"], ["y z"]))
        assert made == ["a b", "c", "x", "y z"]
        with pytest.raises(UnknownName, match="no artefact is called 'wrods'"):
            Plan(dataclasses.replace(one, artefacts=("wrods",)))
    finally:
        ARTEFACTS.unregister("words")


@pytest.fixture
def forgotten():
    """What a test registers is forgotten afterwards."""
    before = METRICS.names()
    yield
    for name in METRICS.names():
        if name not in before:
            METRICS.unregister(name)


@pytest.mark.usefixtures("forgotten")
def test_a_metric_of_ones_own_by_object_name_and_module():
    expected = [3 / 2, 2 / 4, 4 / 2]
    for named in (own.length_ratio, "tests.metrics.own:length_ratio"):
        assert compute(named, CANDIDATES, REFERENCES)["length-ratio"].tolist() == expected
    with pytest.raises(UnknownName):
        compute("length-ratio", CANDIDATES, REFERENCES)
    register(own.length_ratio, aliases=("lr",))
    for named in ("Length_Ratio", "LR"):
        assert compute(named, CANDIDATES, REFERENCES)["length-ratio"].tolist() == expected
    assert "own:7" in str(Plan("lr").signature(own.length_ratio))


def test_a_metric_of_ones_own_by_entry_point(monkeypatch):
    from vlscore.core import Registry
    from vlscore.metrics import registry

    point = EntryPoint("Their_Metric", "tests.metrics.own:length_ratio", "vlscore.metrics")
    taken = EntryPoint("bleu-1", "tests.metrics.own:COMPOSITE", "vlscore.metrics")
    monkeypatch.setattr("vlscore.core.registry.entry_points", lambda group: [point, taken])
    fresh = Registry("metric", group="vlscore.metrics", check=registry._check)
    fresh.register(METRICS["bleu-1"])
    monkeypatch.setattr(registry, "METRICS", fresh)
    assert find_metric("their-metric") == own.length_ratio
    # A package of a user's may not take the place of one of ours.
    assert find_metric("bleu-1").provider is not own.length_ratio.provider


@pytest.mark.usefixtures("forgotten")
def test_what_cannot_be_registered_is_said():
    with pytest.raises(InvalidSetting, match="not a str"):
        register("bleu-1")
    with pytest.raises(UnknownName, match="the metric orphan has no provider"):
        register(dataclasses.replace(own.COMPOSITE, name="orphan", provider=None))
    with pytest.raises(InvalidSetting, match="must be a Provider, not a str"):
        register(dataclasses.replace(own.COMPOSITE, provider="mine"))
    with pytest.raises(InvalidSetting, match=r"is registered already|belongs to"):
        register(dataclasses.replace(own.COMPOSITE, name="bleu-1"))


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("tests.metrics.own:nothing", UnknownName, "cannot be imported either"),
        ("no_such_package:METRIC", UnknownName, "PYTHONPATH"),
        ("tests.metrics.own:NOT_A_METRIC", InvalidSetting, "not a str"),
    ],
)
def test_a_module_without_the_metric_is_said(target, error, message):
    with pytest.raises(error, match=message):
        find_metric(target)


def test_metrics_that_look_at_what_is_not_there_say_so():
    cosine, vlscore = find_metric("cosine"), find_metric("vlscore")
    assert lacks(find_metric("bleu-1"), None) is None
    assert "no encoder" in lacks(cosine, None)
    texts = EmbeddingTriples(None, np.zeros((0, 4)), np.zeros((0, 4)), "enc:test")
    assert lacks(cosine, texts) is None
    assert "no images" in lacks(vlscore, texts)
    assert "constant C" in lacks(vlscore, triples(C=None))
    assert lacks(vlscore(C=3), triples(C=None)) is None


def test_only_free_metrics_run_unnamed():
    costly = dataclasses.replace(own.COMPOSITE, name="paid-judge", cost="paid")
    METRICS.register(costly)
    try:
        usable, left_out = usable_metrics(triples())
    finally:
        METRICS.unregister("paid-judge")
    assert "paid-judge" not in map(str, usable)
    assert "only if it is named, because a service charges money" in left_out["paid-judge"]
    assert {"vlscore", "cosine", "bleu-4", "rouge-l", "findings-f1"} <= set(map(str, usable))


def test_a_metric_that_cannot_run_is_refused_before_anything_is_computed():
    class Absent(own.MeanOfInputs):
        def missing(self, metric):
            return "mine is not installed: pip install mine"

    metric = dataclasses.replace(own.COMPOSITE, provider=Absent())
    with pytest.raises(MissingDependency, match="sum-of-two: mine is not installed"):
        compute(["bleu-1", metric], CANDIDATES, REFERENCES)


def test_a_recent_memory_is_bounded_and_shared_by_threads(monkeypatch):
    recent: Recent[int, int] = Recent(room=20)
    problems = []
    monkeypatch.setattr(sys, "setswitchinterval", sys.setswitchinterval)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(300):
                keys = rng.integers(60, size=30).tolist()
                known = recent.known(keys)
                assert all(known[key] == -key for key in known)
                recent.add({key: -key for key in keys})
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert len(recent) == 20


def test_a_metric_states_its_number_of_columns_and_rows():
    class Wrong(own.MeanOfInputs):
        def compute(self, metric, batch):
            return Computed([np.zeros(len(batch)), np.zeros(len(batch))])

    metric = dataclasses.replace(own.COMPOSITE, inputs=(), provider=Wrong())
    with pytest.raises(InvalidSetting, match="must return 1 columns"):
        compute(metric, CANDIDATES, REFERENCES)


def test_a_metric_of_pairs_that_does_not_say_so_is_told():
    metric = Metric(
        name="liar",
        description="looks at references",
        higher_is_better=True,
        bounds=(None, None),
        uses_image=False,
        uses_reference=False,
        citation="",
        provider=own.length_ratio.provider,
    )
    with pytest.raises(InvalidSetting, match="uses_reference=True"):
        compute(metric, CANDIDATES, None)
