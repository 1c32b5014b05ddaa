"""State of a training run, from which a killed run is resumed.

The weights, the optimiser's state and the progress are in `.state/` of the output folder, as
safetensors, which cannot run code. A kill costs only the minutes since the last state, and does not
change the result. Each time a state is written, the log of the steps since the last one is appended
as a chunk of the run, with the name and digest of the state file. The last state remains after the
end, so that the run can be continued for more epochs.
"""

import csv
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vlscore.core import ResumableFolder, atomic_write, file_digest, json_line, plain, writing
from vlscore.errors import ChecksumMismatch, OutputFailed

FOLDER = ".state"
# Entry of run.json about the last state: its progress, and the names and digests of its files.
STATE = "state"
# Entry about the epochs of each part of a run that was continued after its end.
PARTS_OF_RUN = "epochs_in_parts"
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


class Journal:
    """Journal of the unfinished run of an output folder; only the first process has one.

    Args:
        run: the resumable folder, entered, of an unfinished run.
        data: digest of the training data.
        anew: restart a run that cannot be resumed, instead of refusing it.
    """

    def __init__(self, run: ResumableFolder, data: str, *, anew: bool = False) -> None:
        self._run, self._data, self._anew = run, data, anew
        self._folder = run.out / FOLDER
        self._lines: dict[str, list[str]] = {name: [] for name in LOGS}
        self._earlier: dict[str, Any] = {}
        if run.previous is not None:
            self._earlier = run.previous.record[STATE]
        elif not run.rows:
            remove_other_states(run.out, ())

    @property
    def base(self) -> int:
        """Return the number of steps of the finished run that this one continues; 0 without one."""
        return int(self._earlier["progress"]["step"]) if self._earlier else 0

    def note(self) -> dict[str, Any]:
        """Return the progress of the last state, and names and digests of its files."""
        note = self._earlier
        for chunk in self._run.chunks():
            note = chunk.note
        return note

    def progress(self) -> Progress:
        """Read the progress of the run.

        Raises: ChecksumMismatch if its files are damaged, or it was started with other data.
        """
        try:
            return self._progress()
        except ChecksumMismatch:
            if not self._anew:
                raise
            self._run.begin_anew()
            remove_other_states(self._run.out, ())
            return Progress()

    def _progress(self) -> Progress:
        note = self.note()
        if not note:
            return Progress()
        if note["data"] != self._data:
            raise ChecksumMismatch(
                f"{self._run.out}: the images or reports are not those that the training began "
                "with; restore them, or give --overwrite to begin anew"
            )
        for name, sha256 in note["files"].items():
            path = self._folder / name
            if not path.is_file() or file_digest(path) != sha256:
                raise ChecksumMismatch(
                    f"{path} is damaged or missing, so the training cannot be resumed; give "
                    "--overwrite to begin anew"
                )
        return Progress(**note["progress"])

    def log(self, name: str, row: Mapping[str, Any]) -> None:
        """Add one row to a log, which the next `store` writes."""
        self._lines[name].append(json_line(row))

    def store_best(self, progress: Progress, encoder: nn.Module) -> None:
        """Store the weights of the best validation."""
        self._write(best_file(progress), encoder.state_dict())

    def store(self, progress: Progress, trained: Trained) -> None:
        """Store the state of the run, from which it is resumed after a kill."""
        self._write(state_file(progress), trained.tensors(), progress)
        names = [state_file(progress)]
        if progress.score is not None:
            names.append(best_file(progress))
        digests = {name: file_digest(self._folder / name) for name in names}
        note = {"progress": asdict(progress), "files": digests, "data": self._data}
        with self._run.append(progress.step - self.base - self._run.rows, note) as place:
            for name, lines in self._lines.items():
                (place / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        self._lines = {name: [] for name in LOGS}
        # The state of the finished run that this one continues remains until this one ends.
        remove_other_states(self._run.out, [*names, *self._earlier.get("files", ())])

    def write_logs(self, place: Path) -> None:
        """Write every log with rows as a table, including the rows of stopped calls."""
        for name in LOGS:
            rows = list(self._rows(name))
            if rows:
                with atomic_write(place / f"{name}.csv") as stream:
                    table = csv.DictWriter(stream, list(rows[0]))
                    table.writeheader()
                    table.writerows(rows)

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        previous = self._run.previous
        if previous is not None and f"{name}.csv" in previous.digests:
            with previous.file(f"{name}.csv").open(encoding="utf-8", newline="") as stream:
                yield from csv.DictReader(stream)
        for chunk in self._run.chunks():
            with (chunk.path / f"{name}.jsonl").open(encoding="utf-8") as stream:
                yield from map(json.loads, stream)

    def _write(
        self, name: str, tensors: Mapping[str, Tensor], progress: Progress | None = None
    ) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        metadata = {"progress": json.dumps(asdict(progress))} if progress is not None else None
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
            new = self._folder / f"new-{name}"
            # Each of several tensors that share memory is written completely.
            copies = {k: v.detach().cpu().clone() for k, v in tensors.items()}
            try:
                save_file(copies, new, metadata=metadata)
            except SafetensorError as error:  # as a full disk is reported
                raise OutputFailed(f"{new} cannot be written: {error}") from error
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(new, self._folder / name)


def read_state(out: Path, step: int) -> tuple[Progress, dict[str, Tensor]]:
    """Read the progress and the tensors that the first process stored at a step."""
    from safetensors import safe_open

    path = out / FOLDER / state_file(Progress(step))
    with safe_open(path, framework="pt") as file:
        progress = Progress(**json.loads(file.metadata()["progress"]))
        return progress, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def read_best(out: Path, progress: Progress) -> dict[str, Tensor]:
    """Read the encoder's tensors at its best validation."""
    from safetensors.torch import load_file

    return load_file(out / FOLDER / best_file(progress))


def remove_other_states(out: Path, names: Collection[str]) -> None:
    """Remove all stored states except some files."""
    folder = out / FOLDER
    with writing(out):
        if not names:
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.is_dir():
            for path in folder.iterdir():
                if path.name not in names:
                    path.unlink()


def state_file(progress: Progress) -> str:
    """Return the name of the file with the state after `progress.step` steps."""
    return f"step-{progress.step:08d}.safetensors"


def best_file(progress: Progress) -> str:
    """Return the name of the file with the best weights."""
    return f"best-{progress.best_step:08d}.safetensors"


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
