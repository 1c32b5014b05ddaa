"""What the kinds that deny, state and add findings make of a report."""

import pytest

from tests.perturb.kinds.changed import changed
from vlscore.perturb import alike
from vlscore.perturb.lexicons import false_findings

DENIED = {
    "There is a small left pleural effusion.": {"There is no left pleural effusion."},
    "Small left pleural effusion.": {"No left pleural effusion."},
    "There are multiple calcified granulomas.": {"There are no calcified granulomas."},
    "A few calcified granulomas are seen.": {"No calcified granulomas are seen."},
    "An apical opacity is seen.": {"No apical opacity is seen."},
    "Left lower lobe consolidation.": {"No left lower lobe consolidation."},
    "Old left rib fractures are noted.": {"No left rib fractures are noted."},
    "Blunting of the left costophrenic angle.": {"No blunting of the left costophrenic angle."},
    "Degenerative changes of the thoracic spine.": {
        "No degenerative changes of the thoracic spine."
    },
    "Scoliosis.": {"No scoliosis."},
    "Pneumothorax": {"No pneumothorax"},
    # Where the sentence has a copula, the denial stands there.
    "The heart is mildly enlarged.": {"The heart is not enlarged."},
    "The cardiac silhouette is slightly enlarged.": {"The cardiac silhouette is not enlarged."},
    "The left hemidiaphragm is elevated.": {"The left hemidiaphragm is not elevated."},
    "The lungs are hyperinflated.": {"The lungs are not hyperinflated."},
    "The aorta is tortuous.": {"The aorta is not tortuous."},
    # As the report is written.
    "MILD PULMONARY EDEMA.": {"NO PULMONARY EDEMA."},
    "THE HEART IS MILDLY ENLARGED.": {"THE HEART IS NOT ENLARGED."},
    "there is mild edema .": {"there is no edema ."},
    "1. Mild edema.\n2. Clear lungs.": {"1. No edema.\n2. Clear lungs."},
    "XXXX opacity in the left base.": {"No XXXX opacity in the left base."},
    # One finding at a time.
    "Mild edema. Right effusion.": {"No edema. Right effusion.", "Mild edema. No right effusion."},
}

NOT_DENIED = [
    # More than one finding, or more than a finding.
    "Small effusion and mild edema.",
    "Effusion with atelectasis.",
    "Small effusion without pneumothorax.",
    "Emphysema, stable from prior.",
    "Left lower lobe opacity, which may represent pneumonia.",
    # Stated again, or spoken of.
    "Mild cardiomegaly. IMPRESSION: Cardiomegaly.",
    "Small left effusion. Impression: small left effusion.",
    "Opacity in the left base. This may represent atelectasis.",
    "Right lower lobe pneumonia. This is new.",
    # Nothing is stated, or nothing that a reader would miss.
    "No effusion.",
    "Possible effusion.",
    "History of pneumonia.",
    "A PICC line is present.",
]

STATED = {
    "No pleural effusion.": {"There is a pleural effusion."},
    "There is no pneumothorax.": {"There is a pneumothorax."},
    "There are no effusions.": {"There are effusions."},
    "No opacities.": {"There are opacities."},
    "No pneumonia.": {"There is pneumonia."},
    "No hilar adenopathy.": {"There is hilar adenopathy."},
    "There is no infiltrate.": {"There is an infiltrate."},
    "There is no displaced rib fracture.": {"There is a displaced rib fracture."},
    "No left pleural effusion.": {"There is a left pleural effusion."},
    "No large effusion.": {"There is a large effusion."},
    "No definite nodule.": {"There is a nodule."},
    "No visible pneumothorax.": {"There is a pneumothorax."},
    "No evidence of pneumonia.": {"There is evidence of pneumonia."},
    "There is no evidence of acute fracture.": {"There is evidence of an acute fracture."},
    "No focal consolidation is seen.": {"Focal consolidation is seen."},
    "No pleural effusions are seen.": {"Pleural effusions are seen."},
    "The heart is not enlarged.": {"The heart is enlarged."},
    "The aorta is not tortuous.": {"The aorta is tortuous."},
    # As the report is written.
    "NO PNEUMOTHORAX.": {"THERE IS A PNEUMOTHORAX."},
    "no edema .": {"there is edema ."},
    "1. No pneumothorax.\n2. Mild edema.": {"1. There is a pneumothorax.\n2. Mild edema."},
    # One denial at a time.
    "No edema. No pneumothorax.": {
        "There is edema. No pneumothorax.",
        "No edema. There is a pneumothorax.",
    },
}

NOT_STATED = [
    # Lists, repetitions, generalities.
    "No effusion, pneumothorax or consolidation.",
    "No effusion or pneumothorax.",
    "No suspicious nodules or masses.",
    "No pneumothorax. No right pneumothorax.",
    "FINDINGS: No edema. IMPRESSION: No edema.",
    "No acute abnormality.",
    # More than a denial, or none.
    "No pneumothorax, but small effusion.",
    "No pneumothorax after biopsy.",
    "Heart size is normal.",
    "Mild edema.",
    "Possible pneumonia.",
    "History: no pneumonia.",
]


@pytest.mark.parametrize(("report", "expected"), DENIED.items())
def test_findings_that_are_denied(report, expected):
    assert changed("negate-finding", report) == expected


@pytest.mark.parametrize("report", NOT_DENIED)
def test_findings_that_are_not_denied(report):
    assert changed("negate-finding", report) == set()


@pytest.mark.parametrize(("report", "expected"), STATED.items())
def test_denials_that_are_stated(report, expected):
    assert changed("affirm-finding", report) == expected


@pytest.mark.parametrize("report", NOT_STATED)
def test_denials_that_stay(report):
    assert changed("affirm-finding", report) == set()


def _addable(*mentioned: str) -> set[str]:
    """The sentences of the table that speak of nothing mentioned, nor of its family."""
    families = alike().same
    return {
        sentence
        for added, finding in false_findings().items()
        if finding.unless.union([added], families.get(added, ())).isdisjoint(mentioned)
        for sentence in finding.sentences
    }


ADDED = {
    "No pneumothorax.": ({"pneumothorax"}, "No pneumothorax. {}"),
    "There is mild cardiomegaly.": ({"cardiomegaly"}, "There is mild cardiomegaly. {}"),
    "Possible left effusion. No acute abnormality.": (
        {"pleural_effusion", "acute_abnormality"},
        "Possible left effusion. {} No acute abnormality.",
    ),
    "PA and lateral views. Mild edema.": ({"edema"}, "PA and lateral views. Mild edema. {}"),
    "mild edema .": ({"edema"}, "mild edema . {}"),
    "MILD EDEMA.": ({"edema"}, "MILD EDEMA. {}"),
}


@pytest.mark.parametrize(("report", "mentioned", "frame"), [(r, *e) for r, e in ADDED.items()])
def test_only_what_is_unmentioned_is_added_and_where_it_belongs(report, mentioned, frame):
    sentences = _addable(*mentioned)
    if report.islower():
        sentences = {sentence.lower().replace(".", " .") for sentence in sentences}
    if report.isupper():
        sentences = {sentence.upper() for sentence in sentences}
    found = changed("add-false-finding", report)
    assert found
    # What denies all that is acute makes room for a finding that is.
    roomy = frame.replace("No acute", "No other acute")
    assert found <= {f.format(sentence) for sentence in sentences for f in (frame, roomy)}
    assert len(found) > len(sentences) / 2


@pytest.mark.parametrize(
    "report",
    [
        "Cardiomegaly",
        "History of cancer.",
        "PA and lateral views of the chest.",
        "Left knee: clear.",
        # It would part a sentence from the one that leans on it.
        "Left base opacity. This may be atelectasis. Recommend CT.",
    ],
)
def test_nothing_is_added_where_it_has_no_place(report):
    assert changed("add-false-finding", report) == set()
