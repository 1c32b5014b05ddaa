"""Fixtures that all tests may use."""

import atexit
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Examples are timed by nobody: beside other work a sound test takes longer than 200 ms.
# `make test` takes the same examples each time, so that a change fails for what it changes;
# `make test-all` draws new ones.
settings.register_profile("vlscore", deadline=None, derandomize=True)
settings.register_profile("drawn", deadline=None)
settings.load_profile("vlscore")

# No test reads or writes the user's own cache, in subprocesses either; `cache_folder` has one.
os.environ["VLSCORE_CACHE"] = "off"

# Tests start many Python processes: none of them compiles the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in its background has them ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


def run_python(
    *command: object, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments to its end; it imports this package from everywhere."""
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})},
        capture_output=True,
        text=True,
        timeout=600,
        **options,
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real radiographs, reports and golden embeddings beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("../shared (real radiographs, reports, goldens) is not present")
    return SHARED


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is on during the test, empty at its beginning."""
    folder = tmp_path / "the cache"
    monkeypatch.setenv("VLSCORE_CACHE", str(folder))
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Exempt from garbage collection what is imported for all tests: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # Python ends as usual; pytest's own collections before take seconds with all of it.
        atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where there is no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
