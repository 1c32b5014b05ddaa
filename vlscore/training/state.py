"""Stored state of a training run, from which a stopped or killed run is resumed.

`.state/` in the output folder has one file, `step-NUMBER-SHA256.safetensors`: the tensors of model
and optimiser, and as its metadata the progress, the logs, and what the run depends on. It cannot
run code. A kill costs only the minutes since the last state, and does not change the result.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
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


@dataclass
class State:
    """State of a run after some step.

    Attributes:
        progress: progress of the run.
        rows: rows of each log so far.
        best: the encoder's tensors at its best validation.
        tensors: tensors of everything that training changes, as `tensors_of` returns them.
    """

    progress: Progress
    rows: dict[str, list[dict[str, Any]]]
    best: dict[str, Tensor]
    tensors: dict[str, Tensor]


def tensors_of(trained: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of modules and of an optimiser, each under its name here and there."""
    found: dict[str, Tensor] = {}
    for name, each in trained.items():
        content = each.state_dict()
        if isinstance(each, torch.optim.Optimizer):
            states = content["state"].items()
            content = {f"{n}.{key}": x for n, values in states for key, x in values.items()}
        found |= {f"{name}.{key}": value for key, value in content.items()}
    return found


def restore(trained: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Give modules and an optimiser the tensors that `tensors_of` returned."""
    for name, each in trained.items():
        content: dict[str, Any] = _below(name, tensors)
        if isinstance(each, torch.optim.Optimizer):
            states: dict[int, dict[str, Tensor]] = {}
            for key, tensor in content.items():
                number, _, what = key.partition(".")
                states.setdefault(int(number), {})[what] = tensor
            content = {"state": states, "param_groups": each.state_dict()["param_groups"]}
        each.load_state_dict(content)


class States:
    """Stored states of the unfinished run of an output folder.

    Args:
        out: output folder; every process can read it.
        key: what the run depends on, without the content of the data.
        data: digest of the training data.
        anew: remove the state of another run, or a damaged one, instead of refusing it.
    """

    def __init__(self, out: Path, key: Mapping[str, Any], data: str = "", *, anew: bool = False):
        self.out, self._folder = out, out / ".state"
        self._depends = as_json({"key": key, "data": data})
        self._anew = anew

    def checked(self) -> State | None:
        """Return the last state after checks of its content; None without one.

        Raises: InvalidSetting if it is of another run; ChecksumMismatch if it is damaged, or was
            begun with other data.
        """
        found = self._file()
        if found is not None:
            try:
                self._check(found)
                return self.read()
            except (InvalidSetting, ChecksumMismatch):
                if not self._anew:
                    raise
        self.remove()
        return None

    def read(self) -> State:
        """Return the last state, which another process has checked."""
        found = self._file()
        assert found is not None
        with safe_open(found, "pt") as file:
            facts = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        progress = Progress(**facts["progress"])
        return State(progress, facts["rows"], _below("best", tensors), _below("trained", tensors))

    def store(self, state: State) -> None:
        """Store the state of the run, from which it is resumed after a kill."""
        facts = {"depends": self._depends, "progress": asdict(state.progress), "rows": state.rows}
        tensors = {f"trained.{name}": value for name, value in state.tensors.items()}
        tensors |= {f"best.{name}": value for name, value in state.best.items()}
        # Each of several tensors that share memory is written completely.
        copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
        new = self._folder / "new"
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
            try:
                save_file(copies, new, {"state": json.dumps(facts)})
            except SafetensorError as error:  # as a full disk is reported
                raise OutputFailed(f"{new} cannot be written: {error}") from error
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            name = f"step-{state.progress.step:08d}-{file_digest(new)}.safetensors"
            os.replace(new, self._folder / name)
            for path in self._folder.glob("step-*"):
                if path.name != name:
                    path.unlink()

    def remove(self) -> None:
        """Remove all states."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_left_over(self) -> None:
        """Remove the state that a kill after the end of this run left; one of another run stays."""
        found = self._file()
        if found is None or _is_damaged(found) or _depends(found)["key"] == self._depends["key"]:
            self.remove()

    def _file(self) -> Path | None:
        return max(self._folder.glob("step-*"), default=None)

    def _check(self, path: Path) -> None:
        if _is_damaged(path):
            raise ChecksumMismatch(
                f"{path} is damaged, so the training cannot be resumed; give --overwrite to begin "
                "anew"
            )
        before, now = _depends(path), self._depends
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


def _is_damaged(path: Path) -> bool:
    return file_digest(path) != path.stem.rpartition("-")[2]


def _depends(path: Path) -> dict[str, Any]:
    with safe_open(path, "pt") as file:
        found: dict[str, Any] = json.loads(file.metadata()["state"])["depends"]
    return found


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
