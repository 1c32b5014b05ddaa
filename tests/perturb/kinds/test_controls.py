"""What the kinds that a metric should not notice make of a report."""

import pytest

from tests.perturb.kinds.changed import changed
from vlscore.perturb import default_standard_normal

MASKED = {
    "There is a small left effusion.": {
        "[UNK] is a small left effusion.",
        "There [UNK] a small left effusion.",
        "There is [UNK] small left effusion.",
    },
    "The heart is normal in size.": {"[UNK] heart is normal in size."},
    "THE HEART IS ENLARGED.": {"[UNK] HEART IS ENLARGED."},
    "No effusion. The lungs are clear.": {"No effusion. [UNK] lungs are clear."},
    "There is no evidence of pneumothorax.": {
        "[UNK] is no evidence of pneumothorax.",
        "There [UNK] no evidence of pneumothorax.",
    },
}
NOT_MASKED = ["Small left effusion.", "Effusion", "No edema, pneumothorax or consolidation."]

REPHRASED = {
    "There is no pleural effusion.": {
        "There is no evidence of pleural effusion.",
        "No evidence of pleural effusion.",
    },
    "Negative for pneumothorax.": {"No evidence of pneumothorax."},
    "No pleural effusion or pneumothorax.": {"No pneumothorax or pleural effusion."},
    "THE LUNGS ARE CLEAR.": {"LUNGS ARE CLEAR."},
    "Mild cardiomegaly.": {"Mild cardiac enlargement.", "Mild enlargement of the heart."},
    "Bony structures are intact.": {"Osseous structures are intact."},
    "An osseous abnormality.": {"A bony abnormality."},
    "An air space opacity.": {"An airspace opacity."},
    "A left pleural effusion.": {"A left-sided pleural effusion."},
    "Aortic tortuosity is mild.": {"Tortuosity of the aorta is mild."},
    "There is elevation of the left hemidiaphragm.": {"There is left hemidiaphragm elevation."},
    "Degenerative changes of the thoracic spine.": {"Degenerative changes in the thoracic spine."},
    "Opacity consistent with pneumonia.": {
        "Opacity compatible with pneumonia.",
        "Opacity in keeping with pneumonia.",
    },
    "Heart size is normal.": {
        "Heart size is unremarkable.",
        "Heart size is within normal limits.",
        "The heart is normal in size.",
        "The heart size is normal.",
        "The heart size is within normal limits.",
    },
    "heart size normal .": {"heart size unremarkable .", "heart size within normal limits ."},
    # A phrase that would repeat a word of its sentence does not come.
    "Opacity may represent pneumonia, could represent atelectasis.": {
        "Opacity may reflect pneumonia, could represent atelectasis."
    },
}
NOT_REPHRASED = [
    "Small left effusion.",
    "Normal heart.",
    "A bibasilaris variant.",
    "Effusion",
]

SHUFFLED = {
    "Small effusion. Heart is normal.": {"Heart is normal. Small effusion."},
    "MILD EDEMA. NO EFFUSION.": {"NO EFFUSION. MILD EDEMA."},
    "small effusion . heart is normal .": {"heart is normal . small effusion ."},
    "Small effusion. Heart is normal": {"Heart is normal. Small effusion."},
    "Mild edema.  No effusion.": {"No effusion.  Mild edema."},
    "Mild edema. No effusion. Heart is normal.": {
        "Mild edema. Heart is normal. No effusion.",
        "No effusion. Mild edema. Heart is normal.",
        "No effusion. Heart is normal. Mild edema.",
        "Heart is normal. Mild edema. No effusion.",
        "Heart is normal. No effusion. Mild edema.",
    },
    # Within a section or item; what leans on the sentence before stays with it.
    "FINDINGS: Small effusion. Heart is normal. IMPRESSION: Effusion.": {
        "FINDINGS: Heart is normal. Small effusion. IMPRESSION: Effusion."
    },
    "1. Mild edema. No effusion.\n2. Clear lungs.": {
        "1. No effusion. Mild edema.\n2. Clear lungs."
    },
    "Opacity in the left base. This may represent atelectasis. No effusion.": {
        "No effusion. Opacity in the left base. This may represent atelectasis."
    },
    "Mild edema. No effusion. However, the heart is big.": {
        "No effusion. However, the heart is big. Mild edema."
    },
}
NOT_SHUFFLED = [
    "Small effusion.",
    "Small effusion.\nHeart is normal.",
    "1. Small effusion. 2. Normal heart.",
    "No effusion. Otherwise the lungs are clear.",
    "Small effusion; heart is normal. No edema.",
    "Left knee: normal. Chest: clear.",
]

NORMAL = [
    "The heart is normal in size. The lungs are clear. No effusion.",
    "PA and lateral views of the chest. Heart size is normal. Lungs are clear.",
    "No effusion, pneumothorax or consolidation. Heart size is normal.",
    "Heart size is normal. Lungs are clear. The findings were discussed with the clinician.",
]
NOT_NORMAL = [
    "Heart size is normal. Mild edema.",
    "Heart size is normal. Lungs are clear. Possible nodule.",
    "Heart size is normal. Lungs may be clear.",
    "Heart size is normal. Lungs are clear. No change from prior.",
    "Heart size is normal. Lungs are clear. Recommend CT.",
    "Heart size is normal. Lungs are clear. Low lung volumes.",
    "The lungs are clear. There is a pacemaker.",
    "Heart size is normal.",
    default_standard_normal(),
]

CHANGED = [
    *(("replace-uninformative", report, texts) for report, texts in MASKED.items()),
    *(("paraphrase", report, texts) for report, texts in REPHRASED.items()),
    *(("shuffle-sentences", report, texts) for report, texts in SHUFFLED.items()),
    *(("standard-normal", report, {default_standard_normal()}) for report in NORMAL),
]
UNCHANGED = [
    *(("replace-uninformative", report) for report in NOT_MASKED),
    *(("paraphrase", report) for report in NOT_REPHRASED),
    *(("shuffle-sentences", report) for report in NOT_SHUFFLED),
    *(("standard-normal", report) for report in NOT_NORMAL),
]


@pytest.mark.parametrize(("name", "report", "expected"), CHANGED)
def test_what_comes_out(name, report, expected):
    assert changed(name, report) == expected


@pytest.mark.parametrize(("name", "report"), UNCHANGED)
def test_nothing_comes_out(name, report):
    assert changed(name, report) == set()


def test_the_standard_normal_report_is_written_as_the_report_is():
    standard = default_standard_normal()
    normal = "HEART SIZE IS NORMAL. LUNGS ARE CLEAR."
    tokens = "heart size is normal . lungs are clear ."
    assert changed("standard-normal", normal) == {standard.upper()}
    assert changed("standard-normal", tokens) == {standard.lower().replace(".", " .")}
