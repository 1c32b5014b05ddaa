"""What a command shows is a function of what it stored: read again, it is what was printed."""

from pathlib import Path

import pytest

from tests.command import run_command
from tests.demonstration import demo_rows
from tests.evaluation.samples import write_table
from vlscore.cli.app import commands
from vlscore.pages import report
from vlscore.stats import PRESENTATIONS, Result, markdown

WORDS = "rouge-l,findings-f1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Finished folders of commands of texts, one made with each presentation's edge cases."""
    place = tmp_path_factory.mktemp("presentations")
    rows = [{**row, "group": k % 2} for k, row in enumerate(demo_rows(6))]
    table = write_table(place / "ours.jsonl", rows)
    # Two rows fail, so that some number has no value.
    other = [{**row, "candidate": row["reference"] if k else None} for k, row in enumerate(rows)]
    theirs = write_table(place / "theirs.jsonl", other)
    rating = {"ann": 1, "bob": 2}
    rated = write_table(
        place / "rated.csv",
        [
            {"study_id": k // 3, "candidate_id": f"c{k % 3}", "rater": rater,
             "rating": k % 3 + more, "reference": row["reference"], "candidate": row["candidate"]}
            for k, row in enumerate(rows * 2)
            for rater, more in rating.items()
        ],
    )  # fmt: skip
    calls = {
        "evaluate": ("evaluate", theirs, "-m", WORDS, "--by", "group", "--keep-going"),
        "compare": ("compare", table, theirs, "-m", WORDS, "--by", "group", "--keep-going"),
        "one system": ("compare", table, "-m", "rouge-l", "--baselines"),
        "judge": ("judge", theirs, "--keep-going"),
        "findings": ("findings", table, "--rename", "report=reference"),
        "baseline": ("baseline", "constant", table, "--train", theirs),
        "align": ("align", rated, "-m", WORDS, "--resamples", "20"),
        "failure-modes": ("failure-modes", rated, "--resamples", "20"),
    }
    folders = {}
    for name, call in calls.items():
        folders[name] = place / name
        done = run_command(*call, "--out", folders[name])
        assert done.exit_code == 0, (name, done.output)
    return folders


def test_tables_of_a_folder_are_those_that_its_command_printed(finished):
    differ = []
    for name, folder in finished.items():
        result = Result.open(folder)
        shown = markdown(result.tables, result.signatures.values())
        if not result.tables or shown != (folder / "tables.md").read_text(encoding="utf-8"):
            differ.append(name)
    assert differ == []


def test_a_page_without_texts_has_no_word_of_a_report_and_no_id(finished):
    rows = demo_rows(6)
    private = {row["id"] for row in rows} | {row["reference"][:40] for row in rows}
    told = {}
    for name, folder in finished.items():
        page = report(folder, out=Path(folder) / "numbers.html", texts=False).path
        text = page.read_text(encoding="utf-8")
        if found := [each for each in private if each in text]:
            told[name] = found
    assert told == {}


def test_every_presentation_is_of_a_command_that_there_is():
    assert set(PRESENTATIONS) <= set(commands())
