"""Constructed checkpoints, written once."""

from pathlib import Path

import pytest

from tests.metrics.networks.constructed import write_chexbert, write_radgraph


@pytest.fixture(scope="session")
def chexbert_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chexbert(tmp_path_factory.mktemp("chexbert"))


@pytest.fixture(scope="session")
def radgraph_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_radgraph(tmp_path_factory.mktemp("radgraph"), "some/bert-uncased")
