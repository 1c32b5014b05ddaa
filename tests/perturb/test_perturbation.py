"""Edits and the records that hold them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.perturb import Change, Edit, ParsedReport, apply_edits
from vlscore.perturb.consistency import consistent


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], "left effusion"),
        ([Edit(0, 4, "right")], "right effusion"),
        ([Edit(0, 0, "small ")], "small left effusion"),
        ([Edit(13, 13, ".")], "left effusion."),
        ([Edit(0, 5, ""), Edit(5, 5, "no ")], "no effusion"),
        ([Edit(0, 4, "right"), Edit(5, 13, "edema")], "right edema"),
    ],
)
def test_applying_edits(edits, expected):
    assert apply_edits("left effusion", edits) == expected


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, 99, "")],
        [Edit(-1, 2, "")],
        [Edit(3, 2, "")],
        [Edit(0, 4, "x"), Edit(3, 5, "y")],
        [Edit(5, 6, "x"), Edit(0, 1, "y")],
    ],
)
def test_edits_that_do_not_fit_are_refused(edits):
    with pytest.raises(ValueError, match="overlaps the edit before it or leaves the text"):
        apply_edits("left effusion", edits)


@given(st.text(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.text()), max_size=5))
def test_any_changes_that_are_changes_can_be_applied(text, proposed):
    edits = [Edit(start, start + length, words) for start, length, words in proposed]
    fit = [edit for edit in edits if edit.end <= len(text)]
    change, reason = consistent(ParsedReport.read(text), Change(tuple(fit), "rule"))
    if change is None:
        assert reason
        return
    grown = sum(len(e.replacement) - (e.end - e.start) for e in change.edits)
    assert len(apply_edits(text, change.edits)) == len(text) + grown
