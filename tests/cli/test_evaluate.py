"""`vlscore evaluate` as a person uses it."""

import csv
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import write_jsonl
from tests.conftest import run_python
from tests.demonstration import demo_rows
from tests.evaluation.samples import results_of


def vlscore(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    return run_python("-m", "vlscore", *arguments, env=variables)


@pytest.fixture
def table(tmp_path):
    """Three demo studies, the second with an image that is not there."""
    records = demo_rows(3)
    records[1]["image"] = "absent.dcm"
    return write_jsonl(tmp_path / "studies.jsonl", records)


@pytest.fixture
def evaluate(command, table, tmp_path):
    """Evaluate the table in this process into a folder of its own."""

    def run(*arguments, out="out", studies=table, **terminal):
        folder = tmp_path / out
        return command("evaluate", studies, "--out", folder, "--workers", 0, *arguments, **terminal)

    return run


def refused(done):
    """The message of a command that ended with an error of ours, in one line."""
    assert done.exit_code == 2, done.output
    return done.stderr


def test_a_real_process_prints_writes_and_reports_the_bad_row(table, tmp_path):
    out = tmp_path / "out"
    options = ("--out", out, "--format", "csv", "--workers", "0", "--metrics", "vlscore,bleu-4")
    done = vlscore("evaluate", table, *options)
    assert done.returncode == 1
    assert "row 2 (phantom-2026-00001)" in done.stderr
    assert "absent.dcm: no such file" in done.stderr
    assert "trained on synthetic phantoms" in done.stderr
    assert re.search(r"rows with every value +2\n", done.stdout)
    assert f"wrote {out}" in done.stdout
    with (out / "scores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"][-1] for row in rows] == ["0", "1", "2"]
    assert [bool(row["vlscore"]) for row in rows] == [True, False, True]
    assert all(row["bleu-4"] for row in rows)
    record = json.loads((out / "run.json").read_text())
    assert record["failed"] == 1
    assert "DEMONSTRATION-ENCODER" in record["key"]["metrics"]["vlscore"]
    before = results_of(out)

    again = vlscore("evaluate", table, *options, "--keep-going", "--show", "2")
    assert again.returncode == 0
    assert "holds these results already; nothing was computed" in again.stderr
    assert "phantom-2026-00001" in again.stdout
    assert results_of(out) == before


@pytest.mark.usefixtures("hash_encoder")
class TestInThisProcess:
    def test_a_finished_run_exits_as_it_did_and_says_so(self, evaluate, tmp_path):
        assert evaluate().exit_code == 1
        again = evaluate()
        assert again.exit_code == 1
        assert "nothing was computed" in again.stderr
        assert evaluate("--keep-going").exit_code == 0

    def test_parts_are_joined(self, evaluate, command, tmp_path):
        own = ("-m", "bleu-1,rouge-l")
        for k in (1, 2):
            assert evaluate(*own, "--part", f"{k}/2", out=f"part{k}").exit_code == 0
        parts = (tmp_path / "part1", tmp_path / "part2")
        done = command("evaluate", *parts, "--join", "--out", tmp_path / "joined")
        assert done.exit_code == 0, done.output
        evaluate(*own, out="at once")
        assert results_of(tmp_path / "joined") == results_of(tmp_path / "at once")
        assert "name one table" in refused(command("evaluate", *parts, "-o", tmp_path / "x"))

    def test_a_metric_of_ones_own_without_touching_the_package(self, evaluate, tmp_path):
        name = "tests.metrics.own:length_ratio"
        done = evaluate("-m", f"{name},vlscore,tests.metrics.own:COMPOSITE", "--keep-going")
        assert done.exit_code == 0, done.output
        assert "length-ratio" in done.stdout
        assert "sum-of-two|own:2|of:" in done.stdout
        # A plain function from a file of one's own, in another process.
        (tmp_path / "mine.py").write_text(
            "from vlscore.metrics import text_metric\n"
            "@text_metric('same', 'whether both are equal')\n"
            "def same(candidate, reference):\n    return float(candidate == reference)\n"
        )
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        other = vlscore(
            *("evaluate", tmp_path / "studies.jsonl", "-o", tmp_path / "other"),
            *("-m", "mine:same", "--json"),
            PYTHONPATH=path,
        )
        assert other.returncode == 0, other.stderr
        content = json.loads(other.stdout)
        assert content["frames"]["summary"][0]["mean"] == 0.0

    def test_json_is_the_only_output(self, evaluate, tmp_path):
        done = evaluate("--json", "--keep-going")
        assert json.loads(done.stdout) == json.loads((tmp_path / "out/result.json").read_text())

    def test_quiet_says_nothing_but_what_is_wrong(self, evaluate):
        done = evaluate("--quiet", "-m", "bleu-1")
        assert done.exit_code == 0
        assert done.output == ""
        assert "row 2" in evaluate("--quiet", out="other").stderr

    def test_tables_fit_a_terminal_of_80_columns(self, evaluate, tmp_path):
        metrics = ("-m", "vlscore,cosine,bleu-1,findings-f1")
        # Reasons of failures, signatures and paths are copied, not wrapped.
        good = write_jsonl(tmp_path / "good.jsonl", demo_rows(3))
        done = evaluate(*metrics, "--show", 3, studies=good, columns=80)
        tables = [line for line in done.stdout.splitlines() if "|" not in line and "/" not in line]
        assert max(map(len, tables)) <= 80
        assert "…" not in done.stdout

    def test_ctrl_c_ends_with_one_line_and_no_results(self, evaluate, monkeypatch, tmp_path):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("vlscore.evaluation.scoring.evaluate.score_table", interrupted)
        done = evaluate()
        assert done.exit_code == 130
        assert "stopped; nothing was stored" in done.stderr
        assert not (tmp_path / "out" / "run.json").exists()


@pytest.fixture
def no_encoder(monkeypatch):
    """Loading an encoder fails the test."""
    from vlscore.embedding import embedder as studies

    def load(*_, **__):
        raise AssertionError("an encoder was loaded before the slip was found")

    monkeypatch.setattr(studies, "named_encoder", load)


@pytest.mark.usefixtures("no_encoder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rename", "image=picture"), "picture"),
        (("--rename", "id=study_id"), "study_id"),
        (("--image-root", "/no/such/folder"), "no such folder"),
        (("--metrics", "vlscor"), "did you mean vlscore"),
        (("--metrics", "vlscore(C=0)"), "greater than 0"),
        (("--C", "0"), "greater than 0"),
        (("--metrics", "cosine", "--C", "5"), "none of these metrics uses it"),
        (("--section", "conclusion"), "impression"),
        (("--metrics", "tests.metrics.own:nothing"), "cannot be imported"),
    ],
)
def test_slips_are_found_before_an_encoder_is_loaded(evaluate, tmp_path, options, message):
    assert message in refused(evaluate(*options))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_encoder")
def test_an_absent_or_empty_table_is_found_before_an_encoder_is_loaded(evaluate, tmp_path):
    assert "no such file" in refused(evaluate(studies=tmp_path / "absent.csv"))
    empty = write_jsonl(tmp_path / "empty.jsonl", [])
    assert "holds no rows" in refused(evaluate(studies=empty))


def test_a_precision_that_is_slow_or_impossible_here_is_named(evaluate, tmp_path, monkeypatch):
    monkeypatch.setattr("vlscore.encoders.devices._processor_flags", lambda: frozenset({"sse2"}))
    done = evaluate("--precision", "bf16")
    assert "note: this processor does not support bf16" in done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "|prec:bf16|" in record["key"]["metrics"]["vlscore"]
    assert "fp16 is for GPUs" in refused(evaluate("--precision", "fp16", out="other"))
    assert not (tmp_path / "other").exists()
