"""A folder of results appears complete or not at all, whatever stops its run."""

import hashlib
import json
import os
import resource
import signal
from pathlib import Path

import pytest

from tests.killed_process import Killed, killed_at
from vlscore.core import finished_run, output_folder, write_results
from vlscore.errors import ChecksumMismatch, FolderInUse, InvalidSetting, OutputFailed

NEW = {"a.txt": "one", "b.txt": "two"}


def make(out, key=None, files=NEW, **options):
    """Return a run that wrote these files, and whether they were there already."""

    def write(path: Path):
        for name, text in files.items():
            (path / name).write_text(text)
        return {"notes": []}

    key = key or {"seed": 0}
    with output_folder(out, key, **options) as finished:
        return finished or write_results(out, key, write), finished is not None


def content(out):
    return {p.name: p.read_bytes() for p in out.iterdir() if not p.name.startswith(".")}


def test_a_finished_folder_is_not_changed_by_the_same_request(tmp_path):
    assert not make(tmp_path / "run")[1]
    before = content(tmp_path / "run")
    again, is_unchanged = make(tmp_path / "run", files={"a.txt": "other"})
    assert is_unchanged
    assert content(tmp_path / "run") == before
    assert finished_run(tmp_path / "run").record == again.record


def test_another_request_is_refused_by_what_differs(tmp_path):
    make(tmp_path / "run", {"seed": 0, "metrics": ["bleu-4"]})
    with pytest.raises(InvalidSetting, match="seed: 0 there, 1 now"):
        make(tmp_path / "run", {"seed": 1, "metrics": ["bleu-4"]})


def test_overwriting_computes_again_and_removes_only_results(tmp_path):
    out = tmp_path / "run"
    make(out)
    (out / "figure.pdf").write_text("the user's")
    _, is_unchanged = make(out, {"seed": 1}, {"a.txt": "three"}, overwrite=True)
    assert not is_unchanged
    names = {"a.txt": b"three", "figure.pdf": b"the user's"}
    assert {k: v for k, v in content(out).items() if k != "run.json"} == names
    assert not make(out, {"seed": 1}, overwrite=True)[1]


def test_files_of_others_are_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match=r"thesis\.txt, which no run"):
        make(tmp_path)
    assert content(tmp_path) == {"thesis.txt": b"mine"}


def test_a_changed_result_is_noticed(tmp_path):
    make(tmp_path / "run")
    (tmp_path / "run" / "b.txt").write_text("edited")
    with pytest.raises(ChecksumMismatch, match=r"b\.txt has been changed"):
        make(tmp_path / "run")
    make(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "b.txt").read_text() == "two"


def test_an_error_while_writing_leaves_what_was_there(tmp_path):
    out = tmp_path / "run"
    make(out)
    before = content(out)

    def fail(path):
        (path / "a.txt").write_text("half")
        raise OSError("the disk is full")

    with (
        pytest.raises(OSError, match="full"),
        output_folder(out, {"seed": 0}, overwrite=True),
    ):
        write_results(out, {"seed": 0}, fail)
    assert content(out) == before


def test_a_full_disk_is_one_line_and_the_same_command_goes_on_later(tmp_path):
    out = tmp_path / "run"

    def fill(path):
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
        (path / "a.txt").write_bytes(b"x" * 100)

    def absent(path):
        (tmp_path / "absent.png").read_bytes()

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with (
            output_folder(out, {"seed": 0}),
            pytest.raises(OutputFailed, match="too large"),
        ):
            write_results(out, {"seed": 0}, fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    # Another file that cannot be read is no fault of the disk.
    with output_folder(out, {"seed": 0}), pytest.raises(FileNotFoundError):
        write_results(out, {"seed": 0}, absent)
    make(out)
    make(tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_two_runs_cannot_write_one_folder(tmp_path):
    with output_folder(tmp_path / "run", {}), pytest.raises(FolderInUse, match="another run"):
        make(tmp_path / "run")


@pytest.mark.parametrize("overwrites", [False, True])
def test_killed_at_any_operation_the_same_command_gives_the_same_bytes(
    tmp_path, monkeypatch, overwrites
):
    make(tmp_path / "whole", {"seed": 1})
    expected = content(tmp_path / "whole")
    real = {name: getattr(os, name) for name in ("replace", "fsync", "unlink", "mkdir")}
    for kill_at in range(100):
        out = tmp_path / f"run-{kill_at}"
        if overwrites:
            make(out, {"seed": 0}, {"a.txt": "old", "c.txt": "old"})
        try:
            with killed_at(monkeypatch, kill_at, real):
                make(out, {"seed": 1}, overwrite=overwrites)
            ended = True
        except Killed:
            ended = False
        make(out, {"seed": 1}, overwrite=overwrites)
        assert content(out) == expected, f"killed at operation {kill_at}"
        assert not (out / ".partial").exists()
        if ended:
            break
    assert kill_at > 8


def planted(folder, files, digests=None):
    """A folder `.partial` as a run would leave it, with these files."""
    (folder / ".partial").mkdir(parents=True)
    for name, text in files.items():
        (folder / ".partial" / name).write_text(text)
    found = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    record = {"key": {"seed": 0}, "results": digests or found}
    (folder / ".partial" / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize("digests", [None, {"thesis.docx": "0"}])
def test_planted_results_replace_no_file_of_a_user(tmp_path, digests):
    (tmp_path / "thesis.docx").write_text("mine")
    planted(tmp_path, {"thesis.docx": "evil"}, digests)
    with pytest.raises(InvalidSetting, match=r"holds thesis\.docx, which no run"):
        make(tmp_path)
    assert (tmp_path / "thesis.docx").read_text() == "mine"


@pytest.mark.parametrize(
    "text", ['{"x": 1}', "", "[" * 100_000, '{"key": {}, "results": {"a": 1}}']
)
def test_a_damaged_partial_folder_does_not_block_the_folder(tmp_path, text):
    out = tmp_path / "run"
    (out / ".partial").mkdir(parents=True)
    (out / ".partial" / "run.json").write_text(text)
    make(out)
    make(tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")
    assert not (out / ".partial").exists()


def test_a_damaged_result_in_the_partial_folder_is_computed_again(tmp_path):
    out = tmp_path / "run"
    planted(out, {"a.txt": "half"}, {"a.txt": hashlib.sha256(b"whole").hexdigest()})
    make(out)
    make(tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_a_folder_with_the_name_of_a_result_is_refused_before_anything_is_moved(tmp_path):
    make(tmp_path, {"seed": 0}, {"a.txt": "old", "b.txt": "old"})
    before = content(tmp_path)
    (tmp_path / "z.txt").mkdir()
    with pytest.raises(InvalidSetting, match=r"z\.txt is a folder"):
        make(tmp_path, {"seed": 1}, {"a.txt": "new", "z.txt": "new"}, overwrite=True)
    (tmp_path / "z.txt").rmdir()
    assert content(tmp_path) == before
    assert not (tmp_path / ".partial").exists()


def test_a_folder_whose_run_was_killed_while_it_moved_says_so(tmp_path):
    make(tmp_path, {"seed": 0}, {"a.txt": "old"})
    planted(tmp_path, {"a.txt": "new"})
    with pytest.raises(ChecksumMismatch, match="repeat its command, which completes the folder"):
        finished_run(tmp_path).check()
