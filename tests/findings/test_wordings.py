"""How reports word seven findings that are easily misread, in sentences written by us.

Each line of `data/wordings.jsonl` has a sentence, an observation, and whether a radiologist who
reads that sentence would say that the patient has it now, stated or likely.
"""

import json
from pathlib import Path

import pytest

from vlscore.findings import extract

LINES = (Path(__file__).parent / "data" / "wordings.jsonl").read_text(encoding="utf-8")
WORDINGS = [json.loads(line) for line in LINES.splitlines()]


@pytest.mark.parametrize("observation", sorted({w["observation"] for w in WORDINGS}))
def test_sentences_are_read_as_a_radiologist_means_them(observation: str) -> None:
    own = [w for w in WORDINGS if w["observation"] == observation]
    misread = [
        wording["text"]
        for wording in own
        if wording["present"]
        != any(f.observation == observation and f.is_likely for f in extract(wording["text"]))
    ]
    assert misread == []
    assert {wording["present"] for wording in own} >= {True}


@pytest.mark.parametrize(
    ("text", "observations"),
    [
        ("Biapical fibronodular scarring.", {"scar", "nodule"}),
        ("Right pleural effusion versus thickening.", {"pleural_effusion", "pleural_thickening"}),
        ("Thyroid nodule.", {"extrathoracic_lesion"}),
        ("Lower extremity edema.", {"soft_tissue_edema"}),
        ("Multiple pulmonary metastatic nodules.", {"neoplasm", "nodule"}),
    ],
)
def test_what_a_phrase_names(text: str, observations: set[str]) -> None:
    assert {finding.observation for finding in extract(text)} == observations


def test_a_removed_device_does_not_deny_the_finding_beside_it() -> None:
    found = {f.observation: f.is_present for f in extract("Small pneumothorax, PICC removed.")}
    assert found == {"pneumothorax": True, "catheter": False}
