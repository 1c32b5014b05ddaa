"""Files that appear together, killed at every place; leftovers of killed processes."""

import os
import signal
import subprocess
import sys

import pytest

from vlscore.core import atomic_write, written_together
from vlscore.errors import FolderInUse, InvalidSetting

NAMES = ["t.rows.csv", "t.json", "t.parquet"]


def write_all(folder, version, overwrite=False):
    with written_together(folder, NAMES, overwrite=overwrite) as aside:
        for name in NAMES:
            (aside / name).write_text(f"{name} {version}")


def versions(folder):
    return {name: (folder / name).read_text().split()[1] for name in os.listdir(folder)}


def test_all_appear_and_nothing_else(tmp_path):
    write_all(tmp_path / "new", 1)
    assert versions(tmp_path / "new") == dict.fromkeys(NAMES, "1")
    write_all(tmp_path / "new", 1)
    with pytest.raises(InvalidSetting, match=r"t\.parquet is there already, and differs"):
        write_all(tmp_path / "new", 2)
    assert versions(tmp_path / "new") == dict.fromkeys(NAMES, "1")
    write_all(tmp_path / "new", 2, overwrite=True)
    assert versions(tmp_path / "new") == dict.fromkeys(NAMES, "2")


def test_an_error_leaves_everything_as_it_was(tmp_path):
    def fail():
        with written_together(tmp_path, NAMES, overwrite=True) as aside:
            (aside / NAMES[0]).write_text("half 2")
            raise RuntimeError

    write_all(tmp_path, 1)
    with pytest.raises(RuntimeError):
        fail()
    assert versions(tmp_path) == dict.fromkeys(NAMES, "1")


def test_one_run_at_a_time(tmp_path):
    with written_together(tmp_path, NAMES), pytest.raises(FolderInUse):
        write_all(tmp_path, 1)


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
calls, real = 0, {name: getattr(os, name) for name in ("replace", "unlink", "mkdir", "fsync")}
def counted(name):
    def call(*arguments, **more):
        global calls
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1
        return real[name](*arguments, **more)
    return call
from tests.core.test_file_group import write_all
import vlscore.core.file_group
for name in real:
    setattr(os, name, counted(name))
write_all(Path(sys.argv[1]), sys.argv[3], overwrite=sys.argv[3] == "2")
"""


@pytest.mark.parametrize("version", ["1", "2"])
def test_killed_anywhere_the_main_file_never_stands_beside_others(tmp_path, version):
    for place in range(40):
        folder = tmp_path / str(place)
        if version == "2":
            write_all(folder, 1)
        command = [sys.executable, "-c", _KILLED, str(folder), str(place), version]
        done = subprocess.run(command, check=False)
        files = [n for n in NAMES if (folder / n).is_file()]
        found = {n: (folder / n).read_text().split()[1] for n in files}
        if "t.parquet" in found:
            assert set(found) == set(NAMES)
            assert len(set(found.values())) == 1
        write_all(folder, version, overwrite=version == "2")
        assert versions(folder) == dict.fromkeys(NAMES, version)
        if done.returncode == 0:
            assert place > 3
            return
        assert done.returncode == -signal.SIGKILL
    pytest.fail("the process was killed at each of 40 places")


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path):
    code = (
        "import os, signal, sys; from vlscore.core import atomic_write\n"
        "with atomic_write(sys.argv[1]) as stream:\n"
        "    stream.write('Report of a patient.'); stream.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    target = tmp_path / "iu[1].json"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert len(os.listdir(tmp_path)) == 1
    # Files of the user's with similar names stay, and what a living process writes.
    kept = {".iu[1].json.tmp", ".iu[1].json.backup01.tmpx", "iu[1].json.abcdefgh.tmp", ".iu1.tmp"}
    for name in kept:
        (tmp_path / name).touch()
    with atomic_write(target) as outer:
        outer.write("outer")
        with atomic_write(target) as inner:
            inner.write("inner")
    assert set(os.listdir(tmp_path)) == {*kept, "iu[1].json"}
    assert target.read_text() == "outer"
