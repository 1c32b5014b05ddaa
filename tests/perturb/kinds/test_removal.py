"""Which sentences the removing kinds take out, and what they leave behind."""

import pytest

from tests.perturb.kinds.changed import changed

PATHOLOGY = {
    "Small left effusion. The heart is normal.": {"The heart is normal."},
    "Heart size is normal. Mild edema is present.": {"Heart size is normal."},
    "Stable cardiomegaly. No effusion. Clear lungs.": {"No effusion. Clear lungs."},
    "Mild cardiomegaly. Small effusion.": {"Small effusion.", "Mild cardiomegaly."},
    "Left effusion. Right effusion. No edema.": {
        "Right effusion. No edema.",
        "Left effusion. No edema.",
    },
    "MILD EDEMA. NO EFFUSION.": {"NO EFFUSION."},
    "there is a small effusion . heart size is normal .": {"heart size is normal ."},
    # All that state it again, and all that speak of it, go with it.
    "Small left effusion. No pneumothorax. Small left effusion is again seen.": {
        "No pneumothorax."
    },
    "Left effusion. Bilateral effusions are seen. No edema.": {"No edema."},
    "FINDINGS: Left lower lobe opacity. Heart is normal. IMPRESSION: Left lower lobe pneumonia. "
    "No edema.": {"FINDINGS: Heart is normal. IMPRESSION: No edema."},
    "Opacity in the left base. This may represent atelectasis. No effusion.": {"No effusion."},
    "Cardiomegaly. It is unchanged. No effusion.": {"No effusion."},
    "Right upper lobe nodule. Recommend CT. Heart size is normal.": {"Heart size is normal."},
    # List numbers close up; lines and headers stay.
    "1. Small effusion. 2. Normal heart. 3. No edema.": {"1. Normal heart. 2. No edema."},
    "1. Normal heart.\n2. Small effusion.\n3. No edema.": {"1. Normal heart.\n2. No edema."},
    "1. Mild edema.\n\n2. No effusion.\n\n3. Cardiomegaly.": {
        "1. No effusion.\n\n2. Cardiomegaly.",
        "1. Mild edema.\n\n2. No effusion.",
    },
    "Scoliosis. Rib fracture. Clear lungs. IMPRESSION: 1. Scoliosis. 2. Clear lungs.": {
        "Rib fracture. Clear lungs. IMPRESSION: 1. Clear lungs.",
        "Scoliosis. Clear lungs. IMPRESSION: 1. Scoliosis. 2. Clear lungs.",
    },
}

NO_PATHOLOGY = [
    "Mild cardiomegaly.",
    "No effusion. No pneumothorax.",
    "Possible pneumonia. No effusion.",
    "History of effusion. Heart is normal.",
    "Low lung volumes. No effusion.",
    "Right PICC line. Heart is normal.",
    "Sternotomy wires are intact. Heart is normal.",
    # Half a sentence would stay, or a section without a sentence.
    "Left effusion; no pneumothorax. Heart is normal.",
    "FINDINGS: Mild cardiomegaly. No effusion. IMPRESSION: Mild cardiomegaly.",
    # So often that the report would be left without its subject.
    "Mild edema. Edema again. Still edema. More edema. No effusion.",
]

INSIGNIFICANT = {
    "PA and lateral views of the chest were obtained. Small effusion.": {"Small effusion."},
    "Single frontal view of the chest. No effusion. The heart is normal.": {
        "No effusion. The heart is normal."
    },
    "Small effusion. Findings were discussed with the referring physician at 3 pm.": {
        "Small effusion."
    },
    "Small effusion. Recommend clinical correlation.": {"Small effusion."},
    "Heart is normal. Follow-up recommended.": {"Heart is normal."},
    "PORTABLE VIEW OF THE CHEST. MILD EDEMA.": {"MILD EDEMA."},
    "pa and lateral views of the chest . mild edema .": {"mild edema ."},
    "1. Mild edema.\n2. Recommend clinical correlation.\n3. No effusion.": {
        "1. Mild edema.\n2. No effusion."
    },
    "PA view of the chest. Mild edema. Dr. Smith was informed by telephone.": {
        "Mild edema. Dr. Smith was informed by telephone.",
        "PA view of the chest. Mild edema.",
    },
}

NOTHING_INSIGNIFICANT = [
    "Small effusion. No edema.",
    # They find something, or are all there is.
    "Portable view shows a small effusion. Heart is normal.",
    "Mild edema. Recommend follow-up CT for the nodule.",
    "Findings were discussed: there is a pneumothorax. Heart is normal.",
    "PA and lateral views of the chest.",
    "INDICATION: Cough. FINDINGS: Small effusion.",
]

NEGATIVES = {
    "Small effusion. Heart is normal. No edema.": {"Small effusion."},
    "No effusion. Mild edema. Heart is normal.": {"Mild edema."},
    "no effusion . mild edema .": {"mild edema ."},
    "MILD EDEMA. NO EFFUSION, PNEUMOTHORAX OR CONSOLIDATION.": {"MILD EDEMA."},
    "Mild edema.\nNo effusion.": {"Mild edema."},
    "1. Mild edema.\n2. No effusion.\n3. Cardiomegaly.": {"1. Mild edema.\n2. Cardiomegaly."},
    "FINDINGS: Mild edema. No effusion. Heart is normal. IMPRESSION: Edema. No pneumonia.": {
        "FINDINGS: Mild edema. IMPRESSION: Edema."
    },
    # Sentences that also say what is there stay whole.
    "Small effusion, no pneumothorax. No edema.": {"Small effusion, no pneumothorax."},
    "Small effusion without pneumothorax. No edema.": {"Small effusion without pneumothorax."},
    "Mild edema. No change in small effusion. Clear lungs.": {
        "Mild edema. No change in small effusion."
    },
    "Pneumothorax has resolved. Small effusion. Heart is normal.": {
        "Pneumothorax has resolved. Small effusion."
    },
}

NO_NEGATIVES = [
    "Small effusion.",
    "Small effusion. Mild edema.",
    "Small effusion. Heart is normal but there is mild edema.",
    "No effusion. Heart is normal.",
    "Possible pneumonia. No effusion.",
    "FINDINGS: Small effusion. IMPRESSION: No edema.",
    "Right PICC line. No effusion.",
]

REMOVED = [
    *(("remove-pathology", report, texts) for report, texts in PATHOLOGY.items()),
    *(("remove-insignificant", report, texts) for report, texts in INSIGNIFICANT.items()),
    *(("unmention-negatives", report, texts) for report, texts in NEGATIVES.items()),
]
KEPT = [
    *(("remove-pathology", report) for report in NO_PATHOLOGY),
    *(("remove-insignificant", report) for report in NOTHING_INSIGNIFICANT),
    *(("unmention-negatives", report) for report in NO_NEGATIVES),
]


@pytest.mark.parametrize(("name", "report", "expected"), REMOVED)
def test_sentences_that_go(name, report, expected):
    assert changed(name, report) == expected


@pytest.mark.parametrize(("name", "report"), KEPT)
def test_sentences_that_stay(name, report):
    assert changed(name, report) == set()
