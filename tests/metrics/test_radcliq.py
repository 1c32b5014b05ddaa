"""RadCliQ from its inputs' values, and how its parameters reach its inputs."""

import numpy as np
import pandas
import pytest

from tests.metrics.contract import corpus_of, values_of
from vlscore.errors import MissingDependency
from vlscore.metrics import Metric, Plan, compute, find_metric
from vlscore.metrics.library.radcliq import REGRESSIONS, RadCliQv0


class Given(Metric):
    """One of the four inputs: what a candidate's text says, in the order of the regression."""

    name = "given"
    description = "a word of the candidate"
    place = 0

    def compute(self, batch):
        return np.array([float(text.split()[self.place]) for text in batch.candidates])


@pytest.fixture
def given(monkeypatch):
    stands = tuple(
        type(f"given-{k}", (Given,), {"name": f"given-{k}", "place": k})() for k in range(4)
    )
    monkeypatch.setattr(RadCliQv0, "inputs", stands)


def test_identical_reports_have_the_published_value_even_alone(given):
    assert compute("radcliq-v1", ["1 1 1 1"], ["x"])["radcliq-v1"] == pytest.approx(
        [-1.4407], abs=5e-5
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    # By hand from the numbers that RadEval prints (v1), and from the authors' regression (v0).
    [
        (
            "v1",
            -0.377083683 * (0.25 - 0.53792312) / 0.30282584
            - 0.3703001 * (0.5 - 0.61757256) / 0.22430938
            - 0.252616218 * (0.75 - 0.76479421) / 0.25394391,
        ),
        (
            "v0",
            1.6416666667
            - 0.4796252645 * (0.25 - 0.5398376) / 0.30183444
            - 0.6762170542 * (0.5 - 0.63125496) / 0.22466951
            - 0.4636657516 * (0.75 - 0.77167979) / 0.24750334
            + 0.2165861905 * (0.125 - 0.46073721) / 0.30336671,
        ),
    ],
)
def test_values_by_hand(given, version, expected):
    found = compute(f"radcliq-{version}", ["0.25 0.5 0.75 0.125"], ["x"])[f"radcliq-{version}"]
    assert found == pytest.approx([expected], abs=1e-6)


def test_lower_is_better_and_one_bad_input_loses_only_its_pair(given):
    for name in REGRESSIONS:
        assert not find_metric(name).higher_is_better
        found = compute(name, ["1 1 1 0.2", "0 0 0 0.2", "1 nan 1 0.2"], ["x"] * 3)[name]
        assert found[0] < found[1]
        assert np.isnan(found[2])


def test_the_inverse_is_of_the_mean_as_rexrank_computes_it(given):
    """Its script divides 1 by the mean of a column; the mean of inverses is another number."""
    texts = ["0.25 0.5 0.75 0.125", "0.1 0.2 0.3 0.1", "0 nan 0 0"]
    values = values_of("radcliq-v1", texts, ["x"] * 3)
    found = values.columns[0]
    (inverse,) = corpus_of(values)["inverse"]
    assert inverse == pytest.approx(1.0 / pandas.Series(found).mean())
    assert abs(inverse - np.nanmean(1 / found)) > 0.01
    metric = find_metric("radcliq-v1")
    assert metric.printed("inverse", of_corpus=True) == "1/RadCliQ-v1"
    assert metric.printed() == "RadCliQ-v1"
    assert metric.corpus[0].higher_is_better


def test_a_mean_of_zero_or_below_has_no_inverse(given):
    """1 / x would rank -1 below -2, and both below a bad system."""
    values = values_of("radcliq-v1", ["1 1 1 1"] * 2, ["x"] * 2)
    assert np.isnan(corpus_of(values)["inverse"][0])
    assert values.columns[0].mean() < 0


def test_parameters_reach_the_inputs():
    metric = find_metric("radcliq-v1(bertscore=/models/distilroberta-base,radgraph=/r.tar.gz)")
    graph, words, labels, bleu = map(str, metric.inputs)
    assert graph == "radgraph-f1(weights=/r.tar.gz)"
    assert words.startswith("bert-score(model=/models/distilroberta-base,layer=5,rescale=library")
    assert labels == "chexbert-similarity"
    assert bleu == "bleu-2(smoothing=floor,tokens=cxr)"
    assert find_metric("radcliq-v1").inputs != metric.inputs


def test_what_is_missing_is_said_of_every_input_at_once(monkeypatch):
    monkeypatch.delenv("VLSCORE_CHEXBERT", raising=False)
    monkeypatch.delenv("VLSCORE_RADGRAPH", raising=False)
    metric = find_metric("radcliq-v1")
    reason = metric.missing()
    for name in ("radgraph-f1", "bert-score", "chexbert-similarity"):
        assert f"{name}: " in reason
    # Of several metrics each is told, by the name that was asked for.
    with pytest.raises(MissingDependency, match=r"^radcliq-v1: .*; chexbert-f1: ") as refused:
        Plan(["rouge-l", metric, "chexbert-f1"]).require()
    assert reason in str(refused.value)
