"""Finished training that is continued for more epochs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore.core import FinishedRun, finished_run, unfinished_key
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.training.state import FOLDER, PARTS_OF_RUN, STATE

_SETTINGS, _EPOCHS = "settings", "epochs"


def is_longer(out: Path, key: Mapping[str, Any], encoder: str) -> bool:
    """Return True if a folder holds the same run with fewer epochs, so that it can be continued.

    The learning rate of a run falls to 0 at its end. So its further epochs have a schedule of their
    own, and the result is not that of a run with all epochs from the beginning.

    Args:
        key: key of the requested run.
        encoder: name of its encoder.

    Raises: InvalidSetting if the run ended early, or its last state is no longer there.
    """
    try:
        finished = finished_run(out)
    except ChecksumMismatch:
        return False  # The code that opens the folder reports the damage.
    if finished is None:
        return False
    before, now = dict(finished.key.get(_SETTINGS) or {}), dict(key[_SETTINGS])
    had, wanted = before.pop(_EPOCHS, None), now.pop(_EPOCHS)
    rest = {name: value for name, value in key.items() if name != _SETTINGS}
    is_same = before == now and rest == {n: v for n, v in finished.key.items() if n != _SETTINGS}
    if not is_same or not isinstance(had, int) or had >= wanted:
        return False
    from_its_weights = (
        f"begin a run from its weights: --encoder {encoder} --weights {out} --epochs "
        f"{wanted - had} --out ANOTHER-FOLDER"
    )
    state = finished.record.get(STATE)
    if state is None or not all((out / FOLDER / name).is_file() for name in state["files"]):
        raise InvalidSetting(
            f"{out} was trained for {had} epochs, and its last state ({FOLDER}) is not there, so "
            f"it cannot be continued. To train on, {from_its_weights}. To train for {wanted} "
            "epochs from the beginning, give another folder, or --overwrite"
        )
    if 0 < now["patience"] <= state["progress"]["waited"]:
        raise InvalidSetting(
            f"{out}: training ended early, after {state['progress']['waited']} validations without "
            f"improvement (--patience {now['patience']}), so more epochs change nothing. To train "
            f"on nevertheless, {from_its_weights}"
        )
    return True


def is_unfinished(out: Path) -> bool:
    """Return True if a folder also holds a stopped run."""
    try:
        return unfinished_key(out) is not None
    except ChecksumMismatch:
        return True


def epochs_in_parts(previous: FinishedRun | None, epochs: int) -> list[int]:
    """Return the epochs of each part of a run, in order; one number if it was never continued.

    >>> epochs_in_parts(None, 8)
    [8]
    """
    if previous is None:
        return [epochs]
    earlier = previous.record.get(PARTS_OF_RUN) or [previous.key[_SETTINGS][_EPOCHS]]
    return [*earlier, epochs - sum(earlier)]


def note_on_parts(parts: list[int]) -> str | None:
    """Return a sentence for a run that was continued; None for another.

    >>> print(note_on_parts([6, 2]))
    trained for 6 + 2 epochs: each part has its own learning rate schedule, so this is not a run of
    8 epochs from the beginning
    """
    if len(parts) < 2:
        return None
    return (
        f"trained for {' + '.join(map(str, parts))} epochs: each part has its own learning rate "
        f"schedule, so this is not a run of\n{sum(parts)} epochs from the beginning"
    )
