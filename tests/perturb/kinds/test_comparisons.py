"""Which comparisons with a prior examination go, and which come."""

import pytest

from tests.perturb.kinds.changed import changed
from vlscore.perturb.kinds import comparisons
from vlscore.perturb.lexicons import statements

DROPPED = {
    "Stable cardiomegaly.": {"Cardiomegaly."},
    "STABLE CARDIOMEGALY.": {"CARDIOMEGALY."},
    "stable cardiomegaly . no effusion .": {"cardiomegaly . no effusion ."},
    "Worsening edema.": {"Edema."},
    "Unchanged small left effusion.": {"Small left effusion."},
    "Small left effusion, unchanged.": {"Small left effusion."},
    "No change in small left effusion.": {"Small left effusion."},
    "Interval increase in size of the left effusion.": {"Left effusion."},
    "There is a new left effusion.": {"There is a left effusion."},
    # The article follows the word that now stands after it.
    "A new opacity in the left base.": {"An opacity in the left base."},
    "An unchanged nodule is seen.": {"A nodule is seen."},
    "An increasing effusion.": {"An effusion."},
    "A STABLE OPACITY.": {"AN OPACITY."},
    # Predicates.
    "The effusion is unchanged.": {"The effusion is seen."},
    "The effusion is unchanged from the prior examination.": {"The effusion is seen."},
    "The nodule is stable since XXXX.": {"The nodule is seen."},
    "Left effusion is again seen.": {"Left effusion is seen."},
    "Cardiomegaly is again noted.": {"Cardiomegaly is noted."},
    "The heart is enlarged, stable compared to the prior examination.": {"The heart is enlarged."},
    # A sentence that only compares goes whole.
    "No interval change. Mild edema.": {"Mild edema."},
    "There has been no significant change since the prior study. Small effusion.": {
        "Small effusion."
    },
    # Every mention of the finding; no other finding.
    "FINDINGS: Stable cardiomegaly. IMPRESSION: Stable cardiomegaly.": {
        "FINDINGS: Cardiomegaly. IMPRESSION: Cardiomegaly."
    },
    "New effusion. No edema. New effusion.": {"Effusion. No edema. Effusion."},
    "Stable mild cardiomegaly and stable left effusion.": {
        "Mild cardiomegaly and stable left effusion.",
        "Stable mild cardiomegaly and left effusion.",
    },
    "No new opacity. Stable nodule.": {"No new opacity. Nodule."},
}

NOT_DROPPED = [
    "No new effusion.",
    "Possible new effusion.",
    "The pneumothorax has resolved.",
    # Without the comparison the sentence would say nothing, or hang in the air.
    "The effusion has increased.",
    "Edema has worsened in the interval.",
    "Cardiomegaly has not changed.",
    "Heart size is stable.",
    "Stable position of the PICC line.",
    "Stable appearance of the chest.",
    # Nothing compares.
    "Small left effusion.",
    "Old granulomatous disease.",
    "Stable.",
]

COMPARED = {
    "There is a small left pleural effusion.": {
        "There is a small left pleural effusion, new since the prior examination.",
        "There is a small left pleural effusion, increased since the prior examination.",
        "There is a small left pleural effusion, decreased since the prior examination.",
    },
    "Mild edema. No effusion.": {
        "Mild edema, new since the prior examination. No effusion.",
        "Mild edema, increased since the prior examination. No effusion.",
        "Mild edema, decreased since the prior examination. No effusion.",
    },
    "MILD EDEMA.": {
        "MILD EDEMA, NEW SINCE THE PRIOR EXAMINATION.",
        "MILD EDEMA, INCREASED SINCE THE PRIOR EXAMINATION.",
        "MILD EDEMA, DECREASED SINCE THE PRIOR EXAMINATION.",
    },
    "mild edema .": {
        "mild edema , new since the prior examination .",
        "mild edema , increased since the prior examination .",
        "mild edema , decreased since the prior examination .",
    },
    # A fracture neither grows nor shrinks.
    "Rib fracture.": {
        "Rib fracture, unchanged since the prior examination.",
        "Rib fracture, stable since the prior examination.",
    },
}

NOT_COMPARED = [
    # The report compares already, or says that it cannot.
    "Small effusion. Stable cardiomegaly.",
    "Comparison: none. Mild edema.",
    "No prior examination. Mild edema.",
    # The comparison could mean something else, or would contradict the sentence.
    "Small effusion and mild edema.",
    "Mild edema; no effusion.",
    "There is a left effusion which may be loculated.",
    "Right lower lobe opacity, consistent with pneumonia.",
    "Old rib fracture.",
    # Nothing is stated.
    "No effusion.",
    "Possible edema.",
    "History of effusion.",
    "Right PICC line in place.",
]


@pytest.mark.parametrize(("report", "expected"), DROPPED.items())
def test_comparisons_that_go(report, expected):
    assert changed("drop-comparison", report) == expected


@pytest.mark.parametrize("row", statements().compare.drop, ids=lambda row: row.example[0])
def test_a_row_changes_its_example_as_it_says(row, monkeypatch):
    before, after = row.example
    assert changed("drop-comparison", before) == {after}
    others = [each for each in comparisons._rows() if each[0] is not row]
    monkeypatch.setattr(comparisons, "_rows", lambda: others)
    assert changed("drop-comparison", before) != {after}


@pytest.mark.parametrize("report", NOT_DROPPED)
def test_comparisons_that_stay(report):
    assert changed("drop-comparison", report) == set()


@pytest.mark.parametrize(("report", "expected"), COMPARED.items())
def test_comparisons_that_come(report, expected):
    assert changed("invent-comparison", report) == expected


@pytest.mark.parametrize("report", NOT_COMPARED)
def test_no_comparison_where_it_would_not_fit(report):
    assert changed("invent-comparison", report) == set()
