"""Writing files: whole or not at all, without NaN, and failing in our own tree of errors."""

import errno
import hashlib
import json
import math
import os
import resource
import signal

import numpy as np
import pytest

from vlscore.core import atomic_write, file_digest, json_line, write_json
from vlscore.errors import OutputFailed


def test_json_holds_no_nan(tmp_path):
    write_json(tmp_path / "x.json", {"a": [math.nan, math.inf, 1.5], "b": (np.float32(2), None)})
    text = (tmp_path / "x.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text) == {"a": [None, None, 1.5], "b": [2.0, None]}


def _write_lines(path, records):
    with atomic_write(path) as stream:
        stream.writelines(map(json_line, records))


def test_lines_of_json_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.jsonl"
    _write_lines(path, ({"text": f"{k} ü\n"} for k in range(3)))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["0 ü\n", "1 ü\n", "2 ü\n"]
    assert lines[0] + "\n" == json_line({"text": "0 ü\n"})

    def fails():
        yield {"text": "new"}
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        _write_lines(path, fails())
    assert path.read_text(encoding="utf-8").splitlines() == lines
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.jsonl"]


@pytest.mark.parametrize("name", ["taken/x.json", "taken/below/x.json"])
def test_a_file_where_a_folder_is_meant_is_named(tmp_path, name):
    (tmp_path / "taken").touch()
    with pytest.raises(OutputFailed, match=r"x\.json cannot be written: .*taken is a file, not a"):
        write_json(tmp_path / name, {})


def test_a_disk_that_takes_no_more(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OutputFailed, match="cannot be written: File too large"):
            _write_lines(path, ("x" * 1000 for _ in range(1000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]


def test_an_error_of_another_file_is_left_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"), atomic_write(tmp_path / "x") as stream:
        stream.write((tmp_path / "absent").read_text())
    with pytest.raises(OutputFailed, match="No space left"), atomic_write(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_digest_is_taken_once_while_a_file_does_not_change(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    for content in (b"abd", b"abe"):
        # Written just now: another change may have the same time.
        assert file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
        path.write_bytes(content)
    os.utime(path, ns=(0, 0))
    first = file_digest(path)
    monkeypatch.setattr("builtins.open", None)
    assert file_digest(str(path)) == first
    monkeypatch.undo()
    path.write_bytes(b"abf")
    os.utime(path, ns=(0, 1))
    assert file_digest(path) == hashlib.sha256(b"abf").hexdigest() != first


def test_a_pipe_and_a_device_have_no_digest(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="no ordinary file"):
            file_digest(tmp_path / name)
