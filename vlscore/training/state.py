"""State of a training run, from which a killed run is resumed.

The folder `.state/` of the output folder has the weights and the optimiser's state as safetensors,
which cannot run code, the logs so far, and `state.json`, which is written last: the progress, what
the run depends on, and the digests of the other files. A kill costs only the minutes since the last
state, and does not change the result.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vlscore.core import (
    as_json,
    atomic_write,
    file_digest,
    json_line,
    key_difference,
    plain,
    write_json,
    writing,
)
from vlscore.errors import ChecksumMismatch, InvalidSetting, OutputFailed

FOLDER = ".state"
_STATE = "state.json"
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


class Trained:
    """Everything that training changes, as one flat set of tensors."""

    def __init__(
        self, encoder: nn.Module, objective: nn.Module, optimizer: torch.optim.Optimizer
    ) -> None:
        self.encoder, self.objective, self.optimizer = encoder, objective, optimizer

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name; they share memory with the modules in training."""
        found = {f"encoder.{name}": value for name, value in self.encoder.state_dict().items()}
        found |= {f"objective.{name}": t for name, t in self.objective.state_dict().items()}
        for number, values in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{number}.{name}": value for name, value in values.items()}
        return found

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the tensors that `tensors` returned."""
        self.encoder.load_state_dict(_below("encoder", tensors))
        self.objective.load_state_dict(_below("objective", tensors))
        values: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _below("optimizer", tensors).items():
            number, _, what = name.partition(".")
            values.setdefault(int(number), {})[what] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": values, "param_groups": groups})


class States:
    """Stored states of the unfinished run of an output folder; the first process writes them.

    Args:
        out: output folder; every process can read it.
        key: what the run depends on, without the content of the data.
        data: digest of the training data.
        writes: whether this is the first process.
        anew: remove the state of another run, or a damaged one, instead of refusing it.
    """

    def __init__(
        self, out: Path, key: Mapping[str, Any], data: str, *, writes: bool, anew: bool
    ) -> None:
        self.out, self.writes = out, writes
        self._folder = out / FOLDER
        self._depends = as_json({"key": key, "data": data})
        self._anew = anew
        self._lines: dict[str, list[str]] = {name: [] for name in LOGS}

    def progress(self) -> Progress:
        """Return the progress of the last state, after a check of its files; none without one.

        Raises: InvalidSetting if it is of another run; ChecksumMismatch if its files are damaged,
            or it was begun with other data.
        """
        try:
            return self._checked()
        except (InvalidSetting, ChecksumMismatch):
            if not self._anew:
                raise
        self.remove()
        return Progress()

    def _checked(self) -> Progress:
        if not (self._folder / _STATE).is_file():
            self.remove()
            return Progress()
        state = self._state()
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
        for name, sha256 in state["files"].items():
            path = self._folder / name
            if not path.is_file() or file_digest(path) != sha256:
                raise ChecksumMismatch(
                    f"{path} is damaged or missing, so the training cannot be resumed; give "
                    "--overwrite to begin anew"
                )
        progress = Progress(**state["progress"])
        # Steps that were logged after the state are trained, and logged, once more.
        for name in LOGS:
            kept = [json_line(row) for row in self.rows(name) if row["step"] <= progress.step]
            with atomic_write(self._log(name)) as stream:
                stream.writelines(kept)
        return progress

    def read(self) -> tuple[Progress, dict[str, Tensor]]:
        """Read the last state, which `progress` of the first process has checked."""
        from safetensors.torch import load_file

        progress = Progress(**self._state()["progress"])
        return progress, load_file(self._folder / _state_file(progress))

    def read_best(self, progress: Progress) -> dict[str, Tensor]:
        """Read the encoder's tensors at its best validation."""
        from safetensors.torch import load_file

        return load_file(self._folder / _best_file(progress))

    def log(self, name: str, row: Mapping[str, Any]) -> None:
        """Add one row to a log, which the next `store` writes."""
        if self.writes:
            self._lines[name].append(json_line(row))

    def store_best(self, progress: Progress, encoder: nn.Module) -> None:
        """Store the weights of the best validation."""
        if self.writes:
            self._write(_best_file(progress), encoder.state_dict())

    def store(self, progress: Progress, trained: Trained) -> None:
        """Store the state of the run, from which it is resumed after a kill."""
        if not self.writes:
            return
        self._write(_state_file(progress), trained.tensors())
        names = [_state_file(progress)]
        if progress.score is not None:
            names.append(_best_file(progress))
        with writing(self._folder):
            for name, lines in self._lines.items():
                with self._log(name).open("a", encoding="utf-8") as stream:
                    stream.writelines(lines)
                lines.clear()
        files = {name: file_digest(self._folder / name) for name in names}
        state = {"depends": self._depends, "progress": asdict(progress), "files": files}
        write_json(self._folder / _STATE, state)
        for path in self._folder.glob("*.safetensors"):
            if path.name not in names:
                path.unlink()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a log up to the last state, including those of stopped calls."""
        path = self._log(name)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        # A kill may have left half a line, of a step behind the state.
        return [json.loads(line) for line in lines if line.endswith("}")]

    def remove(self) -> None:
        """Remove all states."""
        # What is left after a kill in between is no state.
        (self._folder / _STATE).unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _state(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self._folder / _STATE).read_text(encoding="utf-8"))
        return content

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"

    def _write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
            new = self._folder / f"{name}.new"
            # Each of several tensors that share memory is written completely.
            copies = {k: v.detach().cpu().clone() for k, v in tensors.items()}
            try:
                save_file(copies, new)
            except SafetensorError as error:  # as a full disk is reported
                raise OutputFailed(f"{new} cannot be written: {error}") from error
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(new, self._folder / name)


def remove_left_over(out: Path, key: Mapping[str, Any]) -> None:
    """Remove what a kill after the end of a run left of its states; those of another run stay."""
    state = out / FOLDER / _STATE
    if state.is_file() and json.loads(state.read_text("utf-8"))["depends"]["key"] != as_json(key):
        return
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def _state_file(progress: Progress) -> str:
    return f"step-{progress.step:08d}.safetensors"


def _best_file(progress: Progress) -> str:
    return f"best-{progress.best_step:08d}.safetensors"


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
