"""Claims of reports, and labels of findings for probes."""

import pytest

from vlscore.claims import claims_of, finding_of_label, labels_of
from vlscore.claims.claim import group_of


@pytest.mark.parametrize(
    ("report", "claims"),
    [
        ("Bilateral pleural effusions.", "pleural effusion+ / left+ / right+"),
        ("Heart size is normal. No pneumothorax.", "cardiomegaly- / pneumothorax-"),
        ("Possible pneumonia.", ""),
        ("Edema has increased since the prior study.", "edema+ / worse+"),
        ("Small right pleural effusion. Right effusion.", "pleural effusion+ / right+"),
        ("History of pneumonia.", ""),
        # A group of another name is claimed, too, but not denied.
        ("Nodule. No mass.", "nodule+ / lung lesion+ / mass-"),
    ],
)
def test_claims(report, claims):
    found = [
        f"{each.finding.split(', ')[-1]}{'+' if each.stated else '-'}" for each in claims_of(report)
    ]
    assert " / ".join(found) == claims
    assert [c.needs_prior for c in claims_of(report)] == ["worse" in c for c in found]


def test_groups_are_chexperts_labels_of_another_name():
    assert group_of("infiltrate") == "lung opacity"
    assert {group_of(name) for name in ("lung opacity", "edema", "nodule, left", "rash")} == {None}


def test_spans_are_the_words():
    report = "Heart size is normal. Small left pleural effusion."
    words = [each.span.of(report) for each in claims_of(report)]
    assert words[1:] == ["pleural effusion"] * 2


def test_labels():
    found = labels_of("Left pleural effusion. Possible edema. No pneumothorax. Cardiomegaly.")
    assert found["pleural effusion"] == found["pleural effusion, left"] == 1
    assert found["edema"] is None
    assert found["cardiomegaly"] == 1
    # Absent from the labels means 0.
    assert "pneumothorax" not in found
    assert "pleural effusion, right" not in found
    # An effusion without a side may be on either.
    assert labels_of("Pleural effusion.")["pleural effusion, left"] is None


def test_labels_of_tables():
    names = [
        "Pleural Effusion",
        "Effusion",
        "Infiltration",
        "Pleural_Thickening",
        "Support Devices",
    ]
    assert [finding_of_label(name) for name in names] == [
        "pleural effusion",
        "pleural effusion",
        "lung opacity",
        "pleural other",
        "support devices",
    ]
