"""Findings F1 on reports whose observations are counted by hand."""

import numpy as np
import pytest

from tests.metrics.contract import check_metric, corpus_of, values_of
from vlscore.findings import chexpert_labels, extract
from vlscore.metrics import compute, find_metric, support_of_sums
from vlscore.metrics.library.findings_f1 import _CORPUS

# Stated: effusion | effusion (a hit). Doubted: pneumonia | not mentioned. Denied: pneumothorax |
# stated (a miss). Stated: device | not mentioned.
REFERENCE = "Small effusion. Large pneumothorax."
CANDIDATE = "Left effusion. Possible pneumonia. No pneumothorax. PICC line in place."


def _one(name, candidate=CANDIDATE, reference=REFERENCE):
    return [column[0] for column in compute(name, [candidate], [reference]).values()]


@pytest.mark.parametrize(
    ("name", "tp", "fp", "fn"),
    [
        ("findings-f1", 1, 2, 1),
        ("findings-f1(uncertain=negative)", 1, 1, 1),
        ("findings-f1(unmentioned=ignored)", 1, 0, 1),
    ],
)
def test_counts_follow_the_policies(name, tp, fp, fn):
    expected = [2 * tp / (2 * tp + fp + fn), tp / (tp + fp), tp / (tp + fn)]
    assert _one(name) == pytest.approx(expected)


def test_a_finding_that_the_reference_denies_is_judged_under_both_policies():
    for policy in ("negative", "ignored"):
        name = f"findings-f1(unmentioned={policy})"
        assert _one(name, "Left effusion.", "No effusion.")[0] == 0.0


def test_no_finding_is_judged_though_no_report_mentions_it():
    name = "findings-f1(unmentioned=ignored)"
    assert _one(name, "", "Left effusion.")[1] == 0.0


def test_corpus_values_pool_counts_over_fourteen_and_over_five_observations():
    candidates = ["Left effusion.", "Cardiomegaly. Pneumothorax.", "Edema."]
    references = ["Effusion.", "Cardiomegaly and effusion.", "Edema. Nodule. Atelectasis."]
    values = values_of("findings-f1", candidates, references)
    corpus = {k: v[0] for k, v in corpus_of(values).items()}
    # Hits: effusion, cardiomegaly, edema; missed: effusion, lung lesion, atelectasis; too much:
    # pneumothorax.
    for count in (13, 14):
        assert corpus[f"micro-{count}"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 3))
        assert corpus[f"macro-{count}"] == pytest.approx(np.mean([2 / 3, 1, 1, 0, 0, 0]))
    assert corpus["micro-5"] == pytest.approx(2 * 3 / (2 * 3 + 2))
    assert corpus["macro-5"] == pytest.approx(np.mean([2 / 3, 1, 1, 0]))
    assert corpus["pleural-effusion"] == pytest.approx(2 / 3)
    assert corpus["atelectasis"] == 0.0
    # Nobody mentions it: it has no F1.
    assert np.isnan(corpus["consolidation"])


SENTENCES = (
    "Left effusion.",
    "Cardiomegaly.",
    "Mild edema.",
    "Possible pneumonia.",
    "No pneumothorax.",
    "Large pneumothorax.",
    "The lungs are clear.",
    "Bibasilar atelectasis.",
    "Rib fracture.",
    "PICC line in place.",
)


def test_averages_are_those_of_scikit_learn():
    """Labels of 200 random reports; an observation without mentions counts 0 there."""
    sklearn = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    candidates, references = (
        [" ".join(generator.choice(SENTENCES, generator.integers(1, 5))) for _ in range(200)]
        for _ in range(2)
    )
    corpus = {
        k: v[0] for k, v in corpus_of(values_of("findings-f1", candidates, references)).items()
    }
    predicted, wanted = (
        np.array([[v in (1, -1) for v in chexpert_labels(extract(t)).values()] for t in texts])
        for texts in (candidates, references)
    )
    for suffix, chosen in _CORPUS.groups.items():
        g, r = predicted[:, chosen], wanted[:, chosen]
        there = (g | r).any(0)
        for average in ("micro", "macro", "weighted"):
            expected = sklearn.f1_score(r[:, there], g[:, there], average=average, zero_division=0)
            assert corpus[f"{average}{suffix}"] == pytest.approx(expected, abs=1e-12)
        whole = sklearn.f1_score(r, g, average="weighted", zero_division=0)
        assert corpus[f"weighted{suffix}"] == pytest.approx(whole, abs=1e-12)


def test_weights_are_how_often_the_references_state_an_observation():
    """By hand: effusion, stated twice, is found once; edema, stated once, is found; nodule is
    invented, and weighs nothing."""
    candidates = ["Effusion.", "Lung nodule.", "Edema."]
    references = ["Effusion.", "Effusion.", "Edema."]
    values = values_of("findings-f1", candidates, references)
    corpus = {k: v[0] for k, v in corpus_of(values).items()}
    for count in (5, 13, 14):
        assert corpus[f"weighted-{count}"] == pytest.approx((2 * 2 / 3 + 1) / 3)
    support = support_of_sums(find_metric("findings-f1"), values.statistics.sum(0))
    assert support["weighted-5"] == support["micro-5"] == 3


def test_an_observation_without_any_mention_is_undefined_and_left_out_of_macro():
    """Counts by hand: only edema occurs, once right and once invented."""
    candidates, references = ["Edema.", "Edema."], ["Edema.", "Pleural thickening."]
    values = values_of("findings-f1", candidates, references)
    corpus = {k: v[0] for k, v in corpus_of(values).items()}
    assert corpus["edema"] == corpus["macro-5"] == corpus["micro-5"] == pytest.approx(2 / 3)
    for name in ("atelectasis", "cardiomegaly", "consolidation", "pleural-effusion"):
        assert np.isnan(corpus[name])
    support = support_of_sums(find_metric("findings-f1"), values.statistics.sum(0))
    assert support["edema"] == support["micro-5"] == support["macro-5"] == 1
    assert support["consolidation"] == 0
    # Pleural Other is the second reference's.
    assert support["micro-13"] == support["micro-14"] == 2
    assert support["macro-13"] == 1


def test_a_corpus_without_any_observation_of_the_five_has_no_f1_of_them():
    values = values_of("findings-f1", ["Nodule."], ["Nodule."])
    corpus = {k: v[0] for k, v in corpus_of(values).items()}
    assert np.isnan(corpus["micro-5"])
    assert np.isnan(corpus["macro-5"])
    assert corpus["micro-13"] == corpus["macro-13"] == 1.0


LAZY = {
    "empty": "",
    "always normal": "The heart and lungs are normal. No effusion or pneumothorax.",
    "repeated words": "lungs " * 20,
}


@pytest.mark.parametrize("lazy", LAZY.values(), ids=LAZY)
def test_a_lazy_report_gets_nothing_where_the_reference_states_a_finding(lazy):
    """By hand: no candidate states any of the findings, so no true positive exists."""
    references = ["Small effusion.", "Rib fracture.", "Possible pneumonia. PICC line."]
    values = values_of("findings-f1", [lazy] * 3, references)
    assert [column.tolist() for column in values.columns] == [[0.0] * 3] * 3
    corpus = {k: v[0] for k, v in corpus_of(values).items()}
    assert find_metric("findings-f1").primary == "micro-13"
    assert [corpus[f"micro-{count}"] for count in (13, 14, 5)] == [0, 0, 0]


def test_no_lazy_report_leads_because_most_studies_are_normal():
    """By hand: 1 hit, 1 extra, 1 missed among the findings of 2 of 20 studies."""
    references = ["Small effusion.", "Cardiomegaly."] + ["The lungs are clear."] * 18
    real = ["Small effusion.", "The lungs are clear."] + ["Edema."] + ["The lungs are clear."] * 17
    primary = {
        name: corpus_of(values_of("findings-f1", candidates, references))["micro-13"][0]
        for name, candidates in {"real": real, **{n: [t] * 20 for n, t in LAZY.items()}}.items()
    }
    assert primary == pytest.approx({"real": 0.5, **dict.fromkeys(LAZY, 0.0)})


def test_an_empty_report_has_no_label_and_scores_0_against_a_normal_reference():
    for lazy in ("", " \n", "lungs " * 20):
        assert _one("findings-f1", lazy, "The lungs are clear.") == [0.0, 0.0, 0.0]
    assert _one("findings-f1", "Normal heart.", "The lungs are clear.") == [1.0, 1.0, 1.0]


def test_keeps_the_contract_under_every_policy():
    check_metric("findings-f1(uncertain=negative,unmentioned=ignored)")
