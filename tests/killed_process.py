"""Commands as processes that are really killed."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# A process imports PyTorch once, and each command is a fork of it: importing takes longer than the
# commands of tests do. It computes nothing itself, so that its forks are sound.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("tests.killed_process", "torch", "torch.distributed", "scipy.stats", "pyarrow.parquet"),
        *("pydicom", "sacrebleu", "vlscore.cli.evaluate", "vlscore.evaluation.scoring.run"),
        *("vlscore.encoders.models.small", "vlscore.metrics.scorer", "vlscore.data.images.read"),
    ]
)


def started(arguments: Sequence[str], errors: Path, **environment: str) -> Any:
    """Start `vlscore` with these arguments, as a process with as many threads as this one.

    Args:
        errors: file for what it writes to standard error.
        environment: variables besides those of this process.
    """
    import torch

    given = (list(arguments), str(errors), {**os.environ, **environment}, torch.get_num_threads())
    process = _FORKS.Process(target=_run, args=given)
    process.start()
    return process


def _run(arguments: list[str], errors: str, environment: Mapping[str, str], threads: int) -> None:
    import torch

    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(threads)
    for stream, path in ((1, os.devnull), (2, errors)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), stream)
    sys.argv = ["vlscore", *arguments]
    from vlscore.__main__ import main

    main()


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
