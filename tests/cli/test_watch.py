"""`vlscore watch`: exit status, the line for a scheduler, options."""

import json

import pytest

from tests.evaluation.watches.test_watch import CHANGE, day_table, name_of, tables
from vlscore.evaluation import watched_rows

QUICK = ("--reference-days", 10, "--rate", 0.9)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    return tables(tmp_path_factory.mktemp("days") / "days", CHANGE + 13, change=CHANGE)


def test_the_status_and_the_line(command, days, tmp_path):
    store = tmp_path / "store"
    done = command("watch", *days[:3], "--out", store, *QUICK, "-q")
    assert done.exit_code == 0, done.output
    assert (
        done.stdout == f"{name_of(2)}: reference period, 3 of 10 days, 90 of at least 300 reports\n"
    )
    done = command("watch", *days[3:CHANGE], "--out", store, *QUICK)
    assert done.exit_code == 0, done.output
    assert f"\n{name_of(CHANGE - 1)}: no alarm; evidence" in done.stdout
    assert "Reference period and lately" in done.stdout
    done = command("watch", *days[CHANGE:], "--out", store, *QUICK, "-q", "--report")
    assert done.exit_code == 3
    assert done.stdout.startswith(f"{name_of(CHANGE + 12)}: ALARM")
    assert done.stdout.count("\n") == 1
    assert (store / "report.html").is_file()
    # The alarm stays until a new reference period begins.
    done = command("watch", "--out", store, "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["frames"]["days"][-1]["alarm"]
    after = day_table(tmp_path / "more", CHANGE + 13)
    done = command("watch", after, "--out", store, *QUICK, "--restart", "-q")
    assert done.exit_code == 0
    assert "reference period, 1 of 10 days" in done.stdout


def test_mistakes_and_failed_rows(command, days, tmp_path):
    store = tmp_path / "store"
    for words, reason in (
        ((days[0], f"2026-03-02={days[1]}"), "of one day"),
        (("--restart",), "name its table or folder"),
        ((f"2.3.2026={days[0]}",), "which day is it"),
        ((days[0], "--rate", 2), "below 1"),
        ((tmp_path / "2026-03-02.csv",), "no such file"),
    ):
        done = command("watch", *words, "--out", store)
        assert done.exit_code == 2, (words, done.output)
        assert reason in done.stderr
    table = tmp_path / "today.csv"
    table.write_text("id,text\nMUELLER,Clear lungs.\nMUELLER,Edema.\n")
    call = ("watch", f"2026-03-02={table}", "--out", store, "--rename", "candidate=text")
    done = command(*call, "--keep", "id")
    assert done.exit_code == 1
    assert "1 row lacks a value:" in done.stderr
    assert "2026-03-02, row 2: id … is already in row 1" in done.stderr
    assert "MUELLER" not in done.output
    assert command(*call, "--keep", "id", "--keep-going").exit_code == 0
    assert watched_rows(store)["id"].tolist() == ["MUELLER", "MUELLER"]
