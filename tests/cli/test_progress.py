"""Progress of long work: signs of life in a log, nothing where nothing was asked for."""

import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from vlscore.cli import progress
from vlscore.cli.output import print_failures
from vlscore.cli.progress import phase_progress, row_progress, training_progress
from vlscore.embedding.batches import Work
from vlscore.errors import Failure


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(progress.time, "monotonic", lambda: Clock.now)
    return Clock


def test_a_log_gets_a_line_now_and_then(clock, capsys):
    with row_progress(1000, "scoring") as on_progress:
        on_progress(100, 0)  # an earlier call had done these
        for second in range(1, 101):
            clock.now = float(second)
            on_progress(100 + 2 * second, second // 50)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "scoring: 160 of 1000 rows, 2.0/s, 7 min left",
        "scoring: 220 of 1000 rows, 1 failed, 2.0/s, 6 min left",
        "scoring: 280 of 1000 rows, 1 failed, 2.0/s, 6 min left",
    ]


def test_an_unknown_total_is_not_guessed(clock, capsys):
    with row_progress(None, "embedding") as on_progress:
        on_progress(0, 0)
        clock.now = 40.0
        on_progress(20, 3)
    assert capsys.readouterr().err == "embedding: 20 rows, 3 failed, 0.5/s\n"


def test_a_phase_counts_what_it_names(clock, capsys):
    with phase_progress() as begin:
        on_progress = begin("intervals and tests", 16)
        on_progress(0, 0)
        clock.now = 40.0
        on_progress(4, 0)
    shown = capsys.readouterr().err
    assert shown == "intervals and tests: 4 of 16, 0.1/s, 2 min left\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("steps", "what is finished is stored in {}. The same command resumes."),
        (".lock", "nothing was stored."),
    ],
)
@pytest.mark.parametrize(
    "progress", [training_progress, lambda rows, out: row_progress(rows, out=out)]
)
def test_ctrl_c_tells_what_is_in_the_folder(tmp_path, capsys, name, said, progress):
    (tmp_path / name).touch()
    with pytest.raises(SystemExit), progress(5, tmp_path):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == f"\nstopped; {said.format(tmp_path)}\n"


@pytest.mark.parametrize("words", [("audit", "make"), ("watch",)])
def test_a_stopped_command_that_keeps_films_or_days_says_so(words, tmp_path, command, monkeypatch):
    """Its first film, or day, is finished; it stops at the second one."""
    table = tmp_path / "2026-03-01.csv"
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(tmp_path / "1.png")
    table.write_text("id,image,candidate\n1,1.png,Edema.\n")
    other = tmp_path / "2026-03-02.csv"
    other.write_text("id,image,candidate\n2,1.png,Clear lungs.\n")
    from vlscore.evaluation.audit import film_writing
    from vlscore.evaluation.watches import watch

    for module, name in ((film_writing, "write_film"), (watch, "write_day")):
        real, calls = getattr(module, name), []

        def stop(*given, real=real, calls=calls):
            calls.append(given)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return real(*given)

        monkeypatch.setattr(module, name, stop)
    tables = [table, other] if words == ("watch",) else [table]
    done = command(*words, *tables, "--out", tmp_path / "out")
    assert done.exit_code == 130
    assert f"what is finished is stored in {tmp_path / 'out'}" in done.stderr


def test_quiet_is_quiet(clock, capsys):
    with row_progress(10, quiet=True) as on_progress:
        clock.now = 100.0
        on_progress(5, 1)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with row_progress(3, "scoring") as on_progress:
        for done in range(4):
            on_progress(done, 1 if done > 1 else 0)
    shown = capsys.readouterr().err
    assert "scoring" in shown
    assert "3/3" in shown


@pytest.mark.parametrize("columns", ["80", "200"])
def test_where_a_terminal_is_narrow_what_is_beside_is_cut_and_nothing_else(
    monkeypatch, capsys, columns
):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    work = Work(images_from_cache=49, images_embedded=1, reports_from_cache=1, reports_embedded=3)
    with row_progress(227_000, embedder=SimpleNamespace(work=work)) as on_progress:
        for done in (0, 113_500, 226_000, 227_000):
            time.sleep(0.01)
            on_progress(done, 12)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    *_, line = [line for line in re.split(r"[\r\n]", plain) if "227000/227000" in line]
    assert "/s" in line
    assert "0:00:0" in line
    assert "12 failed" in line
    assert (line.rstrip()[-1] == "…") == (int(columns) < 100)


def test_failed_rows_with_one_reason_are_one_line(capsys):
    rows = [Failure(k, f"s{k}", "no section FINDINGS") for k in range(1, 8)]
    print_failures([*rows, Failure(9, "", "no image")], "rows lack a value")
    assert capsys.readouterr().err.splitlines() == [
        "8 rows lack a value:",
        "  row 1 (s1), row 2 (s2), row 3 (s3) and 4 more: no section FINDINGS",
        "  row 9: no image",
    ]
    others = [Failure(k, "", f"reason {k}") for k in range(11)]
    print_failures(others, "rows lack a value")
    assert capsys.readouterr().err.splitlines()[-2:] == ["  row 9: reason 9", "  ... and more"]
