"""CheXpert-style labels of whole reports."""

import pytest

from vlscore.findings import CHEXPERT_LABELS, chexpert_labels, extract


def test_every_label_is_given() -> None:
    assert tuple(chexpert_labels("")) == CHEXPERT_LABELS
    assert len(CHEXPERT_LABELS) == 14


@pytest.mark.parametrize(
    ("report", "label", "value"),
    [
        ("Small left pleural effusion.", "Pleural Effusion", 1),
        ("No pleural effusion.", "Pleural Effusion", 0),
        ("Possible pleural effusion.", "Pleural Effusion", -1),
        ("The lungs are clear.", "Pleural Effusion", None),
        ("Heart size is normal.", "Cardiomegaly", 0),
        ("Borderline cardiomegaly.", "Cardiomegaly", -1),
        ("Mild cardiomegaly.", "Cardiomegaly", 1),
        ("Right PICC line.", "Support Devices", 1),
        ("Old rib fractures.", "Fracture", 1),
        ("Mediastinum is normal.", "Enlarged Cardiomediastinum", 0),
        ("2 cm nodule.", "Lung Lesion", 1),
        ("Pulmonary vascular congestion.", "Edema", 1),
        ("Pleural thickening.", "Pleural Other", 1),
        ("Left lower lobe consolidation.", "Consolidation", 1),
        ("History of pneumonia.", "Pneumonia", None),
    ],
)
def test_label(report: str, label: str, value: int | None) -> None:
    assert chexpert_labels(report)[label] == value


@pytest.mark.parametrize(
    ("report", "value"),
    [
        ("Possible pneumonia. No pneumonia.", -1),
        ("No pneumonia in the right lung. Left lower lobe pneumonia.", 1),
        ("Left lower lobe pneumonia. Possible right pneumonia.", 1),
    ],
)
def test_strongest_mention_wins(report: str, value: int) -> None:
    assert chexpert_labels(report)["Pneumonia"] == value


@pytest.mark.parametrize(
    ("report", "value"),
    [
        ("No acute cardiopulmonary abnormality.", 1),
        ("Heart size is normal. The lungs are clear. PICC line in place.", 1),
        ("Possible pneumonia.", None),
        ("Small effusion.", None),
        ("", None),
        ("Lungs lungs lungs.", None),
        ("Comparison: none. Two views of the chest.", None),
    ],
)
def test_no_finding(report: str, value: int | None) -> None:
    assert chexpert_labels(report)["No Finding"] == value


def test_extracted_findings_may_be_given() -> None:
    report = "Small left effusion. No pneumothorax."
    assert chexpert_labels(extract(report)) == chexpert_labels(report)
