"""Training of an encoder from a table of images and reports to a checkpoint."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vlscore.core import keep_freed_memory, output_folder, peak_memory, write_results
from vlscore.data import shared_ids_note
from vlscore.embedding import view_notes
from vlscore.encoders import (
    STYLES,
    JointEncoder,
    SmallSettings,
    find_encoder,
    tensors_digest,
)
from vlscore.errors import InvalidSetting
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.copies import ReportCopies, find_copies
from vlscore.training.loop import (
    Training,
    Validation,
    split,
    stop_requests,
)
from vlscore.training.minibatches import BatchSource, Rows
from vlscore.training.objective import Objective
from vlscore.training.objectives.finding_labels import (
    WithFindings,
    common_observations,
    finding_labels,
)
from vlscore.training.processes import TrainingProcesses, connected
from vlscore.training.registry import find_objective
from vlscore.training.result import TrainingRun, config_of, write_result
from vlscore.training.settings import OF_SMALL, Execution, Start, TrainingSettings
from vlscore.training.start import (
    image_tensors,
    loaded_encoder,
    loaded_modules,
    own_copy,
    small_encoder,
)
from vlscore.training.state import Progress, States
from vlscore.training.training_pairs import Pairs, Preparation, as_radiograph, prepare, wait_for

PAIRS_FOLDER = "pairs"


def train(
    preparation: Preparation,
    out: str | Path,
    settings: TrainingSettings | None = None,
    start: Start | None = None,
    *,
    validation: Preparation | None = None,
    execution: Execution | None = None,
    overwrite: bool = False,
) -> TrainingRun:
    """Train an encoder on the images and reports of a table.

    A call with the same arguments resumes a stopped run from its last stored state, and ends with
    the same weights as a run without a stop (on the same machine and with the same number of
    processes). After the end of a run such a call changes nothing.

    Several processes that `torchrun` started share each batch; all must have access to the folders.

    Args:
        preparation: the training table, and how images and reports are read.
        out: folder of the result; docs/training.md describes it.
        settings: default: those of TrainingSettings.
        start: encoder to train; default: a new small encoder.
        validation: a separate table for validation; default: a share of the training studies.
        execution: device, memory, progress; default: those of Execution.
        overwrite: train again; an earlier result remains until the new one is complete.

    Raises:
        InvalidSetting: settings that are not possible here; `out` holds another run.
        TrainingDiverged: the loss or gradient of a step is not finite.
        FolderInUse, OutputFailed, ChecksumMismatch: as of every result folder.
        A row that gives no pair raises nothing: it is in failures.csv.
    """
    execution, processes = execution or Execution(), TrainingProcesses.launched()
    run = _TrainingTask(
        preparation,
        Path(out),
        settings or TrainingSettings(),
        start or Start(),
        validation,
        execution,
        overwrite,
        processes,
        processes.own_device(execution.device),
    )
    run.check()
    if run.device.type == "cpu":
        keep_freed_memory()
    return run.result()


@contextmanager
def _fixed_order_of_sums(device: torch.device) -> Iterator[None]:
    """Add up the gradients of a word that occurs several times in a fixed order, on a CPU.

    Otherwise its threads add them in the order in which they finish: the rounding differs from run
    to run, and so do the weights.
    """
    if device.type != "cpu":
        yield
        return
    deterministic: Any = torch.utils.deterministic
    was_on = torch.are_deterministic_algorithms_enabled()
    warned_only = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was_on, warn_only=warned_only)
        deterministic.fill_uninitialized_memory = filled


@dataclass(eq=False)
class _TrainingTask:
    """Training run on one table."""

    preparation: Preparation
    out: Path
    settings: TrainingSettings
    start: Start
    validation: Preparation | None
    execution: Execution
    overwrite: bool
    processes: TrainingProcesses
    device: torch.device
    loaded: JointEncoder | None = None
    began: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise errors of the settings before hours are spent on decoding images."""
        settings, size = self.settings, self.settings.batch_size
        AUGMENTATIONS.find(settings.augmentation)
        objective = self._bare_objective
        encoder, _ = find_encoder(self.start.encoder)
        normalised = encoder.card.normalised
        if self.start.is_small:
            normalised = STYLES[self.start.style or SmallSettings.style].normalised
        if objective.copies and normalised:
            raise InvalidSetting(
                f"the objective {objective.name} trains the lengths of vectors, and this encoder's "
                "have length 1; use style=judging (--style judging) or another encoder"
            )
        has_lateral = self.start.is_small or encoder.has_lateral_tower
        if self.lateral and not has_lateral:
            raise InvalidSetting(
                f"{encoder.card.name} has no tower for lateral views; use views=first-frontal "
                "(--views)"
            )
        if size % self.processes.count:
            raise InvalidSetting(
                f"batch_size={size} cannot be shared equally by {self.processes.count} processes; "
                "give a multiple"
            )
        if (rows := self.preparation.table.count()) is not None:
            _require_a_batch(rows, size)

    @property
    def lateral(self) -> bool:
        """Return whether lateral images are used."""
        return self.preparation.views == "frontal+lateral"

    @cached_property
    def _bare_objective(self) -> Objective:
        """The objective with vectors of some length, on which its own settings do not depend."""
        return find_objective(self.settings.objective, dim=2, local_dim=2)

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        return {
            "command": "train",
            "data": self.preparation.key(),
            "validation": None if self.validation is None else self.validation.key(),
            "start": self._start,
            "settings": asdict(self.settings),
        }

    @cached_property
    def _start(self) -> dict[str, Any]:
        """Return what the start weights depend on, besides seed and training reports."""
        start, images = self.start, self.start.image_weights
        return {
            "encoder": start.name,
            "weights_digest": None if self.loaded is None else self.loaded.weights_digest,
            "image_weights": None if images is None else tensors_digest(image_tensors(str(images))),
            **{name: getattr(start, name) for name in OF_SMALL},
        }

    def result(self) -> TrainingRun:
        """Return the result in the folder, after training if it is not there yet."""
        self.loaded = loaded_encoder(self.start)
        key, preparation = self.key(), self.validation or self.preparation
        notes = () if self.loaded is None else view_notes(self.loaded, self.preparation.views)
        notes = (*notes, *self._shared_notes())
        other_folders = (PAIRS_FOLDER, f"{PAIRS_FOLDER}-validation")
        with ExitStack() as stack:
            stack.enter_context(connected(self.processes, self.device))
            finished = None
            if self.processes.leads:
                opened = output_folder(
                    self.out, key, overwrite=self.overwrite, other_folders=other_folders
                )
                finished = stack.enter_context(opened)
                if finished is not None:
                    States(self.out, key).remove_left_over()
            has_ended = torch.tensor(finished is not None).to(self.device, torch.uint8)
            self.processes.copy_from_first([has_ended])
            if not bool(has_ended):
                training, observations = self._training()
                # Only from here on: a stop during decoding needs no step to be finished first.
                with stop_requests() as training.is_stopped, _fixed_order_of_sums(self.device):
                    progress = training.run()
                if self.processes.leads:
                    facts = self._facts(training, progress, observations)
                    held_out = None if self.validation is None else self.validation.table.path
                    config = config_of(self.preparation, held_out, self.start, self.settings)
                    call = {
                        "device": str(self.device),
                        "processes": self.processes.count,
                        "seconds": round(time.monotonic() - self.began, 3),
                        "peak_memory_gb": peak_memory(),
                    }
                    finished = write_results(
                        self.out,
                        key,
                        lambda path: write_result(
                            path, training, preparation, config, facts, call, key
                        ),
                    )
                    training.states.remove()
            record = {} if finished is None else finished.record
            return TrainingRun(self.out, record, bool(has_ended), notes)

    def _shared_notes(self) -> list[str]:
        """Return a note on studies to validate on that are among the training studies."""
        if self.validation is None:
            return []
        tables = [each.table.with_roles(()) for each in (self.validation, self.preparation)]
        ids, theirs = ((row.id or "" for row in table) for table in tables)
        so = "the validation is of studies that the encoder was trained on"
        return shared_ids_note(tables[0], ids, tables[1], theirs, so)

    def _training(self) -> tuple[Training, list[str]]:
        """Return the training, and the observations that `findings_weight` adds to the loss."""
        size = self.settings.batch_size
        pairs, rows, held_pairs, held = self._data()
        _require_a_batch(len(rows), size)
        if self.settings.select == "loss" and 0 < len(held) < size:
            raise InvalidSetting(
                f'select="loss" needs a whole batch of {size} validation pairs; there are '
                f"{len(held)}. Hold out more, or select by recall"
            )
        reports = [pairs.texts[row] for row in rows]
        copies = self._copies(pairs)
        held_copies = copies if held_pairs is pairs else self._copies(held_pairs)
        encoder = self._encoder(reports, copies)
        observations = common_observations(reports) if self.settings.findings_weight else []
        objective = self._objective(encoder, pairs, len(observations))

        def source(pairs: Pairs, rows: Rows, copies: ReportCopies | None) -> BatchSource:
            return BatchSource(
                pairs,
                rows,
                encoder,
                self.settings,
                processes=self.processes,
                labels=finding_labels(pairs.texts, observations)
                if objective.needs_labels
                else None,
                copies=copies,
                lateral=self.lateral,
                threads=self.execution.workers,
            )

        validation = None
        if len(held):
            held_source = source(held_pairs, held, held_copies)
            micro_batch = self.execution.micro_batch
            validation = Validation(held_source, batch_size=size, micro_batch=micro_batch)
        training = Training(
            encoder,
            objective,
            source(pairs, rows, copies),
            self.settings,
            validation,
            States(
                self.out,
                self.key(),
                f"{pairs.sha256} {held_pairs.sha256}",
                anew=self.overwrite,
            ),
            self.processes,
            self.execution,
            loaded=loaded_modules(self.start),
        )
        return training, observations

    def _facts(
        self, training: Training, progress: Progress, observations: Sequence[str]
    ) -> dict[str, Any]:
        """Return what the encoder's card and run.json say of the training."""
        table, held = self.preparation.table, training.validation
        held_table = None if self.validation is None else self.validation.table
        return {
            "objective": self.settings.objective,
            "seed": self.settings.seed,
            "settings": asdict(self.settings),
            "table": str(table.path.resolve()),
            "table_sha256": table.sha256,
            "validation_table": None if held_table is None else str(held_table.path.resolve()),
            "steps": progress.step,
            "best_step": progress.best_step if progress.score is not None else None,
            "best_validation": progress.best,
            "start": self._start,
            "data_sha256": training.source.pairs.sha256,
            "pairs": len(training.source.rows),
            "validation_sha256": None if held is None else held.pairs.sha256,
            "validation_pairs": 0 if held is None else len(held.rows),
            "observations": list(observations),
        }

    def _data(self) -> tuple[Pairs, Rows, Pairs, Rows]:
        """Return the training pairs and their rows, and the validation pairs and their rows."""
        folder = Path(self.execution.pairs or self.out / PAIRS_FOLDER)
        pairs = self._pairs(self.preparation, folder)
        if self.validation is None:
            rows, held = split(pairs, self.settings.validation_share, self.settings.seed)
            return pairs, rows, pairs, held
        held_pairs = self._pairs(self.validation, folder.with_name(f"{folder.name}-validation"))
        return pairs, np.arange(len(pairs)), held_pairs, np.arange(len(held_pairs))

    def _pairs(self, preparation: Preparation, folder: Path) -> Pairs:
        if not self.processes.leads:
            return wait_for(folder)
        workers, on_progress = self.execution.workers, self.execution.on_progress
        return prepare(preparation, folder, workers=workers, on_progress=on_progress)

    def _copies(self, pairs: Pairs) -> ReportCopies | None:
        """Return the changed copies of all reports if the objective needs them, else None."""
        if not self._bare_objective.copies:
            return None
        return find_copies(pairs.texts, without=self._bare_objective.left_out)

    def _encoder(self, reports: Sequence[str], copies: ReportCopies | None) -> JointEncoder:
        """Return the encoder to train; a new one gets the words of the reports and their copies."""
        words = [] if copies is None else copies.words()
        start = self.loaded or small_encoder(
            self.start, [*reports, *words], self.settings.seed, lateral=self.lateral
        )
        encoder = own_copy(start).to(self.device)
        if not callable(getattr(encoder, "save", None)):
            raise InvalidSetting(
                f"{encoder.card.name} cannot be trained: it has no method save(folder, card), "
                "which writes what its load() reads"
            )
        return encoder

    def _objective(self, encoder: JointEncoder, pairs: Pairs, observations: int) -> Objective:
        with torch.no_grad():
            pixels = encoder.preprocess(as_radiograph(pairs.image(0), pairs.ids[0]))
            patches = encoder.image_features(pixels[None].to(self.device)).patches
        local_dim = None if patches is None else patches.shape[-1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed)
            found = find_objective(
                self.settings.objective, dim=encoder.card.dim, local_dim=local_dim
            )
            if observations:
                found = WithFindings(
                    found,
                    observations=observations,
                    dim=encoder.card.dim,
                    weight=self.settings.findings_weight,
                )
        return found.to(self.device)


def _require_a_batch(pairs: int, size: int) -> None:
    if pairs < size:
        raise InvalidSetting(
            f"there are {pairs} training pairs, fewer than batch_size={size}; give a smaller one "
            "(--batch-size)"
        )
