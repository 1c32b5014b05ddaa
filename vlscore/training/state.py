"""Stored state of a training run, from which a stopped or killed run is resumed.

`.state/` in the output folder has one file, `step-NUMBER-SHA256.pt`: weights, optimiser, progress,
logs, and what the run depends on. `torch.load(weights_only=True)` reads it, so that it cannot run
code. A kill costs only the minutes since the last state, and does not change the result.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlscore.core import as_json, file_digest, key_difference, plain, writing
from vlscore.errors import ChecksumMismatch, InvalidSetting, OutputFailed

LOG, VALIDATIONS = LOGS = ("log", "validation")


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

    Attributes:
        step: number of finished steps.
        score: score of the best validation, larger is better; None before the first.
        best: that validation.
        best_step: number of steps before that validation.
        waited: number of validations since.
        ended: training has ended, early or not.
    """

    step: int = 0
    score: float | None = None
    best: dict[str, float] | None = None
    best_step: int = 0
    waited: int = 0
    ended: bool = False

    def validated(self, score: float, found: dict[str, float]) -> "Progress":
        """Return the progress after one more validation; a score of nan does not count."""
        if score == score and (self.score is None or score > self.score):
            return replace(self, score=score, best=plain(found), best_step=self.step, waited=0)
        return replace(self, waited=self.waited + 1)


class States:
    """Stored states of the unfinished run of an output folder.

    Args:
        out: output folder; every process can read it.
        key: what the run depends on, without the content of the data.
        data: digest of the training data.
        anew: remove the state of another run, or a damaged one, instead of refusing it.

    Attributes:
        rows: rows of each log so far.
        best: the encoder's tensors at its best validation.
    """

    def __init__(self, out: Path, key: Mapping[str, Any], data: str = "", *, anew: bool = False):
        self.out, self._folder = out, out / ".state"
        self._depends = as_json({"key": key, "data": data})
        self._anew = anew
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in LOGS}
        self.best: dict[str, Tensor] = {}

    def checked(self) -> dict[str, Any] | None:
        """Return the last state after checks of its content; None without one.

        Raises: InvalidSetting if it is of another run; ChecksumMismatch if it is damaged, or was
            begun with other data.
        """
        found = self._file()
        if found is not None:
            try:
                return self._checked(found)
            except (InvalidSetting, ChecksumMismatch):
                if not self._anew:
                    raise
        self.remove()
        return None

    def read(self) -> dict[str, Any]:
        """Return the last state, which another process has checked."""
        found = self._file()
        assert found is not None
        content: dict[str, Any] = torch.load(found, map_location="cpu", weights_only=True)
        return content

    def store(self, progress: Progress, trained: Mapping[str, Any]) -> None:
        """Store the state of the run, from which it is resumed after a kill.

        Args: trained: modules and the optimiser by name, with their `state_dict`.
        """
        content = {
            "depends": self._depends,
            "progress": asdict(progress),
            "rows": self.rows,
            "best": self.best,
            **{name: each.state_dict() for name, each in trained.items()},
        }
        new = self._folder / "new"
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
            try:
                torch.save(content, new)
            except RuntimeError as error:  # as a full disk is reported
                raise OutputFailed(f"{new} cannot be written: {error}") from error
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            stored = self._folder / f"step-{progress.step:08d}-{file_digest(new)}.pt"
            os.replace(new, stored)
            for path in self._folder.glob("step-*"):
                if path != stored:
                    path.unlink()

    def remove(self) -> None:
        """Remove all states."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_left_over(self) -> None:
        """Remove the state that a kill after the end of this run left; one of another run stays."""
        found = self._file()
        is_useless = found is None or _is_damaged(found)
        if is_useless or self.read()["depends"]["key"] == self._depends["key"]:
            self.remove()

    def _file(self) -> Path | None:
        return max(self._folder.glob("step-*"), default=None)

    def _checked(self, path: Path) -> dict[str, Any]:
        if _is_damaged(path):
            raise ChecksumMismatch(
                f"{path} is damaged, so the training cannot be resumed; give --overwrite to begin "
                "anew"
            )
        state = self.read()
        before, now = state["depends"], self._depends
        if before["key"] != now["key"]:
            raise InvalidSetting(
                f"{self.out} holds a stopped training, which differs: "
                f"{key_difference(before['key'], now['key'])}. Choose another output folder, or "
                "give --overwrite to begin anew"
            )
        if before["data"] != now["data"]:
            raise ChecksumMismatch(
                f"{self.out}: the images or reports are not those that the training began with; "
                "restore them, or give --overwrite to begin anew"
            )
        return state


def _is_damaged(path: Path) -> bool:
    return file_digest(path) != path.stem.rpartition("-")[2]
