"""Fixtures of training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.toys import ToyEncoder, write_table
from vlscore.data import open_studies
from vlscore.training import Execution, Preparation, Start, TrainingRun, TrainingSettings, train
from vlscore.training.training_pairs import Pairs, prepare

LOCAL = "tests.training.toys:Local"


def opened(table: Path, **options: Any) -> Preparation:
    """The preparation of a table that `write_table` wrote."""
    group = options.get("group_column")
    studies = open_studies(
        table, needs={"image", "reference"}, unique=False, also=[group] if group else []
    )
    return Preparation(studies, **options)


@pytest.fixture(scope="session")
def table(tmp_path_factory) -> Path:
    """24 studies of one frontal image."""
    return write_table(tmp_path_factory.mktemp("studies"))


@pytest.fixture(scope="session")
def lateral_table(tmp_path_factory) -> Path:
    """24 studies, every other with a lateral image."""
    return write_table(tmp_path_factory.mktemp("studies"), lateral=True)


@pytest.fixture(scope="session")
def pairs(table, tmp_path_factory) -> Pairs:
    return prepare(opened(table), tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def run_toy(table) -> Callable[..., TrainingRun]:
    """Train a toy for a few steps."""

    def run(out: Path, *, encoder: ToyEncoder | None = None, **options: Any) -> TrainingRun:
        run = {"micro_batch", "keep_seconds", "on_step", "on_progress", "pairs"} & options.keys()
        execution = Execution(device="cpu", **{name: options.pop(name) for name in run})
        outside = {"validation", "overwrite"} & options.keys()
        given = {name: options.pop(name) for name in outside}
        preparation = options.pop("preparation", None) or opened(table)
        settings = {"objective": LOCAL, "batch_size": 6, "epochs": 4, "learning_rate": 0.05}
        return train(
            preparation,
            out,
            TrainingSettings(**{**settings, "validation_share": 0.2, **options}),
            Start(encoder or ToyEncoder()),
            execution=execution,
            **given,
        )

    return run
