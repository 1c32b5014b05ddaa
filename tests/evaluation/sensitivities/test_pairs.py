"""Reading perturbations."""

import json

import pytest

from vlscore.errors import InvalidTable
from vlscore.evaluation import read_pairs

RECORD = {
    "study_id": 7,
    "kind": "change-location",
    "expected": "significant",
    "category": "location",
    "original": "Left effusion.",
    "perturbed": "Right effusion.",
    "edits": [],
    "rule": "side",
}


def _write(folder, *records):
    path = folder / "perturbations.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_reads_a_folder_or_a_file(tmp_path):
    path = _write(tmp_path, RECORD, {**RECORD, "expected": "insignificant", "category": None})
    pairs = read_pairs(tmp_path)
    assert pairs.equals(read_pairs(path))
    expected = ["7", "change-location", True, "Left effusion.", "Right effusion.", "location"]
    assert pairs.iloc[0].tolist() == expected
    assert not pairs["is_significant"][1]
    assert pairs["category"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected": "perhaps"}, 'row 2: "expected" is "significant" or'),
        ({"expected": ["significant"]}, 'row 2: "expected" is'),
        ({"perturbed": None}, 'row 2: "perturbed" holds nothing'),
    ],
)
def test_names_the_row_that_is_no_record(tmp_path, change, message):
    path = _write(tmp_path, RECORD, {**RECORD, **change})
    with pytest.raises(InvalidTable, match=message):
        read_pairs(path)


def test_names_what_is_absent(tmp_path):
    with pytest.raises(InvalidTable, match="vlscore perturb"):
        read_pairs(tmp_path)
    _write(tmp_path)
    with pytest.raises(InvalidTable, match="no perturbations"):
        read_pairs(tmp_path)
    without = {name: value for name, value in RECORD.items() if name != "kind"}
    with pytest.raises(InvalidTable, match='row 1: field "kind" is absent'):
        read_pairs(_write(tmp_path, without))
