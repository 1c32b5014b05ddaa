"""Writing a measured C into the card of an encoder's folder."""

from pathlib import Path
from typing import Any

from vlscore._files import write_json
from vlscore.calibration.calibrate import Calibration
from vlscore.encoders.blocks.json_files import read_json
from vlscore.errors import WeightsNotFound

CARD = "card.json"


def write_constant(folder: str | Path, calibration: Calibration) -> Path:
    """State a measured C, and what it was measured on, in an encoder's card; returns its path.

    The other facts of the card stay; the file is replaced in one step.

    Args: folder: of an encoder that `vlscore train` wrote.
    Raises: as `read_card`.
    """
    measured = {"C": calibration.C, "C_source": calibration.source}
    path = Path(folder) / CARD
    write_json(path, {**read_card(folder), **measured, "calibration": calibration.to_dict()})
    return path


def read_card(folder: str | Path) -> dict[str, Any]:
    """The card of an encoder's folder.

    Raises: WeightsNotFound where the folder has none; IncompatibleCheckpoint where it cannot be
        read.
    """
    path = Path(folder) / CARD
    if not path.is_file():
        raise WeightsNotFound(
            f"{folder} has no {CARD}, so it is no folder of a trained encoder; give the one that "
            "`vlscore train` wrote, or state C by hand with --C"
        )
    return read_json(path, "card of an encoder")
