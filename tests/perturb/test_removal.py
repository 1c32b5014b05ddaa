"""Sentences that go leave no trace: no double space, no gap in a list, no empty section."""

import pytest

from tests.perturb.contract import read
from vlscore.perturb import apply_edits, remove_sentences

PLAIN = "Mild edema. No effusion. Clear lungs."
SECTIONS = "FINDINGS: Mild edema.\nNo effusion.\nIMPRESSION: Clear lungs."
ITEMS = "1. Mild edema.\n2. No effusion.\n3. Clear lungs.\n4. Scoliosis."
LONG_ITEM = "1. Mild edema. No effusion.\n2. Clear lungs."

REMOVED = [
    (PLAIN, [0], "No effusion. Clear lungs."),
    (PLAIN, [1], "Mild edema. Clear lungs."),
    (PLAIN, [2], "Mild edema. No effusion."),
    (PLAIN, [0, 2], "No effusion."),
    (PLAIN, [1, 0, 1], "Clear lungs."),
    ("  Mild edema. No effusion.  ", [0], "  No effusion.  "),
    ("mild edema . no effusion . clear lungs .", [1], "mild edema . clear lungs ."),
    ("Mild edema.\n\nNo effusion.\n\nClear lungs.", [0], "No effusion.\n\nClear lungs."),
    ("Mild edema.\n\nNo effusion.\n\nClear lungs.", [1], "Mild edema.\n\nClear lungs."),
    ("Mild edema.\r\nNo effusion.\r\nClear.\r\n", [1], "Mild edema.\r\nClear.\r\n"),
    (SECTIONS, [0], "FINDINGS: No effusion.\nIMPRESSION: Clear lungs."),
    (SECTIONS, [1], "FINDINGS: Mild edema.\nIMPRESSION: Clear lungs."),
    (ITEMS, [1], "1. Mild edema.\n2. Clear lungs.\n3. Scoliosis."),
    (ITEMS, [0, 2], "1. No effusion.\n2. Scoliosis."),
    (ITEMS, [1, 2], "1. Mild edema.\n2. Scoliosis."),
    (LONG_ITEM, [0], "1. No effusion.\n2. Clear lungs."),
    (LONG_ITEM, [1], "1. Mild edema.\n2. Clear lungs."),
    (LONG_ITEM, [0, 1], "1. Clear lungs."),
    ("- Mild edema.\n- No effusion.\n- Clear.", [1], "- Mild edema.\n- Clear."),
    ("9. Mild edema.\n10. No effusion.\n11. Clear.", [1], "9. Mild edema.\n10. Clear."),
    # Each list is numbered by itself.
    (
        "FINDINGS: 1. Mild edema. 2. No effusion. IMPRESSION: 1. Edema. 2. No effusion.",
        [0],
        "FINDINGS: 1. No effusion. IMPRESSION: 1. Edema. 2. No effusion.",
    ),
]

NOT_REMOVED = [
    (PLAIN, []),
    (PLAIN, [0, 1, 2]),
    (SECTIONS, [2]),
    (SECTIONS, [0, 1]),
    ("Mild edema; no effusion. Clear lungs.", [0]),
    ("Mild edema; no effusion. Clear lungs.", [1]),
]


@pytest.mark.parametrize(("report", "gone", "expected"), REMOVED)
def test_what_stays(report, gone, expected):
    edits = remove_sentences(read(report), gone)
    assert edits is not None
    assert apply_edits(report, edits) == expected


@pytest.mark.parametrize(("report", "gone"), NOT_REMOVED)
def test_what_cannot_go(report, gone):
    assert remove_sentences(read(report), gone) is None
