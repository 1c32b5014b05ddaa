"""--limit N: every command then does what it does with a table of the first N rows."""

import json

import pytest

from tests.cli.conftest import write_jsonl
from tests.command import run_command
from tests.demonstration import demo_rows
from vlscore.cli import commands
from vlscore.data import open_studies

COUNT = 16
# Command -> its arguments behind the table TABLE; OTHER is a table of all rows.
CALLS = {
    "evaluate": ("TABLE", "-m", "bleu-4,judge,cider-d"),
    "evaluate images": ("TABLE", "-m", "vlscore"),
    "evaluate parts": ("TABLE", "-m", "judge", "--part", "2/2"),
    "compare": ("x=TABLE", "y=OTHER", "-m", "rouge-l,findings-f1", "--baselines"),
    "judge": ("TABLE",),
    "findings": ("TABLE", "--rename", "report=reference"),
    "perturb": ("TABLE", "--rename", "report=reference"),
    "controlled": (
        *("TABLE", "--rename", "report=reference", "-m", "rouge-l"),
        *("--observations", "pleural-effusion"),
    ),
    "baseline": ("random", "TABLE", "--train", "OTHER"),
    "retrieval": ("TABLE",),
    "index build": ("TABLE", "--rename", "report=reference"),
}


@pytest.fixture
def tables(tmp_path):
    """A table whose first rows are one of their own, too; and another order of its rows."""
    rows = demo_rows(24)
    # A row that cannot be read counts, too, and is a failure of both runs.
    rows[2] = {**rows[2], "reference": None}
    for folder, some in (("whole", rows), ("head", rows[:COUNT])):
        (tmp_path / folder).mkdir()
        write_jsonl(tmp_path / folder / "table.jsonl", some)
        others = rows[::-1] if folder == "whole" else some[::-1]
        write_jsonl(
            tmp_path / folder / "other.jsonl", [{**r, "candidate": "Edema."} for r in others]
        )
    return tmp_path


def _content(folder):
    """What a run computed: frames and files of rows, without the note of the limit."""
    path = folder / "result.json"
    if not path.is_file():
        return {each.name: each.read_text() for each in folder.glob("*.jsonl")}
    content = json.loads(path.read_text())
    files = {each.name: each.read_bytes() for each in folder.glob("*.csv")}
    if "systems" in content["frames"]:
        # The second system's table has the rows in another order, with other numbers.
        del files["failures.csv"]
    return content["frames"], files


@pytest.mark.parametrize("name", CALLS)
def test_a_limited_run_is_that_of_the_first_rows(tables, hash_encoder, name):
    command = [part for part in name.split() if part not in ("images", "parts")]
    found = {}
    for folder, options in (("whole", ("--limit", COUNT)), ("head", ())):
        other = "head" if name == "baseline" else folder
        names = {
            "TABLE": str(tables / folder / "table.jsonl"),
            "OTHER": str(tables / other / "other.jsonl"),
        }
        call = []
        for each in CALLS[name]:
            for word, path in names.items():
                each = each.replace(word, path)
            call.append(each)
        if "image" in name or name in ("retrieval", "index build"):
            call += ["--encoder", "hash"]
        out = tables / folder / "out"
        done = run_command(*command, *call, *options, "--out", out, "--keep-going")
        assert done.exit_code == 0, done.output
        assert (f"only the first {COUNT} rows" in done.stderr) is (folder == "whole")
        found[folder] = _content(out)
    assert found["whole"] == found["head"]
    record = json.loads((tables / "whole" / "out" / "run.json").read_text())
    assert f'"limit": {COUNT}' in json.dumps(record["key"])
    if name != "perturb":
        assert any(f"only the first {COUNT} rows" in note for note in record["notes"])
    assert '"limit"' not in json.dumps(
        json.loads((tables / "head/out/run.json").read_text())["key"]
    )


def test_another_limit_is_another_run(tables):
    table, out = tables / "whole" / "table.jsonl", tables / "out"
    call = ("evaluate", table, "-m", "rouge-l", "--keep-going", "--out", out, "--limit")
    assert run_command(*call, 5).exit_code == 0
    assert "nothing was computed" in run_command(*call, 5).stderr
    refused = run_command(*call, 6)
    assert refused.exit_code == 2
    assert "limit: 5 there, 6 now" in refused.stderr


def test_a_limited_evaluation_is_compared_with_a_whole_table(tables):
    table = tables / "whole" / "table.jsonl"
    out = tables / "evaluated"
    call = ("evaluate", table, "-m", "rouge-l", "--keep-going", "--limit", COUNT, "--out", out)
    assert run_command(*call).exit_code == 0
    other = tables / "whole" / "other.jsonl"
    done = run_command("compare", out, other, "--out", tables / "compared", "--keep-going")
    assert done.exit_code == 0, done.output
    assert f"n = {COUNT - 1} studies" in done.stdout


def test_a_limit_is_a_positive_number(tables):
    table = tables / "whole" / "table.jsonl"
    done = run_command("evaluate", table, "-m", "rouge-l", "--limit", 0, "--out", tables / "out")
    assert done.exit_code == 2
    assert "limit" in done.stderr
    assert open_studies(table, limit=4).count() == 4
    assert len(list(open_studies(table, limit=99))) == 24
    assert open_studies(table, limit=99).count() == 24


def test_every_command_that_reads_a_table_has_the_option():
    """Those without one read folders, ratings, single reports, or files of other programs."""
    have = {name for name in commands() if _has_limit(name)}
    assert have >= {
        *(" ".join(p for p in each.split() if p not in ("images", "parts")) for each in CALLS),
        "calibrate",
        "claims",
        "oracle",
        "sensitivity",
        "train",
    }


def _has_limit(name):
    arguments = commands()[name].assemble_argument_collection()
    return any("--limit" in each.names for each in arguments)
