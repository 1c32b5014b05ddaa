"""Precision, recall and F1 of labels, counted one by one and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.errors import InvalidSetting
from vlscore.evaluation import agreement
from vlscore.findings import CHEXPERT_LABELS, LabelPolicy

VALUES = st.sampled_from([1, 0, -1, None])
LABELS = st.fixed_dictionaries(dict.fromkeys(CHEXPERT_LABELS, VALUES))


def by_label(rows):
    return {row.label: row for row in rows}


def test_by_hand():
    theirs = [{"Edema": 1}, {"Edema": 0}, {"Edema": None}, {"Edema": -1}]
    ours = [{"Edema": 1}, {"Edema": 1}, {"Edema": 1}, {"Edema": 0}]
    row = by_label(agreement(theirs, ours))["Edema"]
    assert (row.n, row.given, row.found) == (4, 2, 3)
    assert (row.precision, row.recall) == (1 / 3, 1 / 2)
    assert row.f1.estimate == pytest.approx(0.4)
    row = by_label(agreement(theirs, ours, LabelPolicy("ignored", "ignored")))["Edema"]
    assert (row.n, row.given, row.found, row.recall) == (2, 1, 2, 1.0)
    row = by_label(agreement(theirs, ours, LabelPolicy("negative")))["Edema"]
    assert (row.n, row.given, row.found) == (4, 1, 3)


def test_a_label_that_never_occurs_has_no_f1_and_does_not_count_in_macro():
    theirs = [{"Edema": 1, "Fracture": 0}] * 3
    rows = by_label(agreement(theirs, theirs))
    assert math.isnan(rows["Fracture"].f1.estimate)
    assert rows["macro"].f1.estimate == 1.0
    assert "Pneumonia" not in rows
    assert "macro-5" in rows


def f1_of(pairs):
    """Counted one by one: F1 of (wanted, seen) pairs; None where there is nothing to find."""
    hits = sum(wanted and seen for wanted, seen in pairs)
    whole = sum(wanted + seen for wanted, seen in pairs)
    return 2 * hits / whole if whole else None


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=12))
def test_as_counted_one_by_one(pairs):
    theirs, ours = zip(*pairs, strict=True)
    rows = by_label(agreement(theirs, ours, LabelPolicy("positive"), resamples=20))
    marks = {
        name: [(t[name] in (1, -1), o[name] in (1, -1)) for t, o in pairs]
        for name in CHEXPERT_LABELS
    }
    each = {name: f1_of(own) for name, own in marks.items()}
    for name, f1 in each.items():
        estimate = rows[name].f1.estimate
        assert math.isnan(estimate) if f1 is None else estimate == pytest.approx(f1, abs=1e-12)
    micro = f1_of([pair for own in marks.values() for pair in own])
    defined = [f1 for f1 in each.values() if f1 is not None]
    if micro is None:
        assert math.isnan(rows["micro"].f1.estimate)
        assert math.isnan(rows["macro"].f1.estimate)
        return
    assert rows["micro"].f1.estimate == pytest.approx(micro, abs=1e-12)
    assert rows["macro"].f1.estimate == pytest.approx(sum(defined) / len(defined), abs=1e-12)


def test_intervals_are_those_of_resampled_reports():
    rng = np.random.default_rng(0)
    theirs = [{"Edema": int(v)} for v in rng.integers(0, 2, 200)]
    ours = [{"Edema": r["Edema"] ^ int(rng.random() < 0.2)} for r in theirs]
    row = by_label(agreement(theirs, ours, resamples=4000))["Edema"]
    y, z = (np.array([r["Edema"] for r in side]) for side in (theirs, ours))
    drawn = rng.integers(0, 200, (4000, 200))
    tp, one = (y & z)[drawn].sum(1), y[drawn].sum(1) + z[drawn].sum(1)
    low, high = np.quantile(2 * tp / one, [0.025, 0.975])
    assert row.f1.low == pytest.approx(low, abs=0.01)
    assert row.f1.high == pytest.approx(high, abs=0.01)
    assert row.f1.low < row.f1.estimate < row.f1.high


def test_other_policies_are_refused():
    with pytest.raises(InvalidSetting, match="keep, positive, negative or ignored"):
        LabelPolicy("maybe")
    with pytest.raises(InvalidSetting, match="unmentioned"):
        LabelPolicy("keep", "positive")
