"""A process that has imported what most tests need, and becomes other Python processes by forks.

Importing PyTorch takes longer than what most tests do in a process of their own. One server serves
all workers of a test run; `tests.forked` starts it, and asks it. It computes nothing itself: its
forks are sound, and each chooses its processor's instructions and its threads anew.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

# What nearly every forked process imports.
_PRELOADED = (
    *("torch", "torch.distributed", "torchvision", "scipy.stats", "pyarrow.parquet", "pydicom"),
    *("sacrebleu", "pytest", "hypothesis", "tests.conftest", "vlscore.cli.app"),
    *("vlscore.cli.evaluate", "vlscore.evaluation.scoring.run", "vlscore.encoders.models.small"),
    *("vlscore.metrics.scorer", "vlscore.data.images.read"),
)
_SECONDS_BETWEEN_LOOKS = 1.0


def _run(command: list[str]) -> None:
    """What `python` does with these arguments: -c CODE, -m MODULE or a file, and their own."""
    first, *rest = command
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    sys.modules["__main__"] = ModuleType("__main__")
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv = command
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        runpy.run_path(first, run_name="__main__")


def _become(job: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be the process of a job, from its environment to its exit status."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.path[:0] = [place for place in os.environ.get("PYTHONPATH", "").split(":") if place]
    random.seed()
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    status = 1
    try:
        _run(job["command"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Taking an interpreter with so many modules apart takes long, and tests nothing.
    os._exit(status)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


class _Server:
    def __init__(self, place: Path, owner: int) -> None:
        self._place, self._owner = place, owner
        self._socket = socket.socket(socket.AF_UNIX)
        place.unlink(missing_ok=True)
        self._socket.bind(os.fspath(place))
        self._socket.listen(64)
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Serve until the owner has ended."""
        awake, wake = socket.socketpair()
        for end in (awake, wake):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno())
        ready = selectors.DefaultSelector()
        ready.register(self._socket, selectors.EVENT_READ)
        ready.register(awake, selectors.EVENT_READ)
        while _is_running(self._owner):
            for key, _ in ready.select(_SECONDS_BETWEEN_LOOKS):
                if key.fileobj is self._socket:
                    self._start()
                else:
                    awake.recv(4096)
                    self._report_ended()
        for process in self._running:
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(self._place.parent, ignore_errors=True)

    def _start(self) -> None:
        connection, _ = self._socket.accept()
        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        text, streams, _, _ = socket.recv_fds(connection, 1, 3)
        text += connection.recv(size - 1, socket.MSG_WAITALL)
        process = os.fork()
        if process == 0:
            for each in (self._socket, connection, *self._running.values()):
                each.close()
            _become(json.loads(text), streams)
        for stream in streams:
            os.close(stream)
        connection.sendall(process.to_bytes(4, "big"))
        self._running[process] = connection

    def _report_ended(self) -> None:
        for process in list(self._running):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                connection = self._running.pop(process)
                code = os.waitstatus_to_exitcode(status)
                # Whoever started it may have ended.
                with contextlib.suppress(OSError):
                    connection.sendall(code.to_bytes(4, "big", signed=True))
                connection.close()


def main() -> None:
    """Serve at the socket's path, for the process whose number follows it."""
    for name in _PRELOADED:
        importlib.import_module(name)
    # The collector would write into pages that forks share.
    gc.collect()
    gc.freeze()
    _Server(Path(sys.argv[1]), int(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
