"""Which grades `change-severity` changes, and where it leaves them alone."""

import pytest

from tests.perturb.kinds.changed import changed

REGRADED = {
    "There is a small left pleural effusion.": {"There is a large left pleural effusion."},
    "No change in small left effusion.": {"No change in large left effusion."},
    "Trace effusions.": {"Large effusions."},
    "The effusion is small.": {"The effusion is large."},
    "Tiny right apical pneumothorax.": {"Large right apical pneumothorax."},
    "Moderate right pleural effusion.": {"Small right pleural effusion."},
    "Subtle opacity in the right base.": {"Dense opacity in the right base."},
    "Small hiatal hernia. The heart is small.": {"Large hiatal hernia. The heart is small."},
    "Mild cardiomegaly.": {"Marked cardiomegaly.", "Severe cardiomegaly."},
    "Borderline cardiomegaly.": {"Marked cardiomegaly.", "Severe cardiomegaly."},
    "Cardiomegaly is mild.": {"Cardiomegaly is marked.", "Cardiomegaly is severe."},
    "Severe emphysema.": {"Mild emphysema.", "Minimal emphysema."},
    "There is moderate interstitial edema.": {"There is minimal interstitial edema."},
    # Adverbs stay adverbs.
    "The heart is mildly enlarged.": {
        "The heart is markedly enlarged.",
        "The heart is severely enlarged.",
    },
    "Heart is borderline enlarged.": {
        "Heart is markedly enlarged.",
        "Heart is severely enlarged.",
    },
    "Mildly tortuous aorta.": {"Markedly tortuous aorta.", "Severely tortuous aorta."},
    # A phrase of several words is one grade.
    "Small-to-moderate left effusion.": {"Large left effusion."},
    "Mild-to-moderate cardiomegaly.": {"Marked cardiomegaly.", "Severe cardiomegaly."},
    "The heart is mildly to moderately enlarged.": {
        "The heart is markedly enlarged.",
        "The heart is severely enlarged.",
    },
    "Moderate-sized hiatal hernia.": {"Small hiatal hernia.", "Tiny hiatal hernia."},
    # Capitals, tokens and articles.
    "THE HEART IS MODERATELY ENLARGED.": {"THE HEART IS MINIMALLY ENLARGED."},
    "A SMALL EFFUSION IS SEEN.": {"A LARGE EFFUSION IS SEEN."},
    "there is a mildly enlarged heart .": {
        "there is a markedly enlarged heart .",
        "there is a severely enlarged heart .",
    },
    "An extensive consolidation is present.": {
        "A minimal consolidation is present.",
        "A slight consolidation is present.",
    },
    # Every mention of the same grade of the same finding; no other grade, no other finding.
    "FINDINGS: Mild cardiomegaly. No edema. IMPRESSION: Mild cardiomegaly.": {
        "FINDINGS: Marked cardiomegaly. No edema. IMPRESSION: Marked cardiomegaly.",
        "FINDINGS: Severe cardiomegaly. No edema. IMPRESSION: Severe cardiomegaly.",
    },
    "Small effusion. IMPRESSION: Effusion, small in size.": {
        "Large effusion. IMPRESSION: Effusion, large in size."
    },
    "Small left effusion. Large right effusion.": {
        "Large left effusion. Large right effusion.",
        "Small left effusion. Small right effusion.",
        "Small left effusion. Tiny right effusion.",
    },
    "Small left effusion with mild edema.": {
        "Large left effusion with mild edema.",
        "Small left effusion with marked edema.",
        "Small left effusion with severe edema.",
    },
    "Small bilateral pleural effusions, left greater than right.": {
        "Large bilateral pleural effusions, left greater than right."
    },
    # What is denied beside it stays denied.
    "Small pneumothorax. No large effusion.": {"Large pneumothorax. No large effusion."},
    "Mild cardiomegaly without severe edema.": {
        "Marked cardiomegaly without severe edema.",
        "Severe cardiomegaly without severe edema.",
    },
}

UNGRADED = [
    # Denied, doubted, past, belittled.
    "No large effusion.",
    "There is no small pneumothorax.",
    "Not severe cardiomegaly.",
    "Possible mild edema.",
    "There may be a small left effusion.",
    "History of severe emphysema.",
    "HISTORY: Severe emphysema.",
    "Only mild cardiomegaly.",
    "Mild pulmonary edema, which may represent mild heart failure.",
    # Measured: another word would belie the number.
    "Small nodule measuring 5 mm.",
    "There is a small nodule. It measures 5 mm.",
    # They grade something else, or are the finding.
    "Small bore catheter.",
    "Small calcified granuloma.",
    "Small heart.",
    "Large body habitus.",
    "Mildly limited inspiration.",
    "Low lung volumes. Mildly rotated patient.",
    "Heart size is borderline.",
    "Heart is top normal to mildly enlarged.",
    # No grade at all.
    "There is a pleural effusion.",
    "Cardiomegaly",
    "Mild.",
]


@pytest.mark.parametrize(("report", "expected"), REGRADED.items())
def test_grades_that_change(report, expected):
    assert changed("change-severity", report) == expected


@pytest.mark.parametrize("report", UNGRADED)
def test_grades_that_stay(report):
    assert changed("change-severity", report) == set()
