"""Commands as processes that are really killed."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from tests.forked import Started


def started(arguments: Sequence[str], errors: Path, **environment: str) -> Started:
    """Start `vlscore` with these arguments, as a process with as many threads as this one.

    Args:
        errors: file for what it writes to standard error.
        environment: variables besides those of this process.
    """
    import torch

    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    with errors.open("w") as stream:
        variables = {**os.environ, **threads, **environment}
        return Started("-m", "vlscore", *arguments, env=variables, stderr=stream)


def as_torchrun_sets() -> list[dict[str, str]]:
    """The variables that torchrun sets for each of two processes on this machine."""
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    shared |= {"MASTER_PORT": str(_free_port()), "OMP_NUM_THREADS": "1"}
    return [{**shared, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def kill_at_first_part(arguments: Sequence[str], out: Path) -> None:
    """Start `vlscore` with these arguments; kill it as soon as `out` has its first part."""
    errors = out.with_name(f"{out.name} errors")
    process = started(arguments, errors)
    while not (out / ".parts" / "part-00000000").exists():
        assert process.poll() is None, errors.read_text()
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -9


def files_of(folder: Path, *left_out: str) -> dict[str, bytes]:
    """Return name -> bytes of the files of a result folder, without its lock."""
    names = {".lock", *left_out}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in names}
