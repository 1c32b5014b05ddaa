"""`vlscore pair` from the command line."""

import json

HEADER = "study_id,report\n"


def test_two_files_become_a_table_that_is_scored(command, tmp_path):
    (tmp_path / "gt.csv").write_text(HEADER + "1,Clear lungs.\n2,Edema.\n")
    (tmp_path / "predicted.csv").write_text(HEADER + "2,Edema.\n1,Clear.\n")
    table = tmp_path / "studies.csv"
    done = command("pair", tmp_path / "gt.csv", tmp_path / "predicted.csv", "--out", table)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "2 studies, joined by study_id"
    assert f"wrote {table}" in done.stdout
    assert not list(tmp_path.glob("*.rows.csv"))
    scored = command("evaluate", table, "--metrics", "rouge-l", "--out", tmp_path / "scored")
    assert scored.exit_code == 0, scored.output


def test_a_row_without_a_partner_is_status_1(command, tmp_path):
    (tmp_path / "gt.csv").write_text(HEADER + "1,Clear lungs.\n2,Edema.\n")
    (tmp_path / "predicted.csv").write_text(HEADER + "1,Clear.\n")
    files = ("pair", tmp_path / "gt.csv", tmp_path / "predicted.csv", "-o", tmp_path / "s.csv")
    done = command(*files)
    assert done.exit_code == 1
    assert "1 left out: no candidate has this id" in done.stdout
    assert "s.rows.csv" in done.stderr
    again = command(*files, "--json", "--keep-going")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["left_out"] == {"no candidate has this id": 1}
