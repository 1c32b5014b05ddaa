"""`vlscore report` and `vlscore explain` on the command line."""

import json

from tests.command import run_command

STUDY = {"id": "1", "reference": "Mild edema. No effusion.", "candidate": "Clear lungs."}


def run(*words):
    return run_command(*words)


def test_report_of_a_command_and_after_it(tmp_path):
    table = tmp_path / "s.jsonl"
    table.write_text(json.dumps(STUDY) + "\n")
    made = run("evaluate", table, "-m", "bleu-1", "-o", tmp_path / "out", "-q", "--report")
    assert made.exit_code == 0, made.output
    assert (tmp_path / "out" / "report.html").is_file()
    again = run("report", tmp_path / "out", "--no-texts", "-o", tmp_path / "page.html", "-q")
    assert again.exit_code == 0, again.output
    assert "edema" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = run("report", tmp_path / "out")
    assert "This page contains 2 reports and 1 row with ids or texts." in shown.output
    judged = run("judge", table, "-o", tmp_path / "judged", "-q", "--report")
    assert judged.exit_code == 0, judged.output
    assert "2 reports" in (tmp_path / "judged" / "report.html").read_text(encoding="utf-8")


def test_a_command_with_a_page_prints_its_notes_once(tmp_path):
    table = tmp_path / "s.jsonl"
    table.write_text(json.dumps(STUDY) + "\n" + json.dumps({**STUDY, "id": "2"}) + "\n")
    made = run(
        "compare", table, "--baselines", "-m", "bleu-1", "-o", tmp_path / "out", "--report"
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    notes = [line for line in made.stderr.splitlines() if line.startswith("note: ")]
    assert notes
    assert len(set(notes)) == len(notes)
    assert made.output.count("baseline:constant is the most frequent report") == 1
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "baseline:constant is the most frequent report" in page


def test_explain_prints_errors_and_shares_and_writes_a_page(tmp_path):
    page = tmp_path / "one.html"
    made = run(
        "explain", "-g", STUDY["candidate"], "-r", STUDY["reference"], "-m", "rouge-l",
        "--page", page,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert "omitted finding: edema" in made.output
    assert "Mild edema." in made.output
    assert page.is_file()
