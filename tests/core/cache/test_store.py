"""Entries come back as they were written, or not at all: after kills, damage and other writers."""

import contextlib
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from vlscore.core import Entry, Store, store
from vlscore.errors import InvalidSetting

REPOSITORY = Path(__file__).resolve().parents[3]
FACTS = {"encoder": "one", "dim": 4}
GIB = 1 << 30


def key(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def entry(number: int, size: int = 16) -> Entry:
    return Entry(bytes([number % 256]) * size, (size // 4,), number % 2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "entries.sqlite"


@pytest.fixture
def full(path):
    kept = Store(path, GIB)
    kept.space(FACTS).put({key(n): entry(n) for n in range(5)})
    kept.close()
    return path


def test_entries_come_back_in_another_store_of_the_same_file(full):
    found = Store(full, GIB).space(FACTS).get([key(n) for n in range(7)])
    assert found == {key(n): entry(n) for n in range(5)}


def test_other_facts_know_nothing(full):
    assert Store(full, GIB).space({**FACTS, "encoder": "two"}).get([key(0)]) == {}


def test_the_first_value_stays_and_is_what_a_later_writer_is_given(full):
    space = Store(full, GIB).space(FACTS)
    assert space.put({key(0): entry(9), key(8): entry(8)}) == {key(0): entry(0), key(8): entry(8)}
    assert space.get([key(0)]) == {key(0): entry(0)}


def test_asking_makes_no_file(path):
    kept = Store(path, GIB)
    assert (kept.space(FACTS).get([key(0)]), kept.info(), kept.verify()) == ({}, [], (0, 0))
    assert not path.parent.exists()


def test_the_folder_is_the_users_alone(full):
    assert full.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET value = x'00000000000000000000000000000000' WHERE id = 3",
        "UPDATE entries SET flag = 1 - flag WHERE id = 3",
        "UPDATE entries SET shape = '2x2' WHERE id = 3",
        "UPDATE entries SET digest = x'00' WHERE id = 3",
        "UPDATE entries SET value = (SELECT value FROM entries WHERE id = 1), "
        "digest = (SELECT digest FROM entries WHERE id = 1) WHERE id = 3",
    ],
)
def test_a_damaged_entry_is_thrown_away_and_said(full, change):
    with sqlite3.connect(full) as db:
        db.execute(change)
    db.close()
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    with pytest.warns(RuntimeWarning, match="1 damaged entries"):
        found = space.get([key(n) for n in range(5)])
    assert found == {key(n): entry(n) for n in (0, 1, 3, 4)}
    assert kept.damaged == 1
    space.put({key(2): entry(2)})
    assert space.get([key(2)]) == {key(2): entry(2)}


def test_verify_finds_every_damaged_entry(full):
    with sqlite3.connect(full) as db:
        db.execute("UPDATE entries SET value = x'01' WHERE id IN (2, 4)")
    db.close()
    kept = Store(full, GIB)
    assert kept.verify() == (5, 2)
    assert kept.verify() == (3, 0)


@pytest.mark.parametrize("where", [0, 4096])
def test_a_file_that_is_damaged_as_a_whole_costs_one_warning_and_no_run(full, where):
    with full.open("r+b") as stream:
        stream.seek(where)
        stream.write(b"\xff" * (1 << 16))
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert space.get([key(0)]) == {}
        assert space.put({key(0): entry(7)}) == {key(0): entry(7)}
        assert space.get([key(0)]) == {}
    assert ["goes on without it" in str(warning.message) for warning in caught] == [True]
    kept.remove()
    space.put({key(0): entry(7)})
    assert space.get([key(0)]) == {key(0): entry(7)}


def test_a_place_that_cannot_be_written_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    space = Store(tmp_path / "file" / "entries.sqlite", GIB).space(FACTS)
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert space.put({key(0): entry(0)}) == {key(0): entry(0)}


def test_the_least_recently_used_give_way(path, monkeypatch):
    hour = [1000]
    monkeypatch.setattr(store, "_now", lambda: hour[0])
    kept = Store(path, 300_000)
    space = kept.space(FACTS)
    for number in range(20):
        hour[0] += 1
        space.put({key(number): entry(number, 10_000)})
    hour[0] += 1
    assert space.get([key(0), key(1)])
    for number in range(20, 40):
        hour[0] += 1
        space.put({key(number): entry(number, 10_000)})
        assert kept.used_bytes() <= 300_000
    left = {number for number in range(40) if space.get([key(number)])}
    assert {0, 1, 39, 38, 37, 36} <= left
    assert not left & {2, 3, 4, 5}
    assert path.stat().st_size <= 400_000


def test_what_is_in_use_does_not_give_way_to_more(path):
    kept = Store(path, 300_000)
    space = kept.space(FACTS)
    for number in range(60):
        value = entry(number, 10_000)
        assert space.put({key(number): value}) == {key(number): value}
    assert kept.used_bytes() <= 300_000
    assert space.get([key(0)])
    assert not space.get([key(59)])


def test_pruning_to_nothing_empties_the_file(full):
    kept = Store(full, GIB)
    assert kept.prune(0) >= 0
    assert (kept.info(), kept.verify()) == ([], (0, 0))
    space = kept.space(FACTS)
    space.put({key(1): entry(1)})
    assert space.get([key(1)]) == {key(1): entry(1)}


def test_emptied_by_another_process_meanwhile(full):
    one, other = Store(full, GIB), Store(full, GIB)
    space = one.space(FACTS)
    assert space.get([key(0)])
    other.prune(0)
    other.space({"encoder": "two"}).put({key(0): entry(5)})
    assert space.get([key(0)]) == {}
    space.put({key(0): entry(6)})
    assert space.get([key(0)]) == {key(0): entry(6)}
    assert other.space({"encoder": "two"}).get([key(0)]) == {key(0): entry(5)}
    assert one.damaged == other.damaged == 0


def test_threads_share_a_store(path):
    space = Store(path, GIB).space(FACTS)
    problems = []

    def work(first):
        try:
            for number in range(first, first + 40):
                stands = space.put({key(number): entry(number)})
                assert space.get([key(number)]) == stands
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 80, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert space.store.verify() == (100, 0)


WRITER = """
import sys
from pathlib import Path
from tests.core.cache.test_store import FACTS, entry, key
from vlscore.core import Entry, Store
space = Store(Path(sys.argv[1]), 1 << 30).space(FACTS)
first, last, mark = map(int, sys.argv[2:])
for number in range(first, last, 3):
    numbers = range(number, number + 3)
    space.put({key(n): Entry(bytes([mark]) * 5000, (5000,), 0) for n in numbers})
    print(number, flush=True)
"""


def _writer(path: Path, first: int, last: int, mark: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, path, first, last, mark]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, env=environment, cwd=REPOSITORY
    )


def test_two_processes_write_at_once(path):
    writers = [_writer(path, 0, 300, 1), _writer(path, 150, 450, 2)]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    kept = Store(path, GIB)
    assert kept.verify() == (450, 0)
    found = kept.space(FACTS).get([key(n) for n in range(450)])
    marks = [found[key(n)].value[0] for n in range(450)]
    assert set(marks[:150]) == {1}
    assert set(marks[300:]) == {2}
    # Whoever was first: three at a time, all of them or none.
    assert all(len(set(marks[n : n + 3])) == 1 for n in range(0, 450, 3))


def test_a_writer_that_is_killed_leaves_whole_entries(path):
    for mark in range(3):
        writer = _writer(path, 0, 3_000_000, mark)
        for _ in range(20):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    kept = Store(path, GIB)
    count, damaged = kept.verify()
    assert (damaged, count % 3) == (0, 0)
    # Later writers begin with what is there.
    assert count >= 60
    # It can be written, too.
    assert kept.space(FACTS).put({b"x" * 32: entry(1)}) == {b"x" * 32: entry(1)}
    assert kept.verify() == (count + 1, 0)


def test_a_forked_process_opens_its_own_connection(full):
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    assert space.get([key(0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        stands = space.put({key(70): entry(70)}) == {key(70): entry(70)}
        os._exit(0 if stands and space.get([key(0)]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert space.get([key(70)]) == {key(70): entry(70)}


@pytest.mark.parametrize(
    "change",
    [
        "value = 'abc'",
        "value = 5",
        "used = 'x'",
        "flag = 'x'",
        "flag = 1.5",
        "content = 'x'",
        "digest = 'x'",
        "digest = 7",
        "shape = 7",
        "shape = CAST(x'ff32' AS TEXT)",
        "shape = 'axb'",
    ],
)
def test_a_value_of_another_type_costs_its_entry_alone(full, change):
    with contextlib.closing(sqlite3.connect(full)) as db, db:
        db.execute(f"UPDATE entries SET {change} WHERE id = 3")
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    wanted = [key(n) for n in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = space.get(wanted)
    assert found == {key(n): entry(n) for n in (0, 1, 3, 4)}
    assert space.put({key(7): entry(7)}) == {key(7): entry(7)}
    kept.close()
    read, bad = Store(full, GIB).verify()
    assert (read, bad) in {(5, 0), (6, 1)}


def test_a_shape_of_letters_with_a_digest_that_is_right_costs_its_entry(full):
    from vlscore.core.store_file import entry_digest

    facts = Store(full, GIB).space(FACTS).digest
    with contextlib.closing(sqlite3.connect(full)) as db, db:
        db.execute(
            "UPDATE entries SET shape = 'axb', digest = ? WHERE id = 3",
            (entry_digest(facts, key(2), "axb", 0, entry(2).value),),
        )
    with pytest.warns(RuntimeWarning, match="1 damaged entries"):
        assert len(Store(full, GIB).space(FACTS).get([key(n) for n in range(5)])) == 4


def test_a_flipped_bit_of_the_schema_costs_one_warning_and_no_run(full):
    with contextlib.closing(sqlite3.connect(full)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(full.read_bytes())
    content[content.index(b"tableentriesentries") + 8] ^= 0x80
    full.write_bytes(content)
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    with pytest.warns(RuntimeWarning, match="goes on without it"):
        assert space.get([key(0)]) == {}
    assert space.put({key(0): entry(7)}) == {key(0): entry(7)}
    for look in (kept.verify, kept.info, lambda: kept.prune(0)):
        with pytest.raises(sqlite3.DatabaseError):
            look()


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_files_are_the_users_alone(path, mode):
    path.parent.mkdir(mode=mode)
    kept = Store(path, GIB)
    umask = os.umask(0o002)
    try:
        kept.space(FACTS).put({key(0): entry(0)})
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(umask)
    assert modes == dict.fromkeys(modes, 0o600)
    assert path.name in modes
    assert f"{path.name}-wal" in modes


def test_a_file_that_others_may_read_becomes_the_users_alone(full):
    full.chmod(0o644)
    assert Store(full, GIB).space(FACTS).get([key(0)]) == {key(0): entry(0)}
    assert full.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("which", ["folder", "file"])
@pytest.mark.parametrize("more", [0o002, 0o020])
def test_what_others_may_write_is_not_believed(full, which, more):
    place = full.parent if which == "folder" else full
    place.chmod(place.stat().st_mode & 0o777 | more)
    kept = Store(full, GIB)
    space = kept.space(FACTS)
    with pytest.warns(RuntimeWarning, match=r"other users may write.*goes on without it"):
        assert space.get([key(0)]) == {}
    assert space.put({key(0): entry(7)}) == {key(0): entry(7)}
    with pytest.raises(InvalidSetting, match="chmod go-w"):
        kept.verify()


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
        assert Store(full, GIB).space(FACTS).get([key(0)]) == {}
