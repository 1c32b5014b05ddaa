"""From a table to a folder of judgements."""

import json

import pytest

from vlscore import evaluation
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import row_chunks

ROWS = [
    {"id": "a", "reference": "Left effusion.", "candidate": "Right effusion."},
    {"id": "b", "reference": "Clear lungs.", "candidate": "Clear lungs."},
    {"id": "c", "reference": "Aortic atherosclerosis.", "candidate": "Clear lungs.", "age": "025Y"},
    {"id": "d", "reference": "Aortic atherosclerosis.", "candidate": "Clear lungs.", "age": 82},
]


def table(tmp_path, rows, name="t.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_judgements_totals_and_summary_agree(tmp_path):
    result = evaluation.judge(table(tmp_path, ROWS), tmp_path / "out")
    lines = (tmp_path / "out" / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    judged = {row["study_id"]: row for row in map(json.loads, lines)}
    assert judged["a"]["totals"]["wrong_location"] == 1
    assert judged["b"]["errors"] == []
    assert judged["c"]["sum"] > judged["d"]["sum"]
    assert result.totals["omitted_finding"] == 2
    assert result.reports == 4
    assert result.means["count"] == pytest.approx(3 / 4)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["totals"] == result.totals
    frame = result.to_pandas()
    assert list(frame["study_id"]) == ["a", "b", "c", "d"]
    assert frame["rating"].mean() == pytest.approx(result.means["rating"])


def test_a_bad_row_costs_no_other(tmp_path):
    rows = [*ROWS[:2], {"id": "x", "reference": None, "candidate": "y"}, {**ROWS[2], "age": "old"}]
    result = evaluation.judge(table(tmp_path, rows), tmp_path / "out")
    assert result.reports == 2
    reasons = {row.id: row.reason for row in result.bad_rows}
    assert "reference" in reasons["x"]
    assert "write years (72)" in reasons["c"]


def test_a_table_without_a_usable_row_is_refused(tmp_path):
    rows = [{"id": "x", "reference": None, "candidate": "y"}]
    with pytest.raises(InvalidTable, match="no row could be judged"):
        evaluation.judge(table(tmp_path, rows), tmp_path / "out")


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(row_chunks, "_ROWS_IN_CHUNK", 2)
    path = table(tmp_path, [{**row, "id": f"{row['id']}{k}"} for k in range(3) for row in ROWS])
    evaluation.judge(path, tmp_path / "whole")
    done = []

    def stop(rows, bad):
        done.append(rows)
        if rows == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluation.judge(path, tmp_path / "parts", on_progress=stop)
    result = evaluation.judge(path, tmp_path / "parts")
    assert 0 < result.resumed_from < 12
    whole, parts = read(tmp_path / "whole"), read(tmp_path / "parts")
    for name in ("judgements.jsonl", "totals.csv", "summary.json", "tables.md", "failures.csv"):
        assert parts[name] == whole[name]
    again = evaluation.judge(path, tmp_path / "parts")
    assert again.unchanged
    assert again.means == result.means
    with pytest.raises(InvalidSetting):
        evaluation.judge(table(tmp_path, ROWS, "other.jsonl"), tmp_path / "parts")
