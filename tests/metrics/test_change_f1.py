"""F1 of changes, against counts by hand."""

import numpy as np
import pytest

from vlscore.errors import InvalidSetting
from vlscore.metrics import (
    RuleJudge,
    compute,
    corpus_of_sums,
    find_metric,
    find_metrics,
    usable_metrics,
)
from vlscore.metrics.batch import Batch
from vlscore.metrics.plan import Plan

REFERENCES = [
    "The left effusion is larger than before. Stable cardiomegaly.",
    "New consolidation.",
    "Clear lungs.",
]
CANDIDATES = [
    "The left effusion has increased. Cardiomegaly has improved.",
    "Consolidation.",
    "No new effusion.",
]


def test_values_are_those_counted_by_hand():
    # Study 1: effusion worse is shared; cardiomegaly is improved for unchanged. Study 2: missed.
    values = compute("change-f1", CANDIDATES, REFERENCES)
    assert values["change-f1"].tolist() == [0.5, 0.0, 1.0]
    assert values["change-f1.precision"].tolist() == [0.5, 1.0, 1.0]
    assert values["change-f1.recall"].tolist() == [0.5, 0.0, 1.0]


def test_corpus_values_and_their_support():
    metric = find_metric("change-f1")
    found = Plan("change-f1").values(Batch(CANDIDATES, REFERENCES))[metric]
    sums = found.statistics.sum(0)[None]
    of = {name: value.item() for name, value in corpus_of_sums(metric, sums).items()}
    # 1 shared, 1 only in a candidate, 2 only in a reference.
    assert of["micro"] == pytest.approx(2 * 1 / (2 * 1 + 1 + 2))
    assert (of["pleural-effusion"], of["cardiomegaly"], of["consolidation"]) == (1, 0, 0)
    assert np.isnan(of["edema"])
    assert of["macro"] == pytest.approx(1 / 3)
    assert metric.support(sums)["micro"].tolist() == [3]
    nobody = corpus_of_sums(metric, found.statistics[2:])
    assert all(np.isnan(value).all() for value in nobody.values())


@pytest.mark.parametrize("name", ["findings-f1", "mirqi", "judge", "judge(score=count)"])
def test_comparisons_can_be_left_out_of_metrics_that_read_findings(name):
    metric = find_metric(name)(comparisons="ignored")
    with_them = "Large effusion, increased since the prior study. The pneumonia has resolved."
    without = "Large effusion."
    value = compute([metric], [without], [with_them])[str(metric)].item()
    assert value == 1.0
    assert "comparisons:ignored" in str(Plan([metric]).signature_of(metric))


def test_one_option_leaves_comparisons_out_of_every_metric_that_reads_findings():
    names = "findings-f1,judge,bleu-1,mirqi(positive=1)"
    found = find_metrics(names, comparisons="ignored")
    assert [metric.settings.get("comparisons") for metric in found] == [
        *("ignored", "ignored", None, "ignored")
    ]
    with pytest.raises(InvalidSetting, match="change-f1 cannot leave comparisons out"):
        find_metrics("bleu-1,change-f1", comparisons="ignored")
    usable, left_out = usable_metrics(comparisons="ignored")
    assert all(m.settings["comparisons"] == "ignored" for m in usable if m.uses_findings)
    assert "cannot leave comparisons out" in left_out["change-f1"]


def test_the_judge_by_rules_states_that_it_ignores_comparisons():
    judge = RuleJudge(comparisons="ignored")
    assert judge.name.endswith("comparisons:ignored")
    assert not judge.judge("Effusion.", "New effusion.").errors
    assert RuleJudge().judge("Effusion.", "New effusion.").errors
