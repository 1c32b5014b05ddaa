"""Values come back as they were written, or not at all: after kills, damage and other writers."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from vlscore.core import Cache, cache, open_cache
from vlscore.core.cache import cache_folder

REPOSITORY = Path(__file__).resolve().parents[2]
FACTS = {"encoder": "one", "dim": 4}
GIB = 1 << 30


def value(number: int, size: int = 4) -> np.ndarray:
    return np.full(size, number, dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def full(path):
    kept = Cache(path, GIB)
    kept.namespace(FACTS).put({f"text {n}": value(n) for n in range(5)})
    kept.close()
    return path


def found_in(folder, count=7):
    return Cache(folder, GIB).namespace(FACTS).get([f"text {n}" for n in range(count)])


@pytest.mark.parametrize(
    "stored",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(2.5, dtype=">f8"),
        np.zeros((0, 4), dtype=np.int64),
        np.array([True, False]),
        {"label": "ANAT-DP", "span": [0, 3], "none": None},
        "an answer with a µ and half a pair \ud800",
        [],
    ],
    ids=repr,
)
def test_arrays_and_json_come_back(path, stored):
    contents = ["a text", b"a digest", ("candidate", "reference"), "half \ud800"]
    Cache(path, GIB).namespace(FACTS).put(dict.fromkeys(contents, stored))
    found = Cache(path, GIB).namespace(FACTS).get(contents)
    assert list(found) == contents
    for each in found.values():
        if isinstance(stored, np.ndarray):
            assert each.dtype == stored.dtype.newbyteorder("=")
            assert each.flags.writeable
        np.testing.assert_array_equal(each, stored)


def test_facts_and_contents_are_not_confused(full):
    kept = Cache(full, GIB)
    assert kept.namespace({**FACTS, "encoder": "two"}).get(["text 0"]) == {}
    assert kept.namespace(FACTS).get([b"text 0", ("text 0",), "text 9"]) == {}
    assert sorted(found_in(full)) == [f"text {n}" for n in range(5)]


def test_the_first_value_stays_and_is_what_a_later_writer_is_given(full):
    names = Cache(full, GIB).namespace(FACTS)
    given = names.put({"text 0": value(9), "text 8": value(8)})
    assert [int(given[name][0]) for name in ("text 0", "text 8")] == [0, 8]
    assert int(names.get(["text 0"])["text 0"][0]) == 0


def test_nothing_of_a_content_or_value_is_readable(path):
    kept = Cache(path, GIB)
    report = "A spiculated mass in the lingula."
    kept.namespace({"holds": "answers"}).put({report: {"finding": "spiculated mass"}})
    kept.close()
    held = b"".join(each.read_bytes() for each in path.iterdir())
    assert len(held) > 1000
    for word in (b"spiculated", b"lingula", b"finding", b"answers"):
        assert word not in held


@pytest.mark.parametrize(
    "change",
    [
        "value = zeroblob(length(value))",
        "value = x'00'",
        "value = 'abc'",
        "value = 5",
        "value = (SELECT value FROM entries WHERE rowid = 1)",
    ],
)
def test_a_damaged_entry_is_deleted_and_said(full, change):
    with sqlite3.connect(full / "vlscore.sqlite") as db:
        db.execute(f"UPDATE entries SET {change} WHERE rowid = 3")
    db.close()
    names = Cache(full, GIB).namespace(FACTS)
    wanted = [f"text {n}" for n in range(5)]
    with pytest.warns(RuntimeWarning, match="1 damaged entries"):
        found = names.get(wanted)
    assert list(found) == [name for name in wanted if name != "text 2"]
    names.put({"text 2": value(2)})
    assert len(names.get(wanted)) == 5


@pytest.mark.parametrize("where", [0, 8192])
def test_a_file_that_is_damaged_as_a_whole_costs_one_warning_and_no_run(full, where):
    with (full / "vlscore.sqlite").open("r+b") as stream:
        stream.seek(where)
        stream.write(b"\xff" * (1 << 16))
    kept = Cache(full, GIB)
    names = kept.namespace(FACTS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert names.get(["text 0"]) == {}
        assert int(names.put({"text 0": value(7)})["text 0"][0]) == 7
        assert names.get(["text 0"]) == {}
    assert ["continues without it" in str(warning.message) for warning in caught] == [True]
    kept.clear()
    names.put({"text 0": value(7)})
    assert int(names.get(["text 0"])["text 0"][0]) == 7


def test_a_full_disk_costs_one_warning(path, monkeypatch):
    names = Cache(path, GIB).namespace(FACTS)
    names.put({"a": [1]})
    connection = names._cache._connection
    connection.execute("PRAGMA max_page_count = 1")
    with pytest.warns(RuntimeWarning, match=r"full.*continues without it"):
        assert names.put({"b": list(range(20_000))}) == {"b": list(range(20_000))}
    assert names.get(["a"]) == {}


def test_the_oldest_give_way(path):
    kept = Cache(path, 400_000)
    names = kept.namespace(FACTS)
    for number in range(40):
        names.put({f"text {number}": value(number, 5000)})
        # Values take whole pages.
        assert kept.size()[1] <= 400_000 + 8192
    left = {number for number in range(40) if names.get([f"text {number}"])}
    assert left == set(range(min(left), 40))
    assert 10 < len(left) < 20
    kept.close()
    assert kept.path.stat().st_size <= 450_000


def test_cleared_by_another_process_meanwhile(full):
    one, other = Cache(full, GIB), Cache(full, GIB)
    names = one.namespace(FACTS)
    assert names.get(["text 0"])
    other.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names.put({"text 0": value(6)})
    assert other.namespace(FACTS).get(["text 0"]) == {}


def test_threads_share_a_cache(path):
    names = Cache(path, GIB).namespace(FACTS)
    problems = []

    def work(first):
        try:
            for number in range(first, first + 30):
                stands = names.put({f"text {number}": value(number)})
                assert names.get(list(stands)).keys() == stands.keys()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 60, 15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert names._cache.size()[0] == 75


WRITER = """
import sys
from pathlib import Path
from vlscore.core import Cache
names = Cache(Path(sys.argv[1]), 1 << 30).namespace({"encoder": "one", "dim": 4})
first, last, mark = map(int, sys.argv[2:])
for number in range(first, last, 3):
    names.put({f"text {n}": [mark] * 2000 for n in range(number, number + 3)})
    print(number, flush=True)
"""


def _writer(path: Path, first: int, last: int, mark: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, path, first, last, mark]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, env=environment, cwd=REPOSITORY
    )


def test_two_processes_write_at_once_and_a_killed_one_leaves_whole_entries(path):
    writers = [_writer(path, 0, 150, 1), _writer(path, 75, 225, 2)]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    found = found_in(path, 225)
    marks = [found[f"text {n}"][0] for n in range(225)]
    assert set(marks[:75]) == {1}
    assert set(marks[150:]) == {2}
    # Whoever was first: three at a time, all of them or none.
    assert all(len(set(marks[n : n + 3])) == 1 for n in range(0, 225, 3))
    killed = _writer(path, 1000, 3_000_000, 3)
    for _ in range(20):
        assert killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = Cache(path, GIB)
        count, _ = kept.size()
        assert count >= 225 + 60
        assert count % 3 == 0
        names = kept.namespace(FACTS)
        assert len(names.get([f"text {n}" for n in range(1000, 1060)])) == 60
        names.put({"more": [1]})
        assert names.get(["more"]) == {"more": [1]}


def test_a_journal_that_vanishes_does_not_empty_the_cache(full):
    """Another process deletes its journal between the list of the files and their sizes."""
    (full / "vlscore.sqlite-journal").symlink_to(full / "gone")
    cache = Cache(full, GIB)
    (full / "vlscore.sqlite-journal").unlink()
    names = cache.namespace(FACTS)
    names.put({"more": [1]})
    assert cache.most_bytes > 0
    assert names.get(["text 0", "more"]).keys() == {"text 0", "more"}


def test_a_forked_process_opens_its_own_connection(full):
    names = Cache(full, GIB).namespace(FACTS)
    assert names.get(["text 0"])
    child = os.fork()
    if not child:
        names.put({"text 70": [70]})
        os._exit(0 if names.get(["text 70"]) == {"text 70": [70]} else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert names.get(["text 70"]) == {"text 70": [70]}


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_files_are_the_users_alone(path, mode):
    path.mkdir(mode=mode)
    names = Cache(path, GIB).namespace(FACTS)
    umask = os.umask(0o002)
    try:
        names.put({"a": [1]})
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.iterdir()}
    finally:
        os.umask(umask)
    assert modes == dict.fromkeys(modes, 0o600)
    assert {"vlscore.sqlite", "vlscore.sqlite-wal"} <= modes.keys()


@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_others_may_write_is_not_believed(full, which):
    there = full if which == "folder" else full / "vlscore.sqlite"
    there.chmod(0o770)
    names = Cache(full, GIB).namespace(FACTS)
    with pytest.warns(RuntimeWarning, match=r"others can write to it.*continues without it"):
        assert names.get(["text 0"]) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
def test_what_belongs_to_another_user_is_not_believed(full, monkeypatch):
    owner = full.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:
        # The files of root are believed, who may do anything here; so these get another owner.
        try:
            os.chown(full, 4321, -1)
        except OSError:
            pytest.skip("files cannot be given away here")
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert found_in(full) == {}


def test_no_log_is_shared_on_a_disk_of_several_machines(monkeypatch, tmp_path):
    """SQLite's write-ahead log needs memory that all writers share."""
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(cache, "_MOUNTS", mounts)
    lines = ["disk / ext4 rw 0 0", f"server:/x {tmp_path}/with\\040space nfs4 rw 0 0"]
    mounts.write_text("\n".join(lines) + "\n")
    for folder, mode in (("with space/home", "delete"), ("own", "wal")):
        kept = Cache(tmp_path / folder, GIB)
        assert kept.namespace(FACTS).put({"a": [1]}) == {"a": [1]}
        assert kept._connection.execute("PRAGMA journal_mode").fetchone() == (mode,)


# -- where it is ----------------------------------------------------------------------------------


@pytest.fixture
def set_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "set"))
    monkeypatch.delenv("VLSCORE_CACHE_GIB", raising=False)
    return tmp_path / "set"


def test_the_variable_names_the_folder(set_folder):
    assert cache_folder() == set_folder
    assert open_cache().folder == set_folder
    assert not set_folder.exists()


def test_without_it_the_systems_folder_for_caches_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("VLSCORE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "vlscore"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "vlscore"


def test_off_is_off(monkeypatch, tmp_path, set_folder):
    assert open_cache(False) is None
    monkeypatch.setenv("VLSCORE_CACHE", " Off ")
    assert open_cache() is None
    assert open_cache(tmp_path / "named").folder == tmp_path / "named"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("VLSCORE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert open_cache() is None
