"""The result of a training run: a folder that `load_encoder` reads, and what it was made from."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore.calibration import Calibration
from vlscore.encoders import JointEncoder
from vlscore.errors import InvalidSetting
from vlscore.training.pairs import FAILURES, Pairs
from vlscore.training.preparing import Preparation
from vlscore.training.settings import TrainingSettings
from vlscore.training.state import LOGS, Progress

CONFIG = "training.toml"
_MODEL_FILES = (
    "model.safetensors",
    "image.safetensors",
    "report.safetensors",
    "vocabulary.json",
    "vocab.txt",
    "card.json",
)
# Every file that training can ever write, beside the folder of the pairs.
RESULTS = (*_MODEL_FILES, *(f"{name}.csv" for name in LOGS), CONFIG, FAILURES)


def check_can_be_saved(encoder: JointEncoder) -> None:
    """Raises InvalidSetting for an encoder that has no way to write itself."""
    if not callable(getattr(encoder, "save", None)):
        raise InvalidSetting(
            f"{encoder.card.name} cannot be trained: it has no method save(folder, card), which "
            "writes what its load() reads"
        )


def save_result(place: Path, encoder: JointEncoder, card: Mapping[str, Any]) -> None:
    """Write the encoder's files with facts about it; see `SmallEncoder.save`."""
    encoder.save(place, card)  # type: ignore[operator]


def facts_of(
    preparation: Preparation,
    validation: Preparation | None,
    settings: TrainingSettings,
    progress: Progress,
) -> dict[str, Any]:
    """What an encoder was trained by, for its card and run.json."""
    return {
        "objective": settings.objective,
        "seed": settings.seed,
        "settings": settings.to_dict(),
        "table": str(preparation.table.path.resolve()),
        "validation_table": None if validation is None else str(validation.table.path.resolve()),
        "steps": progress.step,
        "best_step": progress.best_step if progress.score is not None else None,
        "best_validation": progress.best,
    }


def card_of_run(
    encoder: JointEncoder, facts: Mapping[str, Any], calibration: Calibration | None
) -> dict[str, Any]:
    """What the card of a trained encoder says beside what its layout fixes."""
    measured: dict[str, Any] = {"C_source": "not measured: vlscore calibrate"}
    if calibration is not None:
        measured = {
            "C": calibration.C,
            "C_source": f"{calibration.source}, of images as kept for training",
            "calibration": calibration.to_dict(),
        }
    title = encoder.card.title.removesuffix(", own training")
    return {
        "title": f"{title}, trained by {facts['objective']} on {Path(facts['table']).name}",
        **measured,
        "training": dict(facts),
    }


def write_failures(place: Path, pairs: Pairs) -> None:
    """The rows that gave no pair, as evaluations list theirs."""
    with atomic_write(place / FAILURES) as stream:
        table = csv.writer(stream)
        table.writerow(["row", "id", "error"])
        table.writerows(pairs.failed)


def read_failures(folder: Path) -> list[tuple[int, str, str]]:
    """(row, id, reason) of every row that gave no pair."""
    with (folder / FAILURES).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    return [(int(row), study, reason) for row, study, reason in rows]
