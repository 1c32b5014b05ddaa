"""MIRQI counted by hand from its definition, and its faults shown."""

import pytest

from tests.metrics.contract import values_of
from vlscore.errors import InvalidSetting

WEIGHT, ATTRIBUTES = 0.8, 0.3


def _one(candidate, reference, name="mirqi"):
    f, precision, recall = (c[0] for c in values_of(name, [candidate], [reference]).columns)
    return f, precision, recall


def test_hits_and_contradictions_counted_by_hand():
    # Effusion hits, with one of the reference's two attributes; the reference denies pneumothorax;
    # the candidate denies the reference's edema; both deny a fracture.
    reference = "Small left effusion. No pneumothorax. Edema. No fracture."
    candidate = "Left effusion. Pneumothorax. No edema. No fracture."
    tp, fp, fn, tn = 1 - ATTRIBUTES + ATTRIBUTES / 2, 1, 1, 1
    precision = WEIGHT * tp / (tp + fp) + (1 - WEIGHT) * tn / (tn + fn)
    recall = WEIGHT * tp / (tp + fn) + (1 - WEIGHT) * tn / (tn + fp)
    f = 2 * precision * recall / (precision + recall)
    assert _one(candidate, reference) == pytest.approx((f, precision, recall))


def test_reports_that_state_nothing_agree_and_one_that_states_something_alone_has_nothing():
    assert _one("", "") == (1.0, 1.0, 1.0)
    assert _one("No effusion.", "No edema.") == (1.0, 1.0, 1.0)
    assert _one("Effusion.", "No edema.") == (0.0, 0.0, 0.0)
    assert _one("", "Effusion.") == (0.0, 0.0, 0.0)


def test_its_faults_are_kept_what_is_left_out_or_invented_is_no_error():
    reference = "Small left effusion. Edema. Cardiomegaly. Nodule."
    assert _one("Small left effusion.", reference) == (1.0, 1.0, 1.0)
    assert _one("Edema. Pneumothorax. Fracture. Pneumonia.", reference) == (1.0, 1.0, 1.0)


def test_its_faults_are_kept_a_report_that_differs_by_side_contradicts_itself():
    report = "No right effusion. Small left effusion."
    _, precision, recall = _one(report, report)
    # tn 1 from the denial, fp 1 from the statement, which meets the denial first.
    assert (precision, recall) == pytest.approx((0.2, 0.1))


def test_a_doubted_finding_counts_as_stated():
    assert _one("Possible pneumonia.", "Pneumonia.")[0] == 1.0


def test_weights_lie_between_0_and_1():
    with pytest.raises(InvalidSetting, match="weight from 0 to 1"):
        _one("Edema.", "Edema.", "mirqi(attributes=1.5)")
    texts = ("Left effusion. No edema. Fracture.", "Effusion. No edema. No fracture.")
    # Without attributes: a hit and a contradiction; with positive=1 the denials do not count.
    assert _one(*texts, "mirqi(attributes=0.0,positive=1.0)") == pytest.approx((2 / 3, 1 / 2, 1))
