"""The steps of training: gradients, optimiser, validation, what is kept, and when it ends."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from vlscore.encoders import JointEncoder
from vlscore.errors import TrainingDiverged
from vlscore.training.batches import BatchSource
from vlscore.training.objective import Objective
from vlscore.training.processes import Processes
from vlscore.training.settings import TrainingSettings
from vlscore.training.state import (
    LOG,
    VALIDATIONS,
    Journal,
    Progress,
    Trained,
    read_best,
    read_state,
)
from vlscore.training.step import Step, Towers, diverged
from vlscore.training.validation import Validated, Validation


@dataclass(frozen=True)
class Shown:
    """What a progress display may tell after a step.

    Attributes:
        step, steps: done, and in all.
        loss: of the step; nan before the first.
        validated: the last validation.
    """

    step: int
    steps: int
    loss: float
    validated: Validated | None = None


OnStep = Callable[[Shown], None]


@dataclass(eq=False)
class Training:
    """One run: what is trained, on what, and where it is kept.

    Attributes:
        encoder, objective: on their device.
        source: of batches.
        validation: None where no pairs are held out.
        out: folder of the run; every process sees it.
        journal: of the first process; None elsewhere.
        micro_batch: most pairs of a process in its towers at once; 0 for no limit.
        keep_seconds: time between two states that are kept.
        on_step: called after every step.
        is_stopped: asked after every step; where it is, the state is kept and training stops.
    """

    encoder: JointEncoder
    objective: Objective
    source: BatchSource
    settings: TrainingSettings
    validation: Validation | None
    out: Path
    journal: Journal | None
    processes: Processes
    micro_batch: int = 0
    keep_seconds: float = 600.0
    on_step: OnStep = lambda shown: None
    is_stopped: Callable[[], bool] = lambda: False

    def run(self) -> Progress:
        """Train to the end, from where an earlier call stopped; the encoder is the result then.

        Raises: TrainingDiverged where a loss or a gradient is not finite; KeyboardInterrupt where
            it was stopped.
        """
        self._optimizer = make_optimizer(self.encoder, self.objective, self.settings)
        self._trained = Trained(self.encoder, self.objective, self._optimizer)
        self.encoder.requires_grad_(True)
        self.objective.train()
        devices = [self.encoder.device] if self.encoder.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            progress = self._steps(self._resumed())
        if self.settings.select != "last" and progress.score is not None:
            self.encoder.load_state_dict(read_best(self.out, progress))
        self.encoder.eval().requires_grad_(False)
        return progress

    @property
    def steps(self) -> int:
        """Of the whole run, unless it ends early."""
        return self.settings.epochs * self.source.steps_in_epoch

    def _resumed(self) -> Progress:
        progress = self.journal.progress() if self.journal is not None else Progress()
        step = torch.tensor(progress.step, device=self.encoder.device)
        self.processes.copy_from_first([step])
        if int(step):
            progress, tensors = read_state(self.out, int(step))
            self._trained.restore(tensors)
        else:
            self.processes.copy_from_first(self.encoder.state_dict().values())
            self.processes.copy_from_first(self.objective.state_dict().values())
        return progress

    def _steps(self, progress: Progress) -> Progress:
        if progress.ended:
            return progress
        towers = Towers(
            self.encoder,
            local=self.objective.local,
            precision=self.settings.precision,
            frozen_norms=self.settings.frozen_norms,
        )
        towers.train()
        step = Step(
            towers,
            self.objective,
            self.processes,
            micro_batch=self.micro_batch,
            seed=self.settings.seed,
        )
        kept = time.monotonic()
        validated = None
        for batch in self.source.training(progress.step, self.steps):
            number = progress.step
            rate = self.settings.rate_at(number, self.steps)
            self._optimizer.zero_grad(set_to_none=True)
            ids = [self.source.pairs.ids[row] for row in batch.rows]
            parts = step(batch, number, ids)
            norm = self._update(rate, number, ids)
            progress = replace(progress, step=number + 1)
            self._log_step(progress.step, rate, norm, parts)
            if self._validates_after(progress.step):
                validated = self._validated(towers, progress)
                progress = self._judged(progress, validated)
            patience = self.settings.patience
            ended = progress.step == self.steps or 0 < patience <= progress.waited
            progress = replace(progress, ended=ended)
            self.on_step(Shown(progress.step, self.steps, sum(parts.values()), validated))
            stopped = self.is_stopped()
            is_due = ended or stopped or time.monotonic() - kept > self.keep_seconds
            if self.journal is not None and is_due:
                self.journal.keep(progress, self._trained)
                kept = time.monotonic()
            if ended:
                break
            if stopped:
                raise KeyboardInterrupt
        self.processes.wait()
        return progress

    def _update(self, rate: float, number: int, ids: list[str]) -> float:
        """One step of the optimiser; returns the length of the gradient before it is clipped."""
        parameters = list(_parameters(self.encoder, self.objective))
        limit = self.settings.clip or math.inf
        norm = float(nn.utils.clip_grad_norm_(parameters, limit))
        if not math.isfinite(norm):
            raise TrainingDiverged(diverged("gradient", number, {"length": norm}, ids))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        return norm

    def _validates_after(self, step: int) -> bool:
        if self.validation is None:
            return False
        every = self.settings.validate_every * self.source.steps_in_epoch
        return step % every == 0 or step == self.steps

    def _validated(self, towers: Towers, progress: Progress) -> Validated:
        assert self.validation is not None
        self.processes.copy_from_first(self.encoder.buffers())
        validated = self.validation(towers, self.objective, progress.step)
        if self.journal is not None:
            self.journal.log(VALIDATIONS, validated.row())
        return validated

    def _judged(self, progress: Progress, validated: Validated) -> Progress:
        value = validated.mean_recall if self.settings.select == "recall" else -validated.loss
        score = torch.tensor(value, dtype=torch.float64, device=self.encoder.device)
        # Should processes differ in a last digit, they still decide alike.
        self.processes.copy_from_first([score])
        after = progress.validated(float(score), validated.row())
        if after.best_step == progress.step and self.journal is not None:
            self.journal.keep_best(after, self.encoder)
        return after

    def _log_step(self, step: int, rate: float, norm: float, parts: dict[str, float]) -> None:
        if self.journal is None:
            return
        row = {"step": step, "epoch": (step - 1) // self.source.steps_in_epoch + 1}
        losses = {f"loss_{name}": value for name, value in parts.items()}
        total = {"learning_rate": rate, "loss": sum(parts.values())}
        self.journal.log(LOG, {**row, **total, **losses, "gradient": norm})


def make_optimizer(
    encoder: nn.Module, objective: nn.Module, settings: TrainingSettings
) -> torch.optim.Optimizer:
    """AdamW; what is no matrix has no weight decay."""
    found = list(_parameters(encoder, objective))
    groups = [
        {"params": [p for p in found if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in found if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=settings.learning_rate)


def _parameters(encoder: nn.Module, objective: nn.Module) -> Iterator[nn.Parameter]:
    yield from encoder.parameters()
    yield from objective.parameters()
