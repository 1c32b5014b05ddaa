"""Check for a training that has ended and is started again with more epochs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore.core import finished_run
from vlscore.errors import ChecksumMismatch, InvalidSetting

_SETTINGS, _EPOCHS = "settings", "epochs"


def check_not_longer(out: Path, key: Mapping[str, Any], encoder: str) -> None:
    """Refuse more epochs than the run in this folder had; the message explains how to add them.

    The learning rate of a run falls to 0 at its end, so a run of 8 epochs is not a run of 6 plus 2
    more. Further epochs must be a new run, from the weights of the first.

    Args:
        key: key of the requested run.
        encoder: name of its encoder.

    Raises: InvalidSetting if the folder holds the same run with fewer epochs.
    """
    try:
        finished = finished_run(out)
    except ChecksumMismatch:
        return  # The code that opens the folder reports the damage.
    if finished is None:
        return
    before, now = dict(finished.key.get(_SETTINGS) or {}), dict(key[_SETTINGS])
    had, wanted = before.pop(_EPOCHS, None), now.pop(_EPOCHS)
    rest = {name: value for name, value in key.items() if name != _SETTINGS}
    is_same = before == now and rest == {n: v for n, v in finished.key.items() if n != _SETTINGS}
    if not is_same or not isinstance(had, int) or had >= wanted:
        return
    raise InvalidSetting(
        f"{out} was trained for {had} epochs, at whose end the learning rate had fallen to 0. To "
        f"train on, begin a run from its weights: --encoder {encoder} --weights {out} --epochs "
        f"{wanted - had} --out ANOTHER-FOLDER; its rate rises and falls again, over these epochs. "
        f"To train for {wanted} epochs from the beginning, give another folder, or --overwrite"
    )
