"""ReXrank's manifest, in files made in its layout."""

import json
from pathlib import Path

import pytest

from vlscore.data import (
    TextPolicy,
    columns_of,
    open_studies,
    read_rows,
    select,
)
from vlscore.errors import Failure, InvalidTable

# The fields, their order and their quirks (NaN, slashes) are those of the official files.
PREDICTION = {
    "50051329": {
        "image_path": ["/p10/p1/s50051329/a.jpg", "/p10/p1/s50051329/b.jpg"],
        "section_findings": "The lungs are low in volume.\nThere is no pneumothorax.",
        "section_impression": "No acute process.",
        "frontal_lateral": ["lateral", "antero-posterior"],
        "split": "test",
        "subject_id": 1,
        "context": "Age:50-60.Gender:M.Indication: Cough.",
        "key_image_path": "/p10/p1/s50051329/b.jpg",
        "model_prediction": "Findings:Low lung volumes.Impression:No acute process.",
    },
    "patient64620_study1": {
        "image_path": ["valid/patient64620/study1/view1_frontal.png"],
        "report": "Findings: None. Impression: Small left pleural effusion.",
        "section_findings": float("nan"),
        "section_impression": "Small left pleural effusion.",
        "frontal_lateral": ["Frontal"],
        "ap_pa": ["AP"],
        "model_prediction": "",
    },
}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "prediction.json"
    path.write_text(json.dumps(PREDICTION, indent=4))
    return path


def test_the_studies_of_a_manifest(manifest: Path) -> None:
    first, second = open_studies(manifest, image_root=manifest.parent)
    assert not isinstance(first, Failure)
    assert not isinstance(second, Failure)
    assert (first.id, second.id) == ("50051329", "patient64620_study1")
    assert first.images == tuple(manifest.parent / f"p10/p1/s50051329/{x}.jpg" for x in "ab")
    assert first.views == ("lateral", "antero-posterior")
    assert first.reference == (
        "Findings: The lungs are low in volume.\nThere is no pneumothorax.\n"
        "Impression: No acute process."
    )
    assert first.candidate == PREDICTION["50051329"]["model_prediction"]
    assert second.reference == "Impression: Small left pleural effusion."
    assert second.candidate == ""
    assert select(first.reference or "", TextPolicy("impression")) == "No acute process."


def test_the_fields_are_columns_too(manifest: Path) -> None:
    assert {"id", "reference", "candidate", "image", "view", "context", "split"} <= set(
        columns_of(manifest)
    )
    ((_, row), _) = read_rows(manifest, {"id", "context"})
    assert row == {"id": "50051329", "context": "Age:50-60.Gender:M.Indication: Cough."}


def test_a_bad_entry_costs_no_other_and_a_study_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"broken": "text", **PREDICTION}))
    rows = list(open_studies(path, needs={"reference", "candidate"}))
    assert isinstance(rows[0], Failure)
    assert "holds a text" in rows[0].reason
    assert len(rows) == 3
    one = json.dumps(PREDICTION["50051329"])
    path.write_text(f'{{"s": {one}, "s": {one}}}')
    with pytest.raises(InvalidTable, match='names "s" twice'):
        open_studies(path)
    path.write_text('{"a": 1}')
    with pytest.raises(InvalidTable, match="manifest of ReXrank"):
        open_studies(path)
