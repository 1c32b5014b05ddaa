"""A process that runs commands in forked copies of itself, and notes what a kill would leave.

It reads one job a line as json from standard input: "argv", "folder" (whose writes are counted),
"states" (where to store what lies in the folder before each write; "" for nowhere), "kill_at" (the
number of the write before which the command is killed, from 1; 0 for none), "limit" (most bytes of
a file, 0 for no limit). It answers with {"status", "writes", "error", "states", "direct"}. It
imports what its forks have imported, and never runs a command itself, so that a fork is cheap and
sound.
"""

import builtins
import contextlib
import gc
import hashlib
import importlib
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

KILLED = 137
TRACEBACK = 70
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


Content = dict[str, bytes | None]


def content_of(folder: Path) -> Content:
    """Read what lies below a folder, besides locks: name -> bytes, None for a folder."""
    found: Content = {}
    for place, folders, files in os.walk(folder):
        here = os.path.relpath(place, folder)
        found |= {os.path.normpath(os.path.join(here, name)): None for name in folders}
        for name in files:
            if name != ".lock":
                path = os.path.join(place, name)
                found[os.path.normpath(os.path.join(here, name))] = Path(path).read_bytes()
    return found


def write_content(content: Content, folder: Path) -> None:
    """Write what `content_of` read."""
    folder.mkdir(parents=True)
    for name, data in sorted(content.items()):
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)


class _States:
    """What a kill before each write, or in the middle of one, would leave, without repetitions.

    Bytes that Python has not handed to the system yet are lost in a kill, and are not read here.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder, self._place = folder, place
        self._last = content_of(folder)
        self._known = {self._digest(self._last)}
        self.names: list[str] = []

    def take(self, number: int) -> None:
        """Store the state before write `number`, and the one halfway to it."""
        now, before = content_of(self._folder), self._last
        gone = [data for name, data in before.items() if name not in now]
        grown = {
            name: data[: len(data) // 2]
            for name, data in now.items()
            if data and data != before.get(name) and data not in gone
        }
        if grown:
            self._store(f"{number}-half", {**now, **grown})
        self._store(f"{number}", now)
        self._last = now

    def _store(self, name: str, content: Content) -> None:
        digest = self._digest(content)
        if digest not in self._known:
            self._known.add(digest)
            write_content(content, self._place / name)
            self.names.append(name)

    @staticmethod
    def _digest(content: Content) -> str:
        found = hashlib.sha256()
        for name, data in sorted(content.items()):
            found.update(f"{name} {None if data is None else len(data)}\n".encode())
            found.update(data or b"")
        return found.hexdigest()


class _Counter:
    """Counts the writing calls below a folder; stores states, and ends the process at the n-th.

    Attributes:
        count: writing calls so far.
        moved: inodes of the files that took their names by a rename.
    """

    def __init__(self, folder: Path, kill_at: int, states: _States | None) -> None:
        self._folder, self._kill_at, self._states = os.fspath(folder), kill_at, states
        self.count, self._is_busy = 0, False
        self.moved: set[int] = set()

    def install(self) -> None:
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync"):
            setattr(os, name, self._wrapped(getattr(os, name)))
        os.open = self._opening(os.open)  # type: ignore[assignment]
        io.open = builtins.open = self._opening_file(builtins.open)  # type: ignore[assignment]

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            is_move = real.__name__ in ("replace", "rename")
            self._hit(arguments[1 if is_move else 0], options.get("dir_fd"))
            if is_move:
                self.moved |= inodes(Path(arguments[0])).keys()
            # A kill loses nothing of what the system holds, and waiting for the disk takes long.
            return None if real.__name__ == "fsync" else real(*arguments, **options)

        return call

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, flags: int, *more: Any, **options: Any) -> Any:
            if flags & _WRITING:
                self._hit(path, options.get("dir_fd"))
            return real(path, flags, *more, **options)

        return call

    def _opening_file(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
            if set(mode) & set("wax+") and not isinstance(file, int):
                self._hit(file, None)
            return real(file, mode, *more, **options)

        return call

    def _hit(self, path: Any, folder: int | None) -> None:
        if self._is_busy:
            return
        if isinstance(path, int):
            name = os.readlink(f"/proc/self/fd/{path}")
        else:
            name = os.path.join(
                os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd(),
                os.fsdecode(path),
            )
        if not f"{os.path.normpath(name)}/".startswith(f"{self._folder}/"):
            return
        self.count += 1
        if self.count == self._kill_at:
            os._exit(KILLED)
        if self._states is not None:
            self._is_busy = True
            self._states.take(self.count)
            self._is_busy = False


def inodes(path: Path) -> dict[int, str]:
    """Return the inodes of a file, or of all files below a folder, with their paths."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return {os.stat(each).st_ino: os.fspath(each) for each in files}


def _work(job: dict[str, Any], answer: int) -> None:
    """Run the command of a job; never returns."""
    from vlscore.cli import app
    from vlscore.errors import VLScoreError

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if job["limit"]:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"],) * 2)
    folder = Path(job["folder"])
    before = inodes(folder)
    states = _States(folder, Path(job["states"])) if job["states"] else None
    counter = _Counter(folder, job["kill_at"], states)
    counter.install()
    there = set(sys.modules)
    status, error = 0, ""
    try:
        if job["argv"][0] == "python":
            exec(job["argv"][1])
        else:
            app(job["argv"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except VLScoreError as refused:
        status, error = 2, f"{type(refused).__name__}: {refused}"
    except BaseException:
        status, error = TRACEBACK, traceback.format_exc()
    new = [name for name in sys.modules if name not in there]
    direct = [
        os.path.relpath(path, folder)
        for inode, path in inodes(folder).items()
        if inode not in counter.moved and before.get(inode) != path and not path.endswith(".lock")
    ]
    told = {
        "status": status,
        "writes": counter.count,
        "error": error,
        "states": states.names if states is not None else [],
        "direct": direct,
        "modules": new,
    }
    with os.fdopen(answer, "wb") as stream:
        stream.write(json.dumps(told).encode())
    os._exit(0)


def _done(job: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(job, writing)
    os.close(writing)
    with open(reading, "rb") as stream:
        told = stream.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == KILLED:
        return {"status": KILLED, "writes": job["kill_at"], "error": ""}
    if not told:
        return {"status": status, "writes": 0, "error": "no answer"}
    answer: dict[str, Any] = json.loads(told)
    _import(answer.pop("modules"))
    return answer


# Libraries that some command needs: without them the first fork to need one would import it, too.
_FIRST = (
    *("numpy", "pydantic", "scipy.stats", "torch", "torch._dynamo", "torchvision", "timm", "faiss"),
    *("cv2", "pyarrow.parquet", "matplotlib.figure", "sacrebleu", "vlscore.cli.app"),
)
# What a process reads once: module -> its function, which remembers the result.
_READ_ONCE = {
    "vlscore.findings.lexicon": "load_lexicon",
    "vlscore.metrics.judge.judge_tables": "load_tables",
}


def _import(names: list[str]) -> None:
    """Import and read what a fork has, so that the next one finds it there."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name, function in _READ_ONCE.items():
        if name in sys.modules:
            getattr(sys.modules[name], function)()
    # A forked command imports nothing.
    commands = importlib.import_module("vlscore.cli").commands
    commands()
    # The collector would write into pages that forks share.
    gc.collect()
    gc.freeze()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    _import(list(_FIRST))
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_done(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
