"""The judge as a metric gives the judge's numbers."""

import numpy as np
import pytest

from tests.metrics.contract import check_metric
from tests.metrics.judge.endpoint_server import Answer, running
from vlscore.errors import InvalidSetting
from vlscore.metrics import METRICS, SCORES, Plan, RuleJudge, compute

CANDIDATES = ["Right effusion.", "Clear lungs.", "Rib fracture. Edema.", ""]
REFERENCES = ["Left effusion.", "Clear lungs.", "Large pneumothorax.", "Clear lungs."]


def test_columns_are_the_judges_scores():
    judged = [RuleJudge().judge(g, r) for g, r in zip(CANDIDATES, REFERENCES, strict=True)]
    values = compute("judge", CANDIDATES, REFERENCES)
    assert list(values["judge"]) == [SCORES["rating"](j) for j in judged]
    for name in ("grade", "sum", "maximum", "count", "significant"):
        assert list(values[f"judge.{name}"]) == [getattr(j, name) for j in judged]


def test_each_score_can_be_the_first_number():
    parameter = METRICS["judge"].parameters[0]
    assert parameter.choices == tuple(SCORES)
    for name, score in SCORES.items():
        judged = [RuleJudge().judge(g, r) for g, r in zip(CANDIDATES, REFERENCES, strict=True)]
        chosen = METRICS["judge"](score=name)
        values = compute([chosen], CANDIDATES, REFERENCES)
        assert list(values[str(chosen)]) == [score(j) for j in judged]
    with pytest.raises(InvalidSetting, match="rating, grade"):
        compute("judge(score=best)", CANDIDATES, REFERENCES)


def test_every_choice_keeps_the_contract():
    check_metric("judge(score=sum)")


def test_the_signature_states_the_rules_and_their_tables():
    plan = Plan("judge")
    (metric,) = plan.metrics
    signature = str(plan.signature_of(metric))
    assert signature.startswith(f"judge|score:rating|judge:{RuleJudge().name}|")
    with pytest.raises(InvalidSetting, match="no effect without a model"):
        compute("judge(order=reference-first)", CANDIDATES, REFERENCES)


def test_a_model_behind_an_endpoint_is_a_metric_too(monkeypatch, cache_folder):
    answer = (
        '{"errors": [{"category": "false_finding", "severity": 4, "finding": "effusion", '
        '"candidate_line": 1, "reference_line": null, "correction": "", "reason": "It is not."}], '
        '"correct": [{"finding": "edema", "severity": 3}]}'
    )
    bad = "unusable"

    def behave(number, body):
        return Answer(bad if "Rib" in str(body["messages"]) else answer)

    with running(behave) as endpoint:
        monkeypatch.setenv("VLSCORE_JUDGE_ENDPOINT", endpoint.url)
        plan = Plan("judge(model=fake,prompt=zero-shot)")
        (metric,) = plan.metrics
        values = compute(str(metric), CANDIDATES[:3], REFERENCES[:3])
        signature = str(plan.signature_of(metric))
        missing = metric.missing()
    assert values[f"{metric}.sum"].tolist()[:2] == [4.0, 4.0]
    # A right finding of severity 3 weighs 1, an error of severity 4 weighs 1.5, the base .75.
    assert values[str(metric)].tolist()[:2] == [(1 + 0.75) / (1 + 1.5 + 0.75)] * 2
    assert np.isnan(values[str(metric)][2])
    for fact in ("judge:model", "model:fake", f"endpoint:{endpoint.url}", "prompt:zero-shot@1"):
        assert fact in signature.split("|")
    assert missing is None


def test_a_metric_sends_no_report_to_a_host_that_is_not_allowed(monkeypatch):
    with pytest.raises(InvalidSetting, match="VLSCORE_JUDGE_SEND_TO=example"):
        compute("judge(model=m,endpoint=http://example.org/v1)", CANDIDATES, REFERENCES)
    metric = METRICS["judge"](model="absent")
    assert "--endpoint" in metric.missing()
    monkeypatch.setenv("VLSCORE_JUDGE_IN_FLIGHT", "many")
    with pytest.raises(InvalidSetting, match="VLSCORE_JUDGE_IN_FLIGHT must be a number"):
        compute("judge(model=m,endpoint=http://localhost:1/v1)", CANDIDATES, REFERENCES)
