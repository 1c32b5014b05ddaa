"""The judge as a metric gives the judge's numbers."""

import pytest

from vlscore.errors import InvalidSetting
from vlscore.metrics import METRICS, SCORES, Plan, RuleJudge, compute
from vlscore.testing import check_metric

CANDIDATES = ["Right effusion.", "Clear lungs.", "Rib fracture. Edema.", ""]
REFERENCES = ["Left effusion.", "Clear lungs.", "Large pneumothorax.", "Clear lungs."]


def test_columns_are_the_judges_scores():
    judged = [RuleJudge().judge(g, r) for g, r in zip(CANDIDATES, REFERENCES, strict=True)]
    values = compute("judge", CANDIDATES, REFERENCES)
    assert list(values["judge"]) == [SCORES["rating"](j) for j in judged]
    for name in ("sum", "maximum", "count", "significant"):
        assert list(values[f"judge.{name}"]) == [getattr(j, name) for j in judged]


def test_each_score_can_be_the_first_number():
    parameter = METRICS["judge"].parameters[0]
    assert parameter.choices == tuple(SCORES)
    for name, score in SCORES.items():
        judged = [RuleJudge().judge(g, r) for g, r in zip(CANDIDATES, REFERENCES, strict=True)]
        chosen = METRICS["judge"](score=name)
        values = compute([chosen], CANDIDATES, REFERENCES)
        assert list(values[str(chosen)]) == [score(j) for j in judged]
    with pytest.raises(InvalidSetting, match="rating, sum"):
        compute("judge(score=best)", CANDIDATES, REFERENCES)


def test_every_choice_keeps_the_contract():
    check_metric("judge(score=sum)")


def test_the_signature_states_the_rules_and_their_tables():
    plan = Plan("judge")
    (metric,) = plan.metrics
    assert RuleJudge().name in str(plan.signature(metric))
