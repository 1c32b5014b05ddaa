"""RadCliQ from its inputs' values, and how its parameters reach its inputs."""

import numpy as np
import pytest

from vlscore.errors import MissingDependency
from vlscore.metrics import Plan, Provider, compute, find_metric, one_column
from vlscore.metrics.library.radcliq import INPUTS, REGRESSIONS
from vlscore.metrics.registry import inputs_of


class Given(Provider):
    """Stands for the four inputs: what a candidate's text says, in the order of INPUTS."""

    library = "given"

    def compute(self, metric, batch):
        names = [name.split("(")[0] for name in INPUTS]
        place = names.index(metric.name)
        values = [[float(x) for x in text.split()] for text in batch.candidates]
        first = [row[place] for row in values]
        further = [np.zeros(len(first)) for _ in metric.further]
        statistics = np.zeros((len(first), metric.statistics)) if metric.statistics else None
        return type(one_column(first))([np.array(first), *further], statistics)

    def missing(self, metric):
        return None

    def facts(self, metric):
        return {"given": 1}


@pytest.fixture
def given(monkeypatch):
    stand = Given()
    own = {name.split("(")[0] for name in INPUTS}
    from vlscore.metrics import plan, registry
    from vlscore.metrics.library import composite

    def provider(metric, usual=plan.provider_of):
        return stand if metric.name in own else usual(metric)

    monkeypatch.setattr(plan, "provider_of", provider)
    for module in (registry, composite):
        monkeypatch.setattr(module, "provider_of", provider)


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


def test_parameters_reach_the_inputs():
    metric = find_metric("radcliq-v1(bertscore=/models/distilroberta-base,radgraph=/r.tar.gz)")
    found = {name: str(each) for name, each in inputs_of(metric).items()}
    assert found[INPUTS[0]] == "radgraph-f1(weights=/r.tar.gz)"
    assert "model=/models/distilroberta-base" in found[INPUTS[1]]
    assert "layer=5" in found[INPUTS[1]]
    assert found[INPUTS[2]] == "chexbert-similarity"
    assert inputs_of(find_metric("radcliq-v1")) != inputs_of(metric)


def test_what_is_missing_is_said_of_every_input_at_once(monkeypatch):
    monkeypatch.delenv("VLSCORE_CHEXBERT", raising=False)
    monkeypatch.delenv("VLSCORE_RADGRAPH", raising=False)
    from vlscore.metrics import provider_of

    metric = find_metric("radcliq-v1")
    reason = provider_of(metric).missing(metric)
    for name in ("radgraph-f1", "bert-score", "chexbert-similarity"):
        assert f"{name}: " in reason
    # Of several metrics each is told, by the name that was asked for.
    with pytest.raises(MissingDependency, match=r"^radcliq-v1: .*; chexbert-f1: ") as refused:
        Plan(["rouge-l", metric, "chexbert-f1"]).require()
    assert reason in str(refused.value)


def test_bert_score_of_radcliq_collapses_blanks_as_its_authors_do():
    """As re.sub(r" +", " ", report) in add_bertscore_col of CXR-Report-Metric."""
    from vlscore.metrics.library.bert_score import _prepared

    (metric,) = (
        each for each in inputs_of(find_metric("radcliq-v1")).values() if each.name == "bert-score"
    )
    assert _prepared("  Clear.  No  effusion.\n  End. ", metric) == " Clear. No effusion.\n End. "
    assert _prepared("a  b", find_metric("bert-score")) == "a  b"
