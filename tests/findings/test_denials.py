"""What summary statements deny without naming it."""

import pytest

from vlscore.findings import Denial, extract, load_lexicon


def denials(report: str) -> list[Denial]:
    return list(extract(report).denials)


@pytest.mark.parametrize(
    ("report", "scopes"),
    [
        ("Normal chest.", {"chest"}),
        ("Unremarkable views of the chest.", {"chest"}),
        ("Chest is normal.", {"chest"}),
        ("No abnormality.", {"chest"}),
        ("No evidence of active disease.", {"chest"}),
        ("No acute cardiopulmonary abnormality.", {"cardiopulmonary"}),
        (
            "No acute or active cardiac, pulmonary or pleural disease.",
            {"heart", "lungs", "pleura"},
        ),
        ("The pleural spaces show no acute abnormality.", {"pleura"}),
        ("Lungs are hypoinflated but clear.", {"lungs"}),
        ("Lungs: clear. Heart: normal.", {"lungs", "heart"}),
        ("No acute bony abnormality.", {"bones"}),
        ("No effusion or acute osseous abnormality.", {"bones"}),
        ("Heart and mediastinum are normal.", {"heart", "mediastinum"}),
        ("| Pleura | normal |", {"pleura"}),
    ],
)
def test_scope(report: str, scopes: set[str]) -> None:
    assert {d.scope for d in denials(report)} == scopes


@pytest.mark.parametrize(
    "report",
    [
        "The heart is not normal.",
        "No pneumothorax.",
        "No interstitial lung disease.",
        "No airspace disease.",
        "Acute cardiopulmonary disease.",
        "History: normal chest radiograph.",
        "The heart is enlarged, otherwise normal mediastinum cannot be excluded.",
        "The trachea is midline.",
    ],
)
def test_what_denies_no_region_of_heart_or_lungs(report: str) -> None:
    assert not {d.scope for d in denials(report)} & {"chest", "cardiopulmonary", "lungs", "heart"}


def test_acute_disease_leaves_old_findings_open() -> None:
    report = "No acute cardiopulmonary abnormality."
    assert extract(report).denying("pneumothorax")
    assert not extract(report).denying("scar")
    assert extract("The lungs are clear.").denying("scar")


def test_a_denial_stands_at_its_words() -> None:
    report = "Small effusion. The lungs are clear."
    (denial,) = extract(report).denying("nodule")
    assert denial.span.of(report) == "lungs are clear"
    assert extract(report).sentences[1].denials == (denial,)
    assert not denial.acute


def test_a_normal_chest_denies_all_but_devices_and_artefacts() -> None:
    lexicon = load_lexicon()
    outside = set(lexicon.observations) - lexicon.coverage.any["chest"]
    labels = {lexicon.observations[name].chexpert for name in outside}
    assert labels <= {None, "Support Devices"}
    assert "catheter" in outside
