"""Loop of a training run: steps of the optimiser, validation, stored states, and the end.

- `Training` runs the steps, and decides when training ends and which weights are the result.
- `Validation` measures loss and retrieval on held-out pairs.
- `measure_constant` measures C of VLScore on held-out pairs after training.
- `stop_requests` ends a run between two steps on Ctrl-C, or if a cluster stops the process.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from vlscore.core import Signature, plain
from vlscore.encoders import JointEncoder
from vlscore.errors import InvalidTable, TrainingDiverged
from vlscore.evaluation import Calibration, calibrate_vectors
from vlscore.retrieval import CUTS, evaluate_retrieval
from vlscore.training.minibatches import BatchSource, PairBatch, Rows
from vlscore.training.objective import Objective
from vlscore.training.processes import TrainingProcesses
from vlscore.training.settings import Execution, TrainingSettings
from vlscore.training.state import (
    LOG,
    LOGS,
    VALIDATIONS,
    Progress,
    State,
    States,
    restore,
    tensors_of,
)
from vlscore.training.step import (
    Features,
    Step,
    Towers,
    diverged,
    joined,
    loss_of,
    make_optimizer,
    parameters_of,
)
from vlscore.training.training_pairs import Pairs, Preparation


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Provide a function that returns whether Ctrl-C or the cluster has requested a stop.

    The current step is finished, and the state stored, before. A second Ctrl-C stops at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        before[each] = signal.signal(each, ask)
    try:
        yield asked.is_set
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


WAYS = ("image to text", "text to image")


def split(pairs: Pairs, share: float, seed: int) -> tuple[Rows, Rows]:
    """Split rows into those for training and for validation; no group (study, patient) is split.

    Returns: rows for training, from the number of groups closest to `1 - share`, and rows for
        validation; both in the table's order.
    """
    groups = sorted(set(pairs.groups))
    order = np.random.default_rng([seed, len(groups)]).permutation(len(groups))
    held = {groups[k] for k in order[: round(share * len(groups))]}
    is_held = np.array([group in held for group in pairs.groups])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


@dataclass(frozen=True)
class Validated:
    """Result of one validation.

    Attributes:
        step: number of steps before it.
        loss: mean over whole batches; nan if there are fewer pairs than one batch.
        recall: "image to text R@1" and so on -> share.
        median_rank: of images among reports, and of reports among images.
    """

    step: int
    loss: float
    recall: dict[str, float]
    median_rank: tuple[float, float]

    @property
    def mean_recall(self) -> float:
        """Return the mean of R@1, R@5 and R@10 in both directions."""
        return sum(self.recall.values()) / len(self.recall)

    def row(self) -> dict[str, float]:
        """Return the result as one row of a table."""
        ranks = dict(zip((f"{way} median rank" for way in WAYS), self.median_rank, strict=True))
        recall = {"mean recall": self.mean_recall, **self.recall}
        return {"step": self.step, "loss": self.loss, **recall, **ranks}


class Validation:
    """Validation on the held-out pairs.

    Args:
        source: source of the held-out pairs.
        batch_size: pairs of one loss, as many as in training.
        micro_batch: pairs that go through the towers at once.
    """

    def __init__(self, source: BatchSource, *, batch_size: int, micro_batch: int) -> None:
        self._source, self.pairs, self.rows = source, source.pairs, source.rows
        self._batch_size = batch_size
        self._micro_batch = micro_batch or batch_size

    def __call__(self, towers: Towers, objective: Objective, step: int) -> Validated:
        """Evaluate the model in evaluation mode, then set training mode again."""
        encoder = towers.encoder
        encoder.eval()
        objective.eval()
        try:
            with torch.no_grad():
                return self._validated(towers, objective, step)
        finally:
            towers.train()
            objective.train()

    def features(self, towers: Towers, rows: Rows) -> Iterator[tuple[PairBatch, Features]]:
        """Yield batches of some pairs and their features, a few pairs in the towers at once."""
        for start in range(0, len(rows), self._batch_size):
            batch = self._source.plain(rows[start : start + self._batch_size])
            count = len(batch.rows)
            parts = range(0, count, self._micro_batch)
            yield (
                batch,
                joined([towers(batch, slice(k, min(k + self._micro_batch, count))) for k in parts]),
            )

    def _validated(self, towers: Towers, objective: Objective, step: int) -> Validated:
        vectors: dict[str, list[torch.Tensor]] = {"images": [], "reports": []}
        losses = []
        for batch, features in self.features(towers, self.rows):
            for name, found in vectors.items():
                found.append(features[name].cpu())
            if len(batch.rows) == self._batch_size:
                parts = loss_of(objective, features, batch)
                losses.append(sum(float(part) for part in parts.values()))
        images, reports = (torch.cat(found).double().numpy() for found in vectors.values())
        ways = evaluate_retrieval(images, reports, [self.pairs.texts[row] for row in self.rows])
        recall = {
            f"{way} R@{k}": found.recall[k].estimate
            for way, found in zip(WAYS, ways, strict=True)
            for k in CUTS
        }
        ranks = (ways[0].median_rank.estimate, ways[1].median_rank.estimate)
        return Validated(step, float(np.mean(losses)) if losses else float("nan"), recall, ranks)


# Number of other studies' references that serve as candidates of each study, and of studies.
_OTHERS = 4
_MOST_STUDIES = 2000


def measure_constant(
    validation: Validation, towers: Towers, preparation: Preparation, seed: int
) -> Calibration | None:
    """Measure C: the largest area of triangles of validation images, their reports, and others.

    Images are those stored for training, downscaled and in 8 bits. `vlscore calibrate` measures C
    on original files, and on generated reports.

    Args:
        preparation: preparation of the table with the validation pairs.
        seed: seed of the sample: up to 2000 studies, and four other reports for each.

    Returns: None if the reports are all equal, or every area is 0.
    """
    rows = validation.rows
    if len(rows) > _MOST_STUDIES:
        chosen = np.random.default_rng(seed).choice(len(rows), _MOST_STUDIES, replace=False)
        rows = rows[np.sort(chosen)]
    with torch.no_grad():
        parts = [found for _, found in validation.features(towers, rows)]
    images, reports = (
        torch.cat([each[name] for each in parts]).float().cpu() for name in ("images", "reports")
    )
    card, table = towers.encoder.card, preparation.table
    signature = Signature("areas").plus(enc=card.name, views=preparation.views, prec="fp32")
    try:
        return calibrate_vectors(
            images,
            reports,
            [validation.pairs.texts[row] for row in rows],
            others=_OTHERS,
            table=table,
            signature=signature,
            seed=seed,
        )
    except InvalidTable:
        return None


@dataclass(frozen=True)
class StepProgress:
    """Numbers for a progress display after a step.

    Attributes:
        step, steps: number of finished steps, and of all steps.
        loss: loss of the step; nan before the first.
        validated: the last validation.
    """

    step: int
    steps: int
    loss: float
    validated: Validated | None = None


@dataclass(eq=False)
class Training:
    """Training run: the encoder and objective, the batches, and the stored states.

    After `run`, `rows` has the rows of each log.

    Attributes:
        encoder, objective: on their device.
        source: source of batches.
        validation: None if no pairs are held out.
        states: states, which the first process stores and all processes read.
        execution: memory, time between two stored states, function called after every step.
        loaded: the encoder's modules that start from loaded weights.
        is_stopped: called after every step; if it returns True, the state is stored and training
            stops.
    """

    encoder: JointEncoder
    objective: Objective
    source: BatchSource
    settings: TrainingSettings
    validation: Validation | None
    states: States
    processes: TrainingProcesses
    execution: Execution
    loaded: Sequence[str] = ()
    is_stopped: Callable[[], bool] = lambda: False

    def run(self) -> Progress:
        """Train to the end, from the stored state if there is one; the encoder is then the result.

        Raises: TrainingDiverged if a loss or a gradient is not finite; KeyboardInterrupt if the
            run was stopped.
        """
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in LOGS}
        self._best: dict[str, torch.Tensor] = {}
        self._optimizer = make_optimizer(self.encoder, self.objective, self.settings, self.loaded)
        self.encoder.requires_grad_(True)
        self.objective.train()
        devices = [self.encoder.device] if self.encoder.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            progress = self._steps(self._resumed())
        if self.settings.select != "last" and progress.score is not None:
            self.encoder.load_state_dict(self._best)
        self.encoder.eval().requires_grad_(False)
        return progress

    def _trained(self) -> dict[str, Any]:
        """Return everything that training changes."""
        return {
            "encoder": self.encoder,
            "objective": self.objective,
            "optimizer": self._optimizer,
        }

    def _resumed(self) -> Progress:
        state = self.states.checked() if self.processes.leads else None
        step = torch.tensor(state.progress.step if state else 0, device=self.encoder.device)
        self.processes.copy_from_first([step])
        if not int(step):
            self.processes.copy_from_first(self.encoder.state_dict().values())
            self.processes.copy_from_first(self.objective.state_dict().values())
            return Progress()
        state = state or self.states.read()
        # The first process removes the file at the end.
        self.processes.wait()
        restore(self._trained(), state.tensors)
        self.rows, self._best = state.rows, state.best
        return state.progress

    def _steps(self, progress: Progress) -> Progress:
        if progress.ended:
            return progress
        settings, steps = self.settings, self.settings.epochs * self.source.steps_in_epoch
        towers = Towers(
            self.encoder,
            local=self.objective.local,
            precision=settings.precision,
            frozen_norms=settings.frozen_norms,
        )
        towers.train()
        step = Step(
            towers,
            self.objective,
            self.processes,
            micro_batch=self.execution.micro_batch,
            seed=settings.seed,
        )
        stored_at = time.monotonic()
        validated = None
        for batch in self.source.training(progress.step, steps):
            number = progress.step
            rate = settings.rate_at(number, steps)
            self._optimizer.zero_grad(set_to_none=True)
            ids = [self.source.pairs.ids[row] for row in batch.rows]
            parts = step(batch, number, ids)
            norm = self._update(rate, number, ids)
            progress = replace(progress, step=number + 1)
            self._log_step(progress.step, rate, norm, parts)
            every = settings.validate_every * self.source.steps_in_epoch
            is_due = progress.step % every == 0 or progress.step == steps
            if self.validation is not None and is_due:
                self.processes.copy_from_first(self.encoder.buffers())
                validated = self.validation(towers, self.objective, progress.step)
                progress = self._judged(progress, validated)
            ended = progress.step == steps or 0 < settings.patience <= progress.waited
            progress = replace(progress, ended=ended)
            self.execution.on_step(
                StepProgress(progress.step, steps, sum(parts.values()), validated)
            )
            stopped = self.is_stopped()
            if ended or stopped or time.monotonic() - stored_at > self.execution.keep_seconds:
                if self.processes.leads:
                    tensors = tensors_of(self._trained())
                    self.states.store(State(progress, self.rows, self._best, tensors))
                stored_at = time.monotonic()
            if ended:
                break
            if stopped:
                raise KeyboardInterrupt
        self.processes.wait()
        return progress

    def _update(self, rate: float, number: int, ids: list[str]) -> float:
        """Run one step of the optimiser; return the gradient's norm before clipping."""
        parameters = list(parameters_of(self.encoder, self.objective))
        limit = self.settings.clip or math.inf
        norm = float(nn.utils.clip_grad_norm_(parameters, limit))
        if not math.isfinite(norm):
            raise TrainingDiverged(diverged("gradient", number, {"length": norm}, ids))
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group["share"]
        self._optimizer.step()
        return norm

    def _judged(self, progress: Progress, validated: Validated) -> Progress:
        """Return the progress after a validation; remember the weights if they are the best."""
        self.rows[VALIDATIONS].append(plain(validated.row()))
        value = validated.mean_recall if self.settings.select == "recall" else -validated.loss
        score = torch.tensor(value, dtype=torch.float64, device=self.encoder.device)
        # The first process decides, because values may differ in the last digit between processes.
        self.processes.copy_from_first([score])
        after = progress.validated(float(score), validated.row())
        if after.best_step == progress.step:
            state = self.encoder.state_dict().items()
            self._best = {name: value.detach().cpu().clone() for name, value in state}
        return after

    def _log_step(self, step: int, rate: float, norm: float, parts: dict[str, float]) -> None:
        row = {"step": step, "epoch": (step - 1) // self.source.steps_in_epoch + 1}
        losses = {f"loss_{name}": value for name, value in parts.items()}
        total = {"learning_rate": rate, "loss": sum(parts.values())}
        self.rows[LOG].append(plain({**row, **total, **losses, "gradient": norm}))
