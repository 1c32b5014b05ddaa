"""From a table to a folder of judgements."""

import json

import pytest

from vlscore import evaluation
from vlscore.errors import InvalidSetting

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


def test_judgements_totals_and_summary_agree(tmp_path):
    result = evaluation.judge(table(tmp_path, ROWS), tmp_path / "out")
    lines = (tmp_path / "out" / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    judged = {row["study_id"]: row for row in map(json.loads, lines)}
    assert judged["a"]["totals"]["wrong_location"] == 1
    assert judged["b"]["errors"] == []
    assert judged["c"]["sum"] > judged["d"]["sum"]
    errors = result.frame("errors").set_index("category")
    assert errors.loc["omitted_finding", "all"] == 2
    assert errors.loc["omitted_finding"].drop("all").sum() == 2
    assert result.record["reports"] == 4
    means = result.frame("scores").set_index("score")["mean"]
    assert means["count"] == pytest.approx(3 / 4)
    rows = result.rows("totals.csv")
    assert list(rows["study_id"]) == ["a", "b", "c", "d"]
    assert sum(judged[id]["rating"] for id in "abcd") / 4 == pytest.approx(means["rating"])
    intervals = result.frame("scores").set_index("score").loc["rating"]
    assert intervals["mean.low"] < intervals["mean"] < intervals["mean.high"]
    found = result.frame("findings")
    assert found["sum of severities"].sum() == sum(judged[id]["sum"] for id in "abcd")
    assert found.set_index("finding")["missed"].sum() == 2
    assert list(found["sum of severities"]) == sorted(found["sum of severities"], reverse=True)


def test_a_bad_row_costs_no_other(tmp_path):
    rows = [*ROWS[:2], {"id": "x", "reference": None, "candidate": "y"}, {**ROWS[2], "age": "old"}]
    result = evaluation.judge(table(tmp_path, rows), tmp_path / "out")
    assert result.record["reports"] == 2
    reasons = {row.id: row.reason for row in result.failures}
    assert "reference" in reasons["x"]
    assert "write years (72)" in reasons["c"]


def test_where_every_row_fails_each_has_its_reason(tmp_path):
    rows = [{"id": "x", "reference": None, "candidate": "y"}, {"id": "z", "candidate": "y"}]
    result = evaluation.judge(table(tmp_path, rows), tmp_path / "out")
    assert [(f.row, f.id) for f in result.failures] == [(1, "x"), (2, "z")]
    assert "is empty" in result.failures[0].reason
    assert (tmp_path / "out" / "failures.csv").is_file()
    assert result.record["reports"] == 0
    assert result.frame("scores")["mean"].isna().all()
    assert list(result.rows("totals.csv").columns)[:2] == ["study_id", "rating"]


def test_a_finished_folder_refuses_another_table(tmp_path):
    path = table(tmp_path, ROWS)
    evaluation.judge(path, tmp_path / "out")
    assert evaluation.judge(path, tmp_path / "out").unchanged
    with pytest.raises(InvalidSetting, match="content of the table"):
        evaluation.judge(table(tmp_path, ROWS[:2], "other.jsonl"), tmp_path / "out")
