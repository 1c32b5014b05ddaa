"""The resumable writer: killed anywhere, it loses nothing; nothing is mixed, doubled or left."""

import builtins
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from itertools import islice
from pathlib import Path

import pytest

from vlscore.core import ResumableFolder, finished_run, sole_writer
from vlscore.core import run_folder as folder
from vlscore.errors import ChecksumMismatch, FolderInUse, InvalidSetting, OutputFailed

ROWS = list(range(7))
AT_ONCE = 3
RESULTS = ("squares.txt", "squares.csv", "sum.json")
KEY = {"table": "a" * 64, "power": 2}


def compute(out, *, rows=ROWS, key=KEY, name="squares.txt", after_chunk=None, **options):
    """Squares of numbers, a stand-in for every command; returns the run and the rows computed."""
    computed = []
    with ResumableFolder(out, key, results=RESULTS, **options) as run:
        if run.record is not None:
            return run, computed
        count, rest = run.rows, islice(rows, run.rows, None)
        while chunk := list(islice(rest, AT_ONCE)):
            lines = [f"{row ** key['power']}\n" for row in chunk]
            computed += chunk
            with run.append(len(chunk), {"first": chunk[0]}) as folder:
                (folder / "lines").write_text("".join(lines))
            count += len(chunk)
            if after_chunk is not None:
                after_chunk(count)

        def write(folder):
            text = "".join((chunk.path / "lines").read_text() for chunk in run.chunks())
            (folder / name).write_text(text)
            (folder / "sum.json").write_text(str(sum(map(int, text.split()))))
            return {"resumed_from": run.resumed_from}

        run.finish(write, rows=count)
    return run, computed


def content(folder):
    """Name -> bytes of everything in the folder, its hidden files too, but the run's times."""
    return {
        path.name: path.is_file() and path.read_bytes()
        for path in folder.iterdir()
        if path.name not in (".lock", "run.json")
    }


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    """A killed process leaves what it wrote to the system; only a power cut would not."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    compute(out)
    return content(out)


def stop(count):
    raise KeyboardInterrupt


def leave_unfinished(out, **options):
    with pytest.raises(KeyboardInterrupt):
        compute(out, after_chunk=stop, **options)


# --- killed between any two operations on files -------------------------------------------------

OPERATIONS = [
    (os, "replace"),
    (os, "rename"),
    (os, "fsync"),
    (os, "unlink"),
    (os, "mkdir"),
    (os, "rmdir"),
    (os, "open"),
    (io, "open"),
    (builtins, "open"),
]


def opens_for_reading(path, how="r", *arguments, **options):
    """Whether a call of open, Python's or the operating system's, changes nothing."""
    how = options.get("mode", options.get("flags", how)) if isinstance(how, str) else how
    if isinstance(how, str):
        return not set(how) & set("wax+")
    return how & os.O_ACCMODE == os.O_RDONLY


def kill_before(moment, work):
    """Run `work` in a child that is killed at its so manieth operation on files; whether it was.

    What Python had not handed to the operating system yet is lost, as in any kill.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            seen = 0

            def step():
                nonlocal seen
                seen += 1
                if seen > moment:
                    os.kill(os.getpid(), signal.SIGKILL)

            def dying(real):
                def call(*arguments, **options):
                    if real.__name__ == "open" and opens_for_reading(*arguments, **options):
                        return real(*arguments, **options)
                    step()
                    result = real(*arguments, **options)
                    if real.__name__ == "open":
                        step()  # the file is there, and has nothing yet of what is to be written
                    return result

                return call

            for module, name in OPERATIONS:
                setattr(module, name, dying(getattr(module, name)))
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def killed_everywhere(folder, prepare, work):
    """Kill `work(out)` before every third operation, each time in a folder of its own.

    VLSCORE_EVERY_KILL=1 takes every operation.
    """
    for moment in range(0, 1_000, 1 if os.environ.get("VLSCORE_EVERY_KILL") else 3):
        out = folder / str(moment)
        prepare(out)
        if not kill_before(moment, lambda out=out: work(out)):
            return
        yield out
        shutil.rmtree(out, ignore_errors=True)
    pytest.fail("the work never ended")


def test_killed_anywhere_the_same_call_gives_the_same_bytes(tmp_path, whole):
    computed_again = set()
    for out in killed_everywhere(tmp_path, lambda out: None, compute):
        finished_chunks = len([*(out / ".parts").glob("part-*")])
        was_decided = (out / "run.json").exists() or (out / ".parts" / "commit.json").exists()
        if (ended := finished_run(out)) is not None:
            ended.check()  # whoever sees run.json sees all results
        _, computed = compute(out)
        assert content(out) == whole
        assert computed == ([] if was_decided else ROWS[AT_ONCE * finished_chunks :])
        finished_run(out).check()
        computed_again.add(len(computed))
    # Every chunk that was finished was kept, and so was the decided end.
    assert computed_again == {7, 4, 1, 0}


def test_killed_twice(tmp_path, whole):
    """The call after a kill is itself killed, at another moment."""
    for number, out in enumerate(killed_everywhere(tmp_path, lambda out: None, compute)):
        kill_before(number * 7 % 41, lambda out=out: compute(out))
        compute(out)
        assert content(out) == whole


@pytest.mark.parametrize("earlier", ["the same", "another"])
def test_overwriting_killed_anywhere_keeps_the_old_results_or_has_the_new(tmp_path, whole, earlier):
    """A job that has --overwrite, killed and put in the queue again, goes on where it was."""
    old_key = KEY if earlier == "the same" else {**KEY, "power": 3}
    compute(tmp_path / "old", key=old_key, name="squares.csv")
    old = content(tmp_path / "old")
    began_anew = 0
    for out in killed_everywhere(
        tmp_path,
        lambda out: shutil.copytree(tmp_path / "old", out),
        lambda out: compute(out, overwrite=True),
    ):
        parts = out / ".parts"
        if not (parts / "commit.json").exists() and "squares.txt" not in content(out):
            assert {name: content(out)[name] for name in old} == old
        finished_chunks = len([*parts.glob("part-*")])
        is_decided = (parts / "commit.json").exists()
        _, computed = compute(out, overwrite=True)
        assert content(out) == whole
        assert computed == ([] if is_decided else ROWS[AT_ONCE * finished_chunks :])
        began_anew += len(computed) == len(ROWS)
    assert began_anew


# --- states --------------------------------------------------------------------------------------


def test_a_finished_run_is_left_alone_and_says_so(tmp_path):
    first, _ = compute(tmp_path / "out")
    assert not first.unchanged
    before = (tmp_path / "out" / "run.json").read_bytes()
    again, computed = compute(tmp_path / "out")
    assert again.unchanged
    assert computed == []
    assert again.record == first.record == json.loads(before)
    assert again.record["key"] == KEY
    assert set(again.record["results"]) == {"squares.txt", "sum.json"}
    assert (tmp_path / "out" / "run.json").read_bytes() == before
    anew, computed = compute(tmp_path / "out", overwrite=True)
    assert computed == ROWS
    assert not anew.unchanged


def test_another_run_is_refused_with_what_differs(tmp_path):
    other = {"table": "b" * 64, "power": 3, "section": ["findings"]}
    leave_unfinished(tmp_path / "unfinished")
    compute(tmp_path / "finished")
    for state in ("unfinished", "finished"):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        with pytest.raises(InvalidSetting, match=state) as refused:
            compute(tmp_path / state, key=other)
        said = str(refused.value)
        assert "table: aaaaaaaaaaaa there, bbbbbbbbbbbb now; power: 2 there, 3 now" in said
        assert "section: nothing there, findings now" in said
        assert "--overwrite" in said
        assert {path: path.stat().st_mtime_ns for path in before} == before
        _, computed = compute(tmp_path / state, key=other, overwrite=True)
        assert computed == ROWS


def test_an_unfinished_run_of_the_same_key_goes_on_even_under_overwrite(tmp_path, whole):
    leave_unfinished(tmp_path / "out", overwrite=True)
    run, computed = compute(tmp_path / "out", overwrite=True)
    assert (run.resumed_from, computed) == (3, ROWS[3:])
    assert content(tmp_path / "out") == whole
    # Begun under --overwrite over another run, and gone on with without it.
    leave_unfinished(tmp_path / "out", key={**KEY, "power": 3}, overwrite=True)
    run, _ = compute(tmp_path / "out", key={**KEY, "power": 3})
    assert run.resumed_from == 3


def test_no_result_of_another_format_stays(tmp_path):
    out = tmp_path / "out"
    compute(out, name="squares.csv")
    (out / "notes.txt").write_text("the user's own")
    compute(out, overwrite=True)
    assert set(content(out)) == {"squares.txt", "sum.json", "notes.txt"}


def test_files_of_somebody_else_are_not_replaced_unasked(tmp_path):
    (tmp_path / "squares.csv").write_text("mine")
    with pytest.raises(InvalidSetting, match=r"squares\.csv exists.*--overwrite"):
        compute(tmp_path)
    assert content(tmp_path) == {"squares.csv": b"mine"}
    compute(tmp_path, overwrite=True)
    assert set(content(tmp_path)) == {"squares.txt", "sum.json"}


@pytest.mark.parametrize("record", ["{", "[]", '{"signature": "of an older version"}'])
def test_a_record_that_cannot_be_read(tmp_path, record):
    compute(tmp_path)
    (tmp_path / "run.json").write_text(record)
    with pytest.raises(ChecksumMismatch, match=r"run\.json is damaged, or .*--overwrite"):
        compute(tmp_path)
    compute(tmp_path, overwrite=True)


def test_results_that_were_changed_are_noticed(tmp_path):
    out = tmp_path / "out"
    compute(out)
    (out / "sum.json").write_text("0")
    with pytest.raises(ChecksumMismatch, match=r"sum\.json has been changed.*--overwrite"):
        compute(out)
    (out / "sum.json").unlink()
    with pytest.raises(ChecksumMismatch, match=r"sum\.json is missing"):
        compute(out)
    compute(out, overwrite=True)
    compute(out)


def test_a_failure_before_the_first_chunk_leaves_nothing_in_the_way(tmp_path):
    def misspelt():
        raise InvalidSetting("no such column")
        yield

    with pytest.raises(InvalidSetting, match="no such column"):
        compute(tmp_path, rows=misspelt())
    assert content(tmp_path) == {}
    compute(tmp_path, key={**KEY, "power": 3})
    before = content(tmp_path)
    with pytest.raises(InvalidSetting, match="no such column"):
        compute(tmp_path, rows=misspelt(), overwrite=True)
    assert content(tmp_path) == before


def test_rows_that_are_missing_are_noticed(tmp_path):
    with ResumableFolder(tmp_path, KEY, results=RESULTS) as run:
        with run.append(3) as folder:
            (folder / "lines").write_text("0\n1\n4\n")
        with pytest.raises(OutputFailed, match="4 rows were read but the finished chunks hold 3"):
            run.finish(lambda folder: {}, rows=4)
    assert set(content(tmp_path)) == {".parts"}


def test_mistakes_of_the_caller_decide_nothing(tmp_path, whole):
    leave_unfinished(tmp_path)

    def undeclared(folder):
        (folder / "other.txt").write_text("")
        return {}

    for write in (undeclared, lambda folder: {"key": 1}, lambda folder: {"mean": float("nan")}):
        with ResumableFolder(tmp_path, KEY, results=RESULTS) as run, pytest.raises(ValueError):
            run.finish(write, rows=3)
    for name in ("a/b", "..", ".parts", "run.json", ""):
        with pytest.raises(ValueError, match="no result can have"):
            ResumableFolder(tmp_path, KEY, results=[name])
    assert compute(tmp_path)[0].resumed_from == 3
    assert content(tmp_path) == whole


# --- damage --------------------------------------------------------------------------------------

DAMAGES = {
    "a chunk changed": lambda parts: (parts / "part-00000001" / "lines").write_text("9\n16\n26\n"),
    "a chunk's file": lambda parts: (parts / "part-00000000" / "lines").unlink(),
    "a chunk's count": lambda parts: (parts / "part-00000001" / "chunk.json").write_text('{"ro'),
    "a chunk": lambda parts: shutil.rmtree(parts / "part-00000000"),
    "the key": lambda parts: (parts / "key.json").write_text("[]"),
    "half the key": lambda parts: (parts / "key.json").write_bytes(b"\xff{"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_or_missing_chunks_are_noticed(tmp_path, whole, damage):
    def second(count):
        if count == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute(tmp_path, after_chunk=second)
    DAMAGES[damage](tmp_path / ".parts")
    with pytest.raises(ChecksumMismatch, match=r"\.parts.* is damaged or missing.*--overwrite"):
        compute(tmp_path)
    _, computed = compute(tmp_path, overwrite=True)
    assert computed == ROWS
    assert content(tmp_path) == whole


def test_a_replaced_input_is_noticed_and_a_copied_one_is_the_same(tmp_path):
    images = [tmp_path / name for name in ("a", "b", "gone", "absent")]
    for image in images[:3]:
        image.write_bytes(os.urandom(200_000))

    def begin(**options):
        return ResumableFolder(tmp_path / "out", KEY, results=RESULTS, **options)

    with begin() as run, run.append(4, inputs=images):
        pass
    os.utime(images[0], ns=(0, 0))
    images[2].unlink()
    with begin() as run:
        assert run.rows == 4
    content = bytearray(images[1].read_bytes())
    for place in (0, -1):
        changed = bytearray(content)
        changed[place] ^= 1
        images[1].write_bytes(changed)
        with pytest.raises(ChecksumMismatch, match=f"{images[1]} has been replaced"), begin():
            pass
    images[1].write_bytes(content)
    with begin() as run:
        assert run.rows == 4
    images[1].write_bytes(content[:-1])
    with begin(overwrite=True) as run:
        assert run.rows == 0


@pytest.mark.parametrize("damage", ["staged", "commit"])
def test_a_damaged_end_is_noticed_and_made_again_from_the_chunks(
    tmp_path, whole, damage, monkeypatch
):
    def stop_before_files_are_moved(out):
        if (out / ".parts" / "commit.json").exists():
            raise KeyboardInterrupt

    out = tmp_path
    with monkeypatch.context() as patch:
        patch.setattr(folder, "roll_forward", stop_before_files_are_moved)
        with pytest.raises(KeyboardInterrupt):
            compute(out)
    file = {"staged": "final/squares.txt", "commit": "commit.json"}[damage]
    (out / ".parts" / file).write_text("{}")
    with pytest.raises(ChecksumMismatch, match=file):
        compute(out)
    _, computed = compute(out, overwrite=True)
    assert computed == []
    assert content(out) == whole


def test_a_commit_cannot_name_files_elsewhere(tmp_path):
    compute(tmp_path / "out")
    (tmp_path / "precious").write_text("")
    parts = tmp_path / "out" / ".parts"
    parts.mkdir()
    for plan in (
        {"record": {"key": KEY, "results": {}}, "stale": ["../precious"]},
        {"record": {"key": KEY, "results": {"../precious": "0" * 64}}, "stale": []},
    ):
        (parts / "commit.json").write_text(json.dumps(plan))
        with pytest.raises(ChecksumMismatch, match=r"commit\.json"):
            compute(tmp_path / "out")
    assert (tmp_path / "precious").exists()


# --- the operating system refuses ----------------------------------------------------------------


def test_a_file_in_the_folder_s_place(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidSetting, match="is a file"):
            compute(out)


def test_a_place_where_nobody_may_write():
    with pytest.raises(OutputFailed, match="/proc/results cannot be written: No such file"):
        compute(Path("/proc/results"))


@pytest.mark.parametrize("name", ["mkdir", "fsync", "rename", "replace"])
def test_a_full_disk_costs_the_chunk_in_work_only(tmp_path, whole, monkeypatch, name):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputFailed, match="No space left on device"):
        compute(tmp_path, after_chunk=lambda count: monkeypatch.setattr(os, name, full))
    monkeypatch.undo()
    run, _ = compute(tmp_path)
    assert run.resumed_from >= 3
    assert content(tmp_path) == whole


# --- two at once ---------------------------------------------------------------------------------


def test_a_second_run_in_this_process_is_refused(tmp_path, whole):
    refused = []

    def meanwhile(count):
        with pytest.raises(FolderInUse, match="another run is writing this folder"):
            compute(tmp_path, overwrite=len(refused) == 1)
        refused.append(count)

    _, computed = compute(tmp_path, after_chunk=meanwhile)
    assert refused == [3, 6, 7]
    assert computed == ROWS
    assert content(tmp_path) == whole


HOLDER = """
import sys, time
from pathlib import Path
from vlscore.core.run_folder import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_a_dead_one_blocks_nobody(tmp_path, whole):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for overwrite in (False, True):
            with pytest.raises(FolderInUse):
                compute(tmp_path, overwrite=overwrite)
        holder.kill()
    compute(tmp_path)
    assert content(tmp_path) == whole
    with sole_writer(tmp_path), pytest.raises(FolderInUse):
        compute(tmp_path)


def test_a_run_that_ended_with_an_error_holds_nothing(tmp_path):
    leave_unfinished(tmp_path)
    with sole_writer(tmp_path):
        pass
    with pytest.raises(InvalidSetting):
        compute(tmp_path, key={})
    with sole_writer(tmp_path):
        pass


# --- adding to a finished run --------------------------------------------------------------------


def add_cubes(out, key, after_chunk=None, **options):
    """A second command: takes the squares of an earlier run as they are, and adds cubes."""
    with ResumableFolder(out, key, results=("squares.txt", "sum.json"), **options) as run:
        if run.record is not None:
            return run
        assert run.previous is not None
        squares = run.previous.file("squares.txt").read_text().split()
        while rows := ROWS[run.rows :][:4]:
            with run.append(len(rows)) as folder:
                (folder / "cubes").write_text(" ".join(str(row**3) for row in rows))
            if after_chunk is not None:
                after_chunk(run.rows)

        def write(folder):
            cubes = [
                cube
                for chunk in run.chunks()
                for cube in (chunk.path / "cubes").read_text().split()
            ]
            lines = zip(squares, cubes, strict=True)
            (folder / "squares.txt").write_text("".join(f"{a} {b}\n" for a, b in lines))
            return {"added_to": sorted(run.previous.digests)}

        run.finish(write, rows=len(ROWS))
    return run


CUBES = {**KEY, "power": [2, 3]}


def test_a_finished_run_is_added_to_without_being_made_again(tmp_path):
    compute(tmp_path / "whole")
    run = add_cubes(tmp_path / "whole", CUBES, extends=["power"])
    assert run.record["added_to"] == ["squares.txt", "sum.json"]
    assert (tmp_path / "whole" / "squares.txt").read_text().splitlines()[3] == "9 27"
    assert set(content(tmp_path / "whole")) == {"squares.txt"}
    assert add_cubes(tmp_path / "whole", CUBES, extends=["power"]).unchanged

    compute(tmp_path / "base")
    for out in killed_everywhere(
        tmp_path,
        lambda out: shutil.copytree(tmp_path / "base", out),
        lambda out: add_cubes(out, CUBES, extends=["power"]),
    ):
        add_cubes(out, CUBES, extends=["power"])
        assert content(out) == content(tmp_path / "whole")


def test_only_the_named_entries_may_differ(tmp_path):
    compute(tmp_path)
    for key in ({**CUBES, "table": "b" * 64}, {**CUBES, "more": 1}):
        with pytest.raises(InvalidSetting, match="holds the results of another run"):
            add_cubes(tmp_path, key, extends=["power"])
    with pytest.raises(KeyboardInterrupt):
        add_cubes(tmp_path, CUBES, extends=["power"], after_chunk=stop)
    # The half of an addition is not mixed with another one, and a finished run is still whole.
    with pytest.raises(InvalidSetting, match="holds an unfinished run"):
        add_cubes(tmp_path, {**KEY, "power": [2, 4]}, extends=["power"])
    assert compute(tmp_path)[0].unchanged
    (tmp_path / "squares.txt").write_text("")
    with pytest.raises(ChecksumMismatch, match=r"squares\.txt has been changed"):
        add_cubes(tmp_path, CUBES, extends=["power"])


def test_a_finished_run_is_taken_up_again_for_its_failed_rows(tmp_path):
    compute(tmp_path)
    run = add_cubes(tmp_path, KEY, retry=True)
    assert run.record["key"] == KEY
    assert (tmp_path / "squares.txt").read_text().splitlines()[2] == "4 8"
    with ResumableFolder(tmp_path, KEY, results=RESULTS, retry=True) as again:
        assert again.previous is not None  # as often as it is asked for
    with ResumableFolder(tmp_path / "new", KEY, results=RESULTS, retry=True) as first:
        assert first.previous is None


def test_what_is_recorded_may_cover_both_runs(tmp_path):
    compute(tmp_path)
    with ResumableFolder(tmp_path, {**KEY, "power": 3}, results=RESULTS, extends=["power"]) as run:
        run.finish(lambda folder: {}, rows=0, key=CUBES)
    assert finished_run(tmp_path).key == CUBES
    assert finished_run(Path(tmp_path / "elsewhere")) is None


def test_an_input_that_changed_in_its_middle_alone_is_noticed(tmp_path):
    """The ends of a radiograph are often black borders, alike before and after."""
    image = tmp_path / "film.raw"
    image.write_bytes(bytes(100_000) + b"NAME" * 50_000 + bytes(100_000))
    out = tmp_path / "out"
    with ResumableFolder(out, KEY, results=RESULTS) as run, run.append(1, inputs=[image]):
        pass
    with ResumableFolder(out, KEY, results=RESULTS) as run:
        assert run.resumed_from == 1
    image.write_bytes(bytes(400_000))
    os.utime(image, ns=(1, 1))
    with pytest.raises(ChecksumMismatch, match=r"film\.raw has been replaced"):
        ResumableFolder(out, KEY, results=RESULTS).__enter__()
