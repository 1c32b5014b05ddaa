"""`vlscore controlled` from the command line."""

import json

import pytest

from tests.evaluation.test_controlled import REPORTS
from vlscore.metrics import text_metric


@text_metric("nothing", "has no value", bounds=(0, 1))
def nothing(candidate, reference):
    return float("nan")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "reports.csv"
    rows = "\n".join(f"r{k},{text}" for k, text in enumerate(REPORTS))
    path.write_text(f"id,report\n{rows}\n", encoding="utf-8")
    return path


def test_areas_are_printed(command, table, tmp_path):
    out = tmp_path / "out"
    options = ("-m", "bleu-1", "--observations", "pleural effusion", "--resamples", 20)
    done = command("controlled", table, "-o", out, *options)
    assert done.exit_code == 0, done.output
    for shown in ("Do sentences agree?", "vlscore.findings"):
        assert shown in done.stdout
    again = command("controlled", table, "-o", out, *options, "--json")
    assert "nothing was computed" in again.stderr
    assert set(json.loads(again.stdout)["frames"]) == {"cells", "counts", "separations"}

    labelled = ("controlled", out / "sentences.csv", "--labelled", "-o", tmp_path / "second")
    done = command(*labelled, "-m", "bleu-1", "--resamples", 20)
    assert done.exit_code == 0, done.output
    assert "table sentences.csv" in done.stdout


def test_a_metric_without_any_value_has_no_table_and_a_note(command, table, tmp_path):
    done = command("controlled", table, "-o", tmp_path / "out", "-m", f"{__name__}:nothing")
    assert done.exit_code == 0, done.output
    assert "without a value of nothing: " in done.stderr
    assert "Do sentences agree?" not in done.stdout
