"""Which places `change-location` moves, and where it leaves them alone."""

import pytest

from tests.perturb.kinds.changed import changed

MOVED = {
    "There is a small left pleural effusion.": {"There is a small right pleural effusion."},
    "No change in small left effusion.": {"No change in small right effusion."},
    "Left-sided pneumothorax.": {"Right-sided pneumothorax."},
    "Old left rib fractures.": {"Old right rib fractures."},
    "Elevated right hemidiaphragm.": {"Elevated left hemidiaphragm."},
    "The left costophrenic angle is blunted.": {"The right costophrenic angle is blunted."},
    "Mild dextroscoliosis of the thoracic spine.": {"Mild levoscoliosis of the thoracic spine."},
    "Bibasilar opacities.": {"Biapical opacities."},
    "Bilateral apical scarring.": {"Bilateral basilar scarring."},
    "Opacity in the upper lobe.": {"Opacity in the lower lobe."},
    "Patchy opacity at the left lung base.": {
        "Patchy opacity at the right lung base.",
        "Patchy opacity at the left lung apex.",
    },
    "Left effusion. Right pneumothorax.": {
        "Right effusion. Right pneumothorax.",
        "Left effusion. Left pneumothorax.",
    },
    # A lobe that the other side lacks becomes one that it has.
    "Right middle lobe pneumonia.": {
        "Right upper lobe pneumonia.",
        "Right lower lobe pneumonia.",
    },
    "Lingular atelectasis.": {"Right middle lobe atelectasis."},
    # Abbreviations, capitals, articles, masks.
    "LLL opacity.": {"RLL opacity.", "LUL opacity."},
    "Lt basilar scarring.": {"Rt basilar scarring.", "Lt apical scarring."},
    "THERE IS A LEFT APICAL PNEUMOTHORAX.": {
        "THERE IS A RIGHT APICAL PNEUMOTHORAX.",
        "THERE IS A LEFT BASILAR PNEUMOTHORAX.",
    },
    "Left Apical Opacity.": {"Right Apical Opacity.", "Left Basilar Opacity."},
    "An apical opacity is seen on the right.": {
        "An apical opacity is seen on the left.",
        "A basilar opacity is seen on the right.",
    },
    "AN APICAL OPACITY IS SEEN.": {"A BASILAR OPACITY IS SEEN."},
    "There is a lower lobe mass.": {"There is an upper lobe mass."},
    "A right upper lobe XXXX opacity.": {
        "A left upper lobe XXXX opacity.",
        "A right lower lobe XXXX opacity.",
    },
    # Whatever else the report says of the finding moves along.
    "FINDINGS: Small left effusion. No pneumothorax. IMPRESSION: Left effusion.": {
        "FINDINGS: Small right effusion. No pneumothorax. IMPRESSION: Right effusion."
    },
    "Right basilar opacity. IMPRESSION: RLL pneumonia.": {
        "Left basilar opacity. IMPRESSION: LLL pneumonia."
    },
    "Left effusion has decreased. Small left effusion remains.": {
        "Right effusion has decreased. Small right effusion remains."
    },
    "Left basilar opacity obscuring the left hemidiaphragm.": {
        "Right basilar opacity obscuring the right hemidiaphragm."
    },
    "Nodule projecting over the right seventh rib.": {
        "Nodule projecting over the left seventh rib."
    },
    "The opacity is seen in the right upper lobe, consistent with right upper lobe pneumonia.": {
        "The opacity is seen in the left upper lobe, consistent with left upper lobe pneumonia.",
        "The opacity is seen in the right lower lobe, consistent with right lower lobe pneumonia.",
    },
    # One place of two moves. Beside an effusion, which is at a base, no zone does.
    "Left effusion and right base opacity.": {
        "Right effusion and right base opacity.",
        "Left effusion and left base opacity.",
    },
    "An upper lobe nodule. A lower lobe mass.": {
        "A lower lobe nodule. A lower lobe mass.",
        "An upper lobe nodule. An upper lobe mass.",
    },
    # A denial in a list keeps nothing back; the denied findings have no side of their own.
    "No edema, pneumothorax or consolidation. Left rib fracture.": {
        "No edema, pneumothorax or consolidation. Right rib fracture."
    },
    # The other side is called clear: the zone may move, the side may not.
    "Left lower lobe consolidation. The right lung is clear.": {
        "Left upper lobe consolidation. The right lung is clear."
    },
    # Bases that collapse do not go to the apices.
    "Bibasilar atelectasis.": {"Bilateral midlung atelectasis."},
    "Atelectasis at the left lung base.": {
        "Atelectasis at the right lung base.",
        "Atelectasis at the left midlung.",
    },
    # An effusion is at the base in any case: its side may move, its zone may not.
    "Basilar right effusion.": {"Basilar left effusion."},
}

UNMOVED = [
    # Denied, doubted, past.
    "No left pleural effusion.",
    "There is no right apical pneumothorax.",
    "No left effusion, pneumothorax or consolidation.",
    "Left effusion has resolved.",
    "Possible left lower lobe pneumonia.",
    "There may be a small left effusion.",
    "Left lower lobe pneumonia cannot be excluded.",
    "History of right lung cancer.",
    "HISTORY: Left lower lobe pneumonia.",
    # Both sides, or one compared with the other.
    "Bilateral pleural effusions.",
    "Bilateral effusions, left greater than right.",
    "Left greater than right effusions.",
    "Asymmetric edema, right worse than left.",
    # The other side is spoken of.
    "Small left effusion. No right effusion.",
    "Right pneumothorax. No pneumothorax on the left side.",
    "There is no effusion on the left. There is an effusion on the right.",
    "Right effusion. The left costophrenic angle is sharp.",
    "Left effusion; right lung clear.",
    # The place is the organ's or the device's own.
    "The left ventricle is enlarged.",
    "Prominent right heart border.",
    "Right paratracheal mass.",
    "Cardiomegaly. Right-sided aortic arch.",
    "Left hiatal hernia.",
    "A lead ends in the right atrium. Mild edema.",
    # No place at all.
    "There is a small pleural effusion.",
    "Left.",
    "Effusion",
    # A title governs what follows.
    "Left knee: small effusion. Chest: clear.",
]


@pytest.mark.parametrize(("report", "expected"), MOVED.items())
def test_places_that_move(report, expected):
    assert changed("change-location", report) == expected


@pytest.mark.parametrize("report", UNMOVED)
def test_places_that_stay(report):
    assert changed("change-location", report) == set()
