"""Python processes that start with everything imported: forks of one server of the test run.

`run` and `Started` take what follows `python` on a command line, as subprocess.run and Popen do. A
test whose subject is the start or the end of Python, or what a process imports, uses subprocess.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.conftest import OWNER, REPOSITORY

# One for all workers of a test run; the server removes it.
_FOLDER = Path(tempfile.gettempdir()) / f"vlscore-forks-{OWNER}"


def _connected() -> socket.socket:
    """A connection to the server, which the first caller of a test run starts."""
    _FOLDER.mkdir(mode=0o700, exist_ok=True)
    place, errors_at = _FOLDER / "socket", _FOLDER / "errors"
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _connection(place)
        if found is not None:
            return found
        with errors_at.open("w") as errors:
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", place, OWNER],
                cwd=REPOSITORY,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        while (found := _connection(place)) is None:
            assert server.poll() is None, errors_at.read_text()
            time.sleep(0.05)
        return found


def _connection(place: Path) -> socket.socket | None:
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect(os.fspath(place))
    except OSError:
        found.close()
        return None
    return found


class Started:
    """A process that runs, as subprocess.Popen has it.

    Attributes:
        pid: its number.
        returncode: its exit status, negative for the signal that ended it; None while it runs.
    """

    def __init__(
        self,
        *command: object,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: int | IO = subprocess.DEVNULL,
        stdout: int | IO = subprocess.DEVNULL,
        stderr: int | IO = subprocess.DEVNULL,
    ) -> None:
        job = {
            "command": [str(part) for part in command],
            "environment": dict(os.environ if env is None else env),
            "folder": os.fspath(cwd if cwd is not None else os.getcwd()),
        }
        text = json.dumps(job).encode()
        self.returncode: int | None = None
        self._connection = _connected()
        self._connection.sendall(len(text).to_bytes(4, "big"))
        with open(os.devnull, "r+b", buffering=0) as nowhere:
            streams = [
                nowhere.fileno()
                if each == subprocess.DEVNULL
                else each
                if isinstance(each, int)
                else each.fileno()
                for each in (stdin, stdout, stderr)
            ]
            socket.send_fds(self._connection, [text[:1]], streams)
        self._connection.sendall(text[1:])
        self.pid = int.from_bytes(self._connection.recv(4, socket.MSG_WAITALL), "big")

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; TimeoutError where that takes longer than `timeout` seconds."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            answer = self._connection.recv(4)
            self._connection.close()
            assert len(answer) == 4, "the fork server has ended"
            self.returncode = int.from_bytes(answer, "big", signed=True)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def kill(self) -> None:
        """End it by SIGKILL, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, 9)


def run(
    *command: object,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end; what it writes is captured."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = Started(*command, env=env, cwd=cwd, stdout=out, stderr=errors)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        for stream in (out, errors):
            stream.seek(0)
        return subprocess.CompletedProcess(list(command), process.wait(), out.read(), errors.read())
