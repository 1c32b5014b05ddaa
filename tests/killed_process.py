"""Commands as processes that are really killed."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def kill_at_first_part(arguments: Sequence[str], out: Path) -> None:
    """Start `vlscore` with these arguments; kill it as soon as `out` has its first part."""
    command = [sys.executable, "-m", "vlscore", *arguments]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while not (out / ".parts" / "part-00000000").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -9


def files_of(folder: Path, *left_out: str) -> dict[str, bytes]:
    """Return name -> bytes of the files of a result folder, without its lock."""
    names = {".lock", *left_out}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in names}
