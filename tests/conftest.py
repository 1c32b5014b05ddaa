"""Fixtures that every room's tests may use."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

# Examples are timed by nobody: beside other work a sound test takes longer than 200 ms.
settings.register_profile("vlscore", deadline=None)
settings.load_profile("vlscore")

# No test reads or writes the user's own cache, in subprocesses either; `cache_folder` has one.
os.environ["VLSCORE_CACHE"] = "off"

# Tests start many Python processes: none of them compiles the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in its background has them ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files that take longest run first, so that no worker has one of them left at the end.
LONGEST = (
    "tests/test_kills.py",
    "tests/encoders/test_contract.py",
    "tests/test_docs.py",
    "tests/encoders/test_processors.py",
    "tests/encoders/test_parity_biovil.py",
    "tests/encoders/test_parity_gloria.py",
    "tests/evaluation/test_sharing.py",
    "tests/evaluation/test_resuming.py",
    "tests/test_names_in_files.py",
    "tests/test_package.py",
    "tests/test_site.py",
    "tests/test_wheel.py",
    "tests/test_benchmarks.py",
    "tests/test_interrupts.py",
    "tests/core/test_resumable.py",
    "tests/cli/test_help.py",
    "tests/cli/test_evaluate.py",
    "tests/training/test_processes.py",
    "tests/training/test_resuming.py",
    "tests/retrieval/vector_search/test_sharding.py",
    "tests/metrics/networks/test_gpu.py",
)

# The process that began this run of tests; workers and what they start inherit the variable.
OWNER = os.environ.setdefault("VLSCORE_TEST_OWNER", str(os.getpid()))

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


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
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings outside of tests alone: tests have none."""
    found = yield
    if not file_path.name.startswith("test_"):
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


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


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist share out files in the order of the tests, not of their number."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first; skip tests marked `gpu` where there is no CUDA device."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
