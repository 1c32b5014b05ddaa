"""From a table of reports to labels and findings."""

import csv
import json

import pytest

from vlscore.data import TextPolicy
from vlscore.errors import InvalidSetting
from vlscore.evaluation import findings
from vlscore.findings import CHEXPERT_LABELS, LabelPolicy, chexpert_labels

TEXTS = {
    "a": "FINDINGS: Small left pleural effusion, 12 mm. IMPRESSION: Possible pneumonia.",
    "b": "FINDINGS: No pneumothorax. IMPRESSION: Normal chest.",
    "c": "FINDINGS: Severe cardiomegaly, unchanged. IMPRESSION: Cardiomegaly.",
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "reports.jsonl"
    rows = [{"id": name, "report": text} for name, text in TEXTS.items()]
    rows.insert(1, {"id": "blank", "report": ""})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_labels_and_findings(table, tmp_path):
    result = findings(table, tmp_path / "out")
    rows = {row.pop("study_id"): row for row in read(tmp_path / "out" / "labels.csv")}
    assert list(rows) == list(TEXTS)
    for name, text in TEXTS.items():
        cells = {k: "" if v is None else str(v) for k, v in chexpert_labels(text).items()}
        assert rows[name] == cells
    assert rows["a"]["Pneumonia"] == "-1"
    effusion = next(
        row
        for row in read(tmp_path / "out" / "findings.csv")
        if row["observation"] == "pleural_effusion" and row["study_id"] == "a"
    )
    assert (effusion["side"], effusion["severity"], effusion["size_mm"]) == (
        "left",
        "small",
        "12.0",
    )
    assert effusion["words"] == "pleural effusion"
    assert result.record["reports"] == 3
    assert [(row.row, row.id) for row in result.failures] == [(2, "blank")]
    counts = result.frame("counts").set_index("label").loc["Pneumonia"]
    assert counts.to_dict() == {"stated": 0, "uncertain": 1, "denied": 0, "not mentioned": 2}
    assert "Labels of 3 reports" in result.tables[0].text()


def test_policies_and_sections(table, tmp_path):
    findings(table, tmp_path / "o", policy=LabelPolicy("positive"), format="jsonl")
    lines = (tmp_path / "o" / "labels.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["Pneumonia"] == 1
    policy = TextPolicy("impression")
    findings(table, tmp_path / "i", policy=LabelPolicy("ignored"), text_policy=policy)
    first = read(tmp_path / "i" / "labels.csv")[0]
    assert (first["Pneumonia"], first["Pleural Effusion"]) == ("", "")


def test_rows_in_both_formats(table, tmp_path):
    for format in ("csv", "jsonl"):
        rows = findings(table, tmp_path / format, format=format).rows(f"labels.{format}")
        assert list(rows["study_id"]) == list(TEXTS)
        assert list(rows.columns) == ["study_id", *CHEXPERT_LABELS]
        assert rows["Pneumonia"].tolist()[0] == -1
        assert rows["Pneumonia"].isna().tolist() == [False, True, True]


def test_slips_are_told(table, tmp_path):
    with pytest.raises(InvalidSetting, match="csv or jsonl"):
        findings(table, tmp_path / "o", format="xlsx")
    empty = tmp_path / "empty.csv"
    empty.write_text("id,report\na,\n")
    found = findings(empty, tmp_path / "e")
    assert [(f.row, f.id) for f in found.failures] == [(1, "a")]
    assert "no text in report" in found.failures[0].reason
    assert list(found.rows("labels.csv").columns) == ["study_id", *CHEXPERT_LABELS]
