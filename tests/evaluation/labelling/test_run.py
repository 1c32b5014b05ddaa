"""From a table of reports to labels and findings."""

import csv
import json

import pytest

from vlscore.data import TextPolicy
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import findings, row_chunks
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
    assert result.reports == 3
    assert [(row.row, row.id) for row in result.bad_rows] == [(2, "blank")]
    assert result.counts["Pneumonia"] == {"-1": 1, "": 2}
    assert "Labels of 3 reports" in result.tables[0].text()


def test_policies_and_sections(table, tmp_path):
    findings(table, tmp_path / "o", policy=LabelPolicy("positive"), format="jsonl")
    lines = (tmp_path / "o" / "labels.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["Pneumonia"] == 1
    policy = TextPolicy("impression")
    findings(table, tmp_path / "i", policy=LabelPolicy("ignored"), text_policy=policy)
    first = read(tmp_path / "i" / "labels.csv")[0]
    assert (first["Pneumonia"], first["Pleural Effusion"]) == ("", "")


def test_against_labels(table, tmp_path):
    given = tmp_path / "given.csv"
    given.write_text("study_id,Cardiomegaly,Edema\na,0,\nc,1,1\nz,1,1\n")
    result = findings(table, tmp_path / "out", against=given)
    rows = {row.label: row for row in result.agreement}
    assert (rows["Cardiomegaly"].n, rows["Cardiomegaly"].f1.estimate) == (2, 1.0)
    assert (rows["Edema"].given, rows["Edema"].found, rows["Edema"].recall) == (1, 0, 0.0)
    assert any("1 reports have no labels" in note for note in result.notes)
    assert any("1 rows of given.csv are of no report" in note for note in result.notes)
    assert "precision" in (tmp_path / "out" / "tables.md").read_text()
    assert read(tmp_path / "out" / "agreement.csv")[0]["n"] == "2"
    again = findings(table, tmp_path / "out", against=given)
    assert again.unchanged
    assert repr(again.agreement) == repr(result.agreement)


def test_pandas(table, tmp_path):
    pytest.importorskip("pandas")
    for format in ("csv", "jsonl"):
        frame = findings(table, tmp_path / format, format=format).to_pandas()
        assert list(frame["study_id"]) == list(TEXTS)
        assert list(frame.columns) == ["study_id", *CHEXPERT_LABELS]
        assert frame["Pneumonia"].tolist()[0] == -1
        assert frame["Pneumonia"].isna().tolist() == [False, True, True]


def test_a_stopped_run_goes_on_to_the_same_bytes(table, tmp_path, monkeypatch):
    monkeypatch.setattr(row_chunks, "_ROWS_IN_CHUNK", 1)
    findings(table, tmp_path / "whole")

    def stop(done, bad):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        findings(table, tmp_path / "parts", on_progress=stop)
    result = findings(table, tmp_path / "parts")
    assert result.resumed_from == 2
    for name in ("labels.csv", "findings.csv", "failures.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_slips_are_told(table, tmp_path):
    with pytest.raises(InvalidSetting, match="csv or jsonl"):
        findings(table, tmp_path / "o", format="xlsx")
    given = tmp_path / "given.csv"
    given.write_text("id,Edema\nother,1\n")
    with pytest.raises(InvalidTable, match="none of its ids is that of a report"):
        findings(table, tmp_path / "o", against=given)
    empty = tmp_path / "empty.csv"
    empty.write_text("id,report\na,\n")
    with pytest.raises(InvalidTable, match="holds no report"):
        findings(empty, tmp_path / "e")
