"""Stopped anywhere, a run loses nothing; a finished one is added to, retried and replaced whole."""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.core.test_resumable import killed_everywhere
from tests.doubles import HashEncoder
from tests.evaluation.samples import (
    BATCH,
    CHUNK,
    make_table,
    read_scores,
    results_of,
    write_table,
)
from tests.killed_process import started
from tests.metrics import own
from vlscore.cli.command_line import app
from vlscore.core import resource_path
from vlscore.data import ColumnNames
from vlscore.errors import ChecksumMismatch, FolderInUse, InvalidSetting, InvalidTable, UnknownName
from vlscore.evaluation import evaluate
from vlscore.evaluation.scoring import executor as computing
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"
RESULTS = {"scores.parquet", "details.parquet", "failures.csv", "summary.json"}


def scorer_of(metrics="vlscore", **options):
    return Scorer(HashEncoder(), metrics=metrics, batch_size=BATCH, **options)


@pytest.fixture
def scorer():
    return scorer_of()


class Stopped(KeyboardInterrupt):
    pass


def stop_at(rows):
    """Ctrl-C when so many rows are done."""

    def on_progress(done, failed):
        if done >= rows:
            raise Stopped

    return on_progress


def left_unfinished(table, out, scorer, **options):
    with pytest.raises(Stopped):
        evaluate(table, out, scorer, on_progress=stop_at(1), **options)


def spoilt(table, records, *bad):
    """The table with rows that fail for reasons of several kinds."""
    for k in bad:
        records[k]["reference"] = ""
    return write_table(table, records)


# --- stopped --------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(tmp_path, scorer):
    rows = 2 * CHUNK + 3
    table, records = make_table(tmp_path, rows)
    (tmp_path / "20.png").unlink()
    spoilt(table, records, 3)
    out = tmp_path / "out"
    left_unfinished(table, out, scorer)
    assert {path.name for path in out.iterdir()} == {".parts", ".lock"}

    progress = []
    result = evaluate(table, out, scorer, on_progress=lambda *now: progress.append(now))
    assert result.resumed_from == CHUNK
    assert progress == [(CHUNK, 1), (2 * CHUNK, 2), (rows, 2)]
    evaluate(table, tmp_path / "whole", scorer)
    assert results_of(out) == results_of(tmp_path / "whole")
    assert set(results_of(out)) == RESULTS


def test_a_stopped_run_is_not_continued_with_another_scorer_or_table(tmp_path, scorer):
    table, records = make_table(tmp_path, CHUNK + 1)
    left_unfinished(table, tmp_path / "out", scorer)
    for options, name in (
        ({"C": 3.0}, "metrics"),
        ({"text_policy": "auto"}, "metrics"),
        ({"views": "mean"}, "metrics"),
    ):
        with pytest.raises(InvalidSetting, match=f"{name}.*--overwrite"):
            evaluate(table, tmp_path / "out", scorer_of(**options))
    write_table(table, records[:-1])
    with pytest.raises(InvalidSetting, match="table_sha256"):
        evaluate(table, tmp_path / "out", scorer)
    result = evaluate(table, tmp_path / "out", scorer, overwrite=True)
    assert (result.summary.rows, result.resumed_from) == (CHUNK, 0)


def test_an_image_that_was_replaced_meanwhile_is_noticed(tmp_path, scorer):
    table, _ = make_table(tmp_path, CHUNK + 1)
    left_unfinished(table, tmp_path / "out", scorer)
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / "2.png")
    with pytest.raises(ChecksumMismatch, match=r"2\.png has been replaced"):
        evaluate(table, tmp_path / "out", scorer)


def test_chunks_that_are_gone_or_damaged_are_noticed(tmp_path, scorer):
    table, _ = make_table(tmp_path, CHUNK + 1)
    for number, damage in enumerate((Path.unlink, lambda path: path.write_bytes(b"damaged"))):
        out = tmp_path / f"out{number}"
        left_unfinished(table, out, scorer)
        damage(out / ".parts" / "part-00000000" / "rows.parquet")
        with pytest.raises(ChecksumMismatch, match="cannot go on"):
            evaluate(table, out, scorer)
        result = evaluate(table, out, scorer, overwrite=True)
        assert result.summary.scored == CHUNK + 1


def test_a_slip_leaves_no_folder_that_refuses_the_corrected_command(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    for names in (ColumnNames(image="picture"), ColumnNames(candidate="output")):
        with pytest.raises(InvalidTable):
            evaluate(table, tmp_path / "out", scorer, columns=names)
    with pytest.raises(InvalidSetting, match="no such folder"):
        evaluate(table, tmp_path / "out", scorer, image_root=tmp_path / "absent")
    assert not (tmp_path / "out").exists()
    assert evaluate(table, tmp_path / "out", scorer).summary.scored == 2


# --- killed ---------------------------------------------------------------------------------------


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A table for metrics of texts alone, in one chunk; forked children need no torch."""
    # The writer's own tests wait for the disk.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    table, records = make_table(tmp_path / "table", 3)
    return spoilt(table, records, 1)


def mixed(out, texts, **options):
    return evaluate(texts, out, Scorer(metrics=[own.length_ratio, "rouge-l"]), **options)


def test_killed_before_any_operation_on_files_the_same_call_gives_the_same_bytes(tmp_path, texts):
    mixed(tmp_path / "whole", texts)
    whole = results_of(tmp_path / "whole")
    resumed = set()
    for out in killed_everywhere(tmp_path, lambda out: None, lambda out: mixed(out, texts)):
        result = mixed(out, texts)
        assert results_of(out) == whole
        resumed.add((result.resumed_from, result.unchanged))
    # From before the first row to behind the last file.
    assert {(0, False), (3, False)} <= resumed


def test_adding_metrics_killed_anywhere_in_the_end(tmp_path, texts):
    evaluate(texts, tmp_path / "old", Scorer(metrics=[own.length_ratio]))
    mixed(tmp_path / "whole", texts)
    whole, old = results_of(tmp_path / "whole"), results_of(tmp_path / "old")

    def begun(out):
        """A run that has computed all rows, and is killed from here on."""
        if not (tmp_path / "begun").exists():
            shutil.copytree(tmp_path / "old", tmp_path / "begun")
            with pytest.raises(Stopped):
                mixed(tmp_path / "begun", texts, on_progress=stop_at(3))
        shutil.copytree(tmp_path / "begun", out)

    for out in killed_everywhere(tmp_path, begun, lambda out: mixed(out, texts)):
        metrics = json.loads((out / "run.json").read_text())["key"]["metrics"]
        if not (out / ".parts" / "commit.json").exists() and len(metrics) == 1:
            # Until the end is decided, the earlier results stay.
            assert {name: results_of(out)[name] for name in old} == old
        mixed(out, texts)
        assert results_of(out) == whole


def test_overwriting_goes_on_where_it_was(tmp_path, texts, monkeypatch):
    """A queued job that has --overwrite ends in the end, however often it is stopped."""
    monkeypatch.setattr(computing, "_TEXTS_IN_CHUNK", 2)
    evaluate(texts, tmp_path / "old", Scorer(metrics="rouge-l"), format="csv")
    mixed(tmp_path / "whole", texts)
    for done in (2, 3):
        out = tmp_path / str(done)
        shutil.copytree(tmp_path / "old", out)
        with pytest.raises(Stopped):
            mixed(out, texts, overwrite=True, on_progress=stop_at(done))
        assert (out / "scores.csv").read_bytes() == (tmp_path / "old/scores.csv").read_bytes()
        assert mixed(out, texts, overwrite=True).resumed_from == done
        assert results_of(out) == results_of(tmp_path / "whole")


def command_of(table, out):
    command = ["evaluate", str(table), "--out", str(out)]
    return [*command, "--metrics", "vlscore,bleu-1", "--workers", "0", "--batch-size", "1", "-q"]


def test_the_command_killed_at_random_ends_with_the_same_bytes(tmp_path):
    records = [json.loads(line) for line in DEMO.read_text().splitlines()]
    rows = [
        record | {"id": f"{turn}-{record['id']}", "image": str(DEMO.parent / record["image"])}
        for turn in range(5)
        for record in records
    ]
    rows[5]["image"] = "absent.dcm"
    table = write_table(tmp_path / "studies.jsonl", rows)
    out, rng = tmp_path / "killed", random.Random()
    seed = rng.random()
    rng.seed(seed)
    # Into the first chunks, and into the writing of the results.
    for sign in (out / ".parts" / "part-00000000", out / ".parts" / "final"):
        process = started(command_of(table, out), tmp_path / "errors")
        while not sign.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.1)
        process.kill()
        assert process.wait() in (-signal.SIGKILL, 1), (tmp_path / "errors").read_text()
    for folder in (out, tmp_path / "whole"):
        done = CliRunner().invoke(app, command_of(table, folder))
        assert done.exit_code == 1, done.output
    assert results_of(out) == results_of(tmp_path / "whole"), f"seed {seed}"
    assert json.loads((out / "summary.json").read_text())["scored"] == len(rows) - 1


# --- two runs -------------------------------------------------------------------------------------


def test_a_second_run_into_a_folder_is_refused_and_nothing_is_lost(tmp_path, scorer):
    table, _ = make_table(tmp_path, 3 * CHUNK)
    out = tmp_path / "out"
    inside, go_on = threading.Event(), threading.Event()

    def wait(done, failed):
        inside.set()
        assert go_on.wait(60)

    results = []
    first = threading.Thread(
        target=lambda: results.append(evaluate(table, out, scorer, on_progress=wait))
    )
    first.start()
    assert inside.wait(60)
    for overwrite in (False, True):
        with pytest.raises(FolderInUse, match="another run is writing"):
            evaluate(table, out, scorer_of(), overwrite=overwrite)
    go_on.set()
    first.join()
    assert results[0].summary.scored == 3 * CHUNK
    assert len(read_scores(results[0])) == 3 * CHUNK


# --- finished -------------------------------------------------------------------------------------


def test_a_finished_run_called_again_says_so_and_changes_nothing(tmp_path, scorer):
    table, _ = make_table(tmp_path, 3)
    first = evaluate(table, tmp_path / "out", scorer)
    assert not first.unchanged
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    encoder = HashEncoder()
    again = evaluate(table, tmp_path / "out", Scorer(encoder, batch_size=BATCH))
    assert again.unchanged
    assert (encoder.image_calls, encoder.report_rows) == (0, 0)
    assert again.summary == first.summary
    assert {path: path.stat().st_mtime_ns for path in before if path.name != ".lock"} == {
        path: when for path, when in before.items() if path.name != ".lock"
    }


def test_other_settings_are_refused_with_what_differs(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    evaluate(table, tmp_path / "out", scorer)
    with pytest.raises(InvalidSetting, match=r"txt: all against auto.*--overwrite"):
        evaluate(table, tmp_path / "out", scorer_of(text_policy="auto"))
    write_table(table, make_table(tmp_path, 3)[1])
    with pytest.raises(InvalidSetting, match=r"table_sha256.*--overwrite"):
        evaluate(table, tmp_path / "out", scorer)


def test_overwriting_fails_before_it_touches_anything(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    evaluate(table, tmp_path / "out", scorer)
    before = results_of(tmp_path / "out") | {"run": (tmp_path / "out/run.json").read_bytes()}
    for slip, options in (
        ("absent.jsonl", {}),
        (table.name, {"columns": ColumnNames(image="picture")}),
        (table.name, {"image_root": tmp_path / "absent"}),
        (table.name, {"format": "xlsx"}),
    ):
        with pytest.raises((InvalidTable, InvalidSetting)):
            evaluate(tmp_path / slip, tmp_path / "out", scorer, overwrite=True, **options)
    left_unfinished(
        write_table(table, make_table(tmp_path, CHUNK + 1)[1]),
        tmp_path / "out",
        scorer,
        overwrite=True,
    )
    after = results_of(tmp_path / "out") | {"run": (tmp_path / "out/run.json").read_bytes()}
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("formats", [("parquet", "csv"), ("csv", "parquet")])
def test_no_result_of_another_format_stays_beside_the_new_one(tmp_path, scorer, formats):
    table, records = make_table(tmp_path, 3)
    evaluate(table, tmp_path / "out", scorer, format=formats[0])
    write_table(table, records[:2])
    evaluate(table, tmp_path / "out", scorer, format=formats[1], overwrite=True)
    files = {path.name for path in (tmp_path / "out").glob("scores.*")}
    assert files == {f"scores.{formats[1]}"}


@pytest.mark.parametrize("formats", [("parquet", "csv"), ("csv", "parquet")])
def test_a_finished_run_is_written_in_another_format_without_computing(tmp_path, formats):
    table, records = make_table(tmp_path, CHUNK + 2)
    spoilt(table, records, 4)
    scorer = scorer_of("vlscore,findings-f1")
    evaluate(table, tmp_path / "out", scorer, format=formats[0])
    encoder = HashEncoder()
    other = Scorer(encoder, metrics="vlscore,findings-f1", batch_size=BATCH)
    result = evaluate(table, tmp_path / "out", other, format=formats[1])
    assert (encoder.image_calls, result.scores.suffix) == (0, f".{formats[1]}")
    assert not result.unchanged
    evaluate(table, tmp_path / "at once", scorer, format=formats[1])
    assert results_of(tmp_path / "out") == results_of(tmp_path / "at once")


def test_files_of_somebody_else_are_not_replaced_unasked(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "scores.csv").write_text("mine")
    with pytest.raises(InvalidSetting, match=r"scores\.csv exists"):
        evaluate(table, tmp_path / "out", scorer)
    assert (tmp_path / "out" / "scores.csv").read_text() == "mine"


# --- further metrics ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("vlscore", "vlscore,bleu-2"),
        ("bleu-2", "bleu-2,vlscore"),
        ("cosine", "cosine,vlscore,findings-f1"),
        ("clipscore", "clipscore,cosine"),
        ("findings-f1,bleu-1", "findings-f1,bleu-1,rouge-l"),
        ("cider-d", "cider-d,chrf"),
        ("vlscore", "vlscore,cider-d"),
    ],
)
def test_metrics_added_to_a_run_are_those_computed_at_once(tmp_path, first, then, format):
    table, records = make_table(tmp_path, 2 * CHUNK + 3)
    (tmp_path / "20.png").unlink()
    records[5]["candidate"] = ""
    records[7]["candidate"] = "nan"
    # A row without a reference is none for a table whose metrics need one; clipscore needs none.
    spoilt(table, records, *([] if first == "clipscore" else [3]))
    evaluate(table, tmp_path / "out", scorer_of(first), format=format)
    added = evaluate(table, tmp_path / "out", scorer_of(then), format=format)
    at_once = evaluate(table, tmp_path / "at once", scorer_of(then), format=format)
    assert results_of(tmp_path / "out") == results_of(tmp_path / "at once")
    assert added.summary == at_once.summary


def test_adding_a_metric_does_not_compute_the_others_again(tmp_path):
    table, _ = make_table(tmp_path, 5)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    encoder = HashEncoder()
    scorer = Scorer(encoder, metrics="vlscore,bleu-1", batch_size=BATCH)
    result = evaluate(table, tmp_path / "out", scorer)
    assert list(result.summary.metrics) == ["vlscore", "bleu-1"]
    assert (encoder.image_calls, encoder.report_rows) == (0, 0)
    # Fewer metrics than there are: nothing to do.
    assert evaluate(table, tmp_path / "out", scorer_of("bleu-1")).unchanged
    # The order does not matter either.
    assert evaluate(table, tmp_path / "out", scorer_of("bleu-1,vlscore")).unchanged


def test_a_metric_named_without_the_others_joins_them(tmp_path):
    table, _ = make_table(tmp_path, 5)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    assert list(result.summary.metrics) == ["vlscore", "bleu-1"]
    evaluate(table, tmp_path / "at once", scorer_of("vlscore,bleu-1"))
    assert results_of(tmp_path / "out") == results_of(tmp_path / "at once")


def test_the_same_metric_computed_in_another_way_is_refused(tmp_path):
    table, _ = make_table(tmp_path, 2)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    before = results_of(tmp_path / "out")
    with pytest.raises(InvalidSetting, match=r"views: first-frontal against mean.*--overwrite"):
        evaluate(table, tmp_path / "out", scorer_of("vlscore,bleu-1", views="mean"))
    assert results_of(tmp_path / "out") == before


def test_a_metric_of_ones_own_stays_where_others_are_added(tmp_path):
    table, _ = make_table(tmp_path, 4)
    evaluate(table, tmp_path / "out", Scorer(metrics=[own.length_ratio]))
    # Not registered here: whoever adds to the run names it again.
    with pytest.raises(UnknownName, match=r"length-ratio.*not a registered name"):
        evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    names = "tests.metrics.own:length_ratio,bleu-1"
    evaluate(table, tmp_path / "out", Scorer(metrics=names))
    evaluate(table, tmp_path / "at once", Scorer(metrics=names))
    assert results_of(tmp_path / "out") == results_of(tmp_path / "at once")


def test_a_results_folder_imports_no_module(tmp_path, monkeypatch):
    """A folder from elsewhere may name any module in its run.json; nothing of it runs."""
    table, _ = make_table(tmp_path, 2)
    out = tmp_path / "out"
    evaluate(table, out, Scorer(metrics="bleu-1"))
    (tmp_path / "hostile.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    record = json.loads((out / "run.json").read_text())
    record["key"]["metrics"] = {"hostile:METRIC": "x", "hostile:METRIC(a=1)": "x"}
    (out / "run.json").write_text(json.dumps(record))
    with pytest.raises((InvalidSetting, UnknownName)):
        evaluate(table, out, Scorer(metrics="bleu-1"))
    assert not (tmp_path / "ran").exists()
    assert "hostile" not in sys.modules


@pytest.mark.parametrize(
    "change",
    [
        {"geometry": None},
        {"key": {"metrics": 5}},
        {"key": {"metrics": ["bleu-1"]}},
        {"key": {"metrics": {"bleu-1": None}}},
    ],
)
def test_a_record_that_was_tampered_with_is_refused(tmp_path, change):
    table, _ = make_table(tmp_path, 2)
    evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    file = tmp_path / "out" / "run.json"
    record = json.loads(file.read_text())
    record |= {**change, "key": record["key"] | change.get("key", {})}
    file.write_text(json.dumps(record))
    with pytest.raises((InvalidSetting, ChecksumMismatch)):
        evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1,rouge-l"))


def test_results_that_were_changed_are_not_added_to(tmp_path):
    table, _ = make_table(tmp_path, 2)
    first = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    first.scores.write_bytes(b"changed")
    for metrics in ("bleu-1", "bleu-1,rouge-l"):
        with pytest.raises(ChecksumMismatch, match=r"scores\.parquet has been changed"):
            evaluate(table, tmp_path / "out", Scorer(metrics=metrics))


# --- failed rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_failed_rows_are_retried_alone(tmp_path, format):
    table, _ = make_table(tmp_path, 2 * CHUNK + 3)
    metrics = "vlscore,bleu-1"
    kept = {}
    for k in (4, 20, 33):
        path = tmp_path / f"{k}.png"
        kept[path] = path.read_bytes()
        path.unlink()
    first = evaluate(table, tmp_path / "out", scorer_of(metrics), format=format)
    assert first.summary.failed == 3
    for path, content in list(kept.items())[:2]:
        path.write_bytes(content)
    # The same command alone changes nothing.
    assert evaluate(table, tmp_path / "out", scorer_of(metrics), format=format).unchanged
    encoder = HashEncoder()
    again = Scorer(encoder, metrics=metrics, batch_size=BATCH)
    result = evaluate(table, tmp_path / "out", again, format=format, retry_failed=True)
    assert (result.summary.scored, result.summary.failed) == (2 * CHUNK + 2, 1)
    assert encoder.image_calls == 2  # of one image each
    evaluate(table, tmp_path / "at once", scorer_of(metrics), format=format)
    assert results_of(tmp_path / "out") == results_of(tmp_path / "at once")
    # The third row, and then none.
    path, content = list(kept.items())[2]
    path.write_bytes(content)
    last = evaluate(table, tmp_path / "out", again, format=format, retry_failed=True)
    assert last.summary.failed == 0
    done = evaluate(table, tmp_path / "out", again, format=format, retry_failed=True)
    assert done.unchanged
    evaluate(table, tmp_path / "whole", scorer_of(metrics), format=format)
    assert results_of(tmp_path / "out") == results_of(tmp_path / "whole")


def test_a_retry_that_is_stopped_goes_on(tmp_path):
    rows = 2 * CHUNK + 2
    table, _ = make_table(tmp_path, rows)
    kept = {path: path.read_bytes() for path in tmp_path.glob("*.png")}
    for path in kept:
        path.unlink()
    evaluate(table, tmp_path / "out", scorer_of())
    for path, content in kept.items():
        path.write_bytes(content)
    left_unfinished(table, tmp_path / "out", scorer_of(), retry_failed=True)
    # Until the end, the earlier results stand.
    assert pq.read_table(tmp_path / "out" / "scores.parquet")["vlscore"].null_count == rows
    result = evaluate(table, tmp_path / "out", scorer_of(), retry_failed=True)
    assert (result.resumed_from, result.summary.scored) == (CHUNK, rows)
    evaluate(table, tmp_path / "whole", scorer_of())
    assert results_of(tmp_path / "out") == results_of(tmp_path / "whole")


def test_a_retry_names_the_metrics_of_the_run(tmp_path):
    table, _ = make_table(tmp_path, 2)
    (tmp_path / "0.png").unlink()
    evaluate(table, tmp_path / "out", scorer_of("vlscore,cosine"))
    for metrics in ("vlscore", "vlscore,cosine,bleu-1"):
        with pytest.raises(InvalidSetting, match="name the metrics of the run"):
            evaluate(table, tmp_path / "out", scorer_of(metrics), retry_failed=True)


def test_a_retry_of_nothing_computes_the_whole_run(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    result = evaluate(table, tmp_path / "out", scorer, retry_failed=True)
    assert result.summary.scored == 2


def test_rows_that_failed_alike_may_be_retried_and_fail_again(tmp_path, scorer):
    table, records = make_table(tmp_path, 1)
    many = [records[0] | {"id": f"s{k}", "image": f"absent{k}.png"} for k in range(120)]
    write_table(table, many)
    evaluate(table, tmp_path / "out", scorer, keep_going=True)
    result = evaluate(table, tmp_path / "out", scorer, retry_failed=True)
    assert result.summary.failed == 120
