"""Fixtures of the encoders' tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for rebuilt checkpoints (hundreds of megabytes), gone after each module."""
    folder = tmp_path_factory.mktemp("checkpoints")
    yield folder
    shutil.rmtree(folder)
