"""A process that runs commands in forked copies of itself, and kills them at their n-th write.

It reads one job a line as json from standard input: "argv", "folder" (whose writes are counted),
"kill_at" (the number of the write, from 1; 0 for none), "limit" (most bytes of a file, 0 for no
limit). It answers with {"status", "writes", "error"}. It imports what its forks have imported, and
never runs a command itself, so that a fork is cheap and sound.
"""

import builtins
import contextlib
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


class _Counter:
    """Counts the writing calls below a folder, and ends the process before the n-th."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        self._folder, self._kill_at, self.count = os.fspath(folder), kill_at, 0

    def install(self) -> None:
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync"):
            setattr(os, name, self._wrapped(getattr(os, name)))
        os.open = self._opening(os.open)  # type: ignore[assignment]
        io.open = builtins.open = self._opening_file(builtins.open)  # type: ignore[assignment]

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            is_move = real.__name__ in ("replace", "rename")
            self._hit(arguments[1 if is_move else 0], options.get("dir_fd"))
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
        if isinstance(path, int):
            name = os.readlink(f"/proc/self/fd/{path}")
        else:
            name = os.path.join(
                os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd(),
                os.fsdecode(path),
            )
        if not os.path.normpath(name).startswith(self._folder):
            return
        self.count += 1
        if self.count == self._kill_at:
            os._exit(KILLED)


def _work(job: dict[str, Any], answer: int) -> None:
    """Run the command of a job; never returns."""
    from vlscore.cli.command_line import app
    from vlscore.errors import VLScoreError

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if job["limit"]:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"],) * 2)
    counter = _Counter(Path(job["folder"]), job["kill_at"])
    counter.install()
    there = set(sys.modules)
    status, error = 0, ""
    try:
        app(job["argv"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except VLScoreError as refused:
        status, error = 2, f"{type(refused).__name__}: {refused}"
    except BaseException:
        status, error = TRACEBACK, traceback.format_exc()
    new = [name for name in sys.modules if name not in there]
    told = {"status": status, "writes": counter.count, "error": error, "modules": new}
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


def _import(names: list[str]) -> None:
    """Import what a fork has imported, so that the next one finds it there."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if "vlscore.findings.lexicon" in names:
        # Read once, as a process that labels many reports does.
        sys.modules["vlscore.findings.lexicon"].load_lexicon()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    _import(["vlscore.cli.command_line"])
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_done(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
