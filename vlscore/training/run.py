"""Training of an encoder from a table of images and reports to a checkpoint."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    TrainingProcesses,
    connected,
    no_progress,
    run_record,
)
from vlscore.embedding import view_notes
from vlscore.encoders import STYLES, JointEncoder, SmallSettings, check_device, find_encoder
from vlscore.errors import InvalidSetting
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.copies import ReportCopies, find_copies
from vlscore.training.loop import (
    OnStep,
    Training,
    Validation,
    measure_constant,
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
from vlscore.training.registry import find_objective
from vlscore.training.settings import TrainingSettings, write_config
from vlscore.training.start import Start, own_copy
from vlscore.training.state import PARTS_OF_RUN, STATE, Journal, Progress, remove_other_states
from vlscore.training.step import Towers
from vlscore.training.training_pairs import (
    Pairs,
    Preparation,
    as_radiograph,
    prepare,
    wait_for,
    write_failures,
)
from vlscore.training.training_run import (
    CONFIG,
    RESULTS,
    TrainingRun,
    card_of_run,
    check_can_be_saved,
    config_of,
    epochs_in_parts,
    is_longer,
    is_unfinished,
    note_on_parts,
)

PAIRS_FOLDER = "pairs"


def train(
    preparation: Preparation,
    out: str | Path,
    settings: TrainingSettings | None = None,
    start: Start | None = None,
    *,
    validation: Preparation | None = None,
    pairs: str | Path | None = None,
    workers: int = 0,
    micro_batch: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    keep_going: bool = False,
    keep_seconds: float = 600.0,
    on_progress: OnProgress = no_progress,
    on_step: OnStep = lambda shown: None,
) -> TrainingRun:
    """Train an encoder on the images and reports of a table.

    A call with the same arguments resumes a stopped run from its last stored state, and ends with
    the same weights as a run without a stop (on the same machine and with the same number of
    processes). After the end of a run such a call changes nothing.

    A call with more epochs continues the finished run from its last state: weights, optimiser and
    order of the pairs. The learning rate rises and falls again, over the new epochs. The result
    records this, because it is not that of so many epochs from the beginning.

    Several processes that `torchrun` started share each batch; all must have access to the folders.

    Args:
        preparation: the training table, and how images and reports are read.
        out: folder of the result; docs/training.md describes it.
        settings: default: those of TrainingSettings.
        start: encoder to train; default: a new small encoder.
        validation: a separate table for validation; default: a share of the training studies.
        pairs: folder for the decoded images, which runs may share; default: "pairs" in `out`.
        workers: processes that decode images, then threads that preprocess them.
        micro_batch: most pairs that go through the towers at once; 0 for no limit. It bounds
            memory, and changes the result by rounding alone.
        device: default: a GPU if there is one.
        overwrite: start again; an earlier result remains until the new one is complete.
        keep_going: continue even if the first hundred rows all fail for the same reason.
        keep_seconds: time between two stored states.
        on_progress: called with (rows done, rows failed) while images are decoded.
        on_step: called after every step of training.

    Raises:
        InvalidSetting: settings that are not possible here; `out` holds another run's results.
        TrainingDiverged: the loss or gradient of a step is not finite.
        FolderInUse, OutputFailed, ChecksumMismatch: as of every resumable run.
        A row that gives no pair raises nothing: it is listed in failures.csv.
    """
    processes = TrainingProcesses.launched()
    job = _TrainingJob(
        preparation,
        Path(out),
        settings or TrainingSettings(),
        start or Start(),
        validation,
        Path(pairs) if pairs is not None else Path(out) / PAIRS_FOLDER,
        workers=workers,
        keep_going=keep_going,
        overwrite=overwrite,
        processes=processes,
        device=_device(device, processes),
        on_progress=on_progress,
    )
    job.check()
    return job.run(micro_batch=micro_batch, keep_seconds=keep_seconds, on_step=on_step)


@dataclass(eq=False)
class _TrainingJob:
    """Training run on one table."""

    preparation: Preparation
    out: Path
    settings: TrainingSettings
    start: Start
    validation: Preparation | None
    folder_of_pairs: Path
    workers: int
    keep_going: bool
    overwrite: bool
    processes: TrainingProcesses
    device: torch.device
    on_progress: OnProgress
    opened: JointEncoder | None = None
    began: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise errors of the settings before hours are spent on decoding images."""
        settings, size = self.settings, self.settings.batch_size
        AUGMENTATIONS.find(settings.augmentation)
        objective = self._bare_objective
        encoder, _ = find_encoder(self.start.encoder)
        if objective.copies and self._has_unit_length(encoder):
            raise InvalidSetting(
                f"the objective {objective.name} trains the lengths of vectors, and this encoder's "
                "have length 1; use style=judging (--style judging) or another encoder"
            )
        has_lateral = self.start.is_small or encoder.has_lateral_tower
        if self.preparation.views == "frontal+lateral" and not has_lateral:
            raise InvalidSetting(
                f"{encoder.card.name} has no tower for lateral views; use views=first-frontal "
                "(--views)"
            )
        if size % self.processes.count:
            raise InvalidSetting(
                f"batch_size={size} cannot be shared equally by {self.processes.count} processes; "
                "give a multiple"
            )
        if (rows := self.preparation.table.count()) is not None and rows < size:
            raise InvalidSetting(too_few(rows, size))

    @cached_property
    def _bare_objective(self) -> Objective:
        """The objective with vectors of some length, on which its own settings do not depend."""
        return find_objective(self.settings.objective, dim=2, local_dim=2)

    def _has_unit_length(self, encoder: type[JointEncoder] | JointEncoder) -> bool:
        if self.start.is_small:
            return STYLES[self.start.style or SmallSettings.style].normalised
        return encoder.card.normalised

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        return {
            "data": self.preparation.key(),
            "validation": None if self.validation is None else self.validation.key(),
            "start": self._start,
            "settings": self.settings.to_dict(),
        }

    @cached_property
    def _start(self) -> dict[str, Any]:
        """Return what the start weights depend on, besides seed and training reports."""
        digest = None if self.opened is None else self.opened.weights_digest
        style = self.start.style if self.opened is None else None
        facts = {"encoder": self.start.name, "weights_digest": digest, "style": style}
        # Only where they are set, so that runs that were begun before these settings resume.
        for name in ("side", "reading"):
            if (value := getattr(self.start, name)) is not None:
                facts[name] = value
        if self.start.is_small and self.start.image_weights is not None:
            facts["image_weights"] = self.start.image_digest
        return facts

    def run(self, **options: Any) -> TrainingRun:
        """Return the result in the folder, after training if it is not there yet.

        Args: options: keyword arguments of `_trained`.
        """
        self.opened = self.start.opened(self.settings.seed)
        processes = self.processes
        extends: tuple[str, ...] = ()
        may_extend = processes.leads and not self.overwrite
        if may_extend and is_longer(self.out, self.key(), self.start.name):
            extends = ("settings",)
        with ExitStack() as stack:
            stack.enter_context(connected(processes, self.device))
            folder = None
            if processes.leads:
                opened = ResumableFolder(
                    self.out, self.key(), results=RESULTS, overwrite=self.overwrite, extends=extends
                )
                folder = stack.enter_context(opened)
            has_ended = torch.tensor(folder is not None and folder.record is not None)
            has_ended = has_ended.to(self.device, torch.uint8)
            processes.copy_from_first([has_ended])
            return self._ended(folder) if bool(has_ended) else self._trained(folder, **options)

    def _trained(
        self, folder: ResumableFolder | None, *, micro_batch: int, **options: Any
    ) -> TrainingRun:
        """Train and write the result."""
        pairs, rows, held_pairs, held = self._data()
        reports = [pairs.texts[row] for row in rows]
        copies = self._copies(pairs)
        held_copies = copies if held_pairs is pairs else self._copies(held_pairs)
        encoder = self._encoder(reports, copies)
        observations = self._observations(reports)
        objective = self._objective(encoder, pairs, len(observations))

        labels = held_labels = None
        if objective.needs_labels:
            labels = held_labels = finding_labels(pairs.texts, observations)
            if held_pairs is not pairs:
                held_labels = finding_labels(held_pairs.texts, observations)
        shared: dict[str, Any] = {
            "encoder": encoder,
            "settings": self.settings,
            "processes": self.processes,
            "lateral": self.preparation.views == "frontal+lateral",
            "threads": self.workers,
        }
        source = BatchSource(pairs, rows, labels=labels, copies=copies, **shared)
        held_source = BatchSource(
            held_pairs, held, labels=held_labels, copies=held_copies, **shared
        )
        if len(rows) < self.settings.batch_size:
            raise InvalidSetting(too_few(len(rows), self.settings.batch_size))
        journal = None
        if folder is not None:
            data = f"{pairs.sha256} {held_pairs.sha256}"
            journal = Journal(folder, data, anew=self.overwrite)
        training = Training(
            encoder,
            objective,
            source,
            self.settings,
            self._validation(held_source, micro_batch),
            self.out,
            journal,
            self.processes,
            micro_batch=micro_batch,
            loaded=self.start.loaded,
            **options,
        )
        # Only from here on, because a stop during decoding needs no step to be finished first.
        with stop_requests() as training.is_stopped:
            progress = training.run()
        if folder is None:
            self.processes.wait()
            return TrainingRun(self.out, {}, {})
        record = self._write(folder, training, progress, observations)
        self.processes.wait()
        done = int(record["resumed_from"])
        return TrainingRun.of(folder, self._notes(), record=record, resumed_from=done)

    def _write(
        self,
        folder: ResumableFolder,
        training: Training,
        progress: Progress,
        observations: Sequence[str],
    ) -> dict[str, Any]:
        """Write the result, and return the content of run.json."""
        encoder, held, journal = training.encoder, training.validation, training.journal
        assert journal is not None
        settings, pairs = self.settings, training.source.pairs
        table = self.preparation.table
        held_table = None if self.validation is None else self.validation.table
        calibration = None
        if held is not None:
            towers = Towers(encoder, local=False, precision="fp32")
            preparation = self.validation or self.preparation
            calibration = measure_constant(held, towers, preparation, settings.seed)
        parts = epochs_in_parts(folder.previous, settings.epochs)
        state = journal.note()
        facts = {
            "objective": settings.objective,
            "seed": settings.seed,
            "settings": settings.to_dict(),
            "table": str(table.path.resolve()),
            "table_sha256": table.sha256,
            "validation_table": None if held_table is None else str(held_table.path.resolve()),
            "steps": progress.step,
            PARTS_OF_RUN: parts,
            "best_step": progress.best_step if progress.score is not None else None,
            "best_validation": progress.best,
            "start": self._start,
            "data_sha256": pairs.sha256,
            "pairs": len(training.source.rows),
            **({"observations": observations} if observations else {}),
            "failed": len(pairs.failed),
            "validation_sha256": None if held is None else held.pairs.sha256,
            "validation_pairs": 0 if held is None else len(held.rows),
        }

        def write(place: Path) -> dict[str, Any]:
            config = config_of(self.preparation, self.validation, self.start, settings)
            write_config(place / CONFIG, config, comment=note_on_parts(parts))
            encoder.save(place, card_of_run(encoder, facts, calibration))  # type: ignore[operator]
            journal.write_logs(place)
            write_failures(place, pairs.failed)
            return run_record(
                **facts,
                device=str(self.device),
                processes=self.processes.count,
                seconds=round(time.monotonic() - self.began, 3),
                resumed_from=journal.base + folder.resumed_from,
                **{STATE: state},
            )

        record = folder.finish(write, rows=progress.step - journal.base)
        remove_other_states(self.out, state["files"])
        return record

    def _notes(self) -> tuple[str, ...]:
        return () if self.opened is None else view_notes(self.opened, self.preparation.views)

    def _encoder(self, reports: Sequence[str], copies: ReportCopies | None) -> JointEncoder:
        """Return the encoder to train; a new one gets the words of the reports and their copies."""
        words = [] if copies is None else copies.words()
        start = self.opened or self.start.small(
            [*reports, *words],
            self.settings.seed,
            lateral=self.preparation.views == "frontal+lateral",
        )
        encoder = own_copy(start).to(self.device)
        check_can_be_saved(encoder)
        return encoder

    def _ended(self, folder: ResumableFolder | None) -> TrainingRun:
        """Return the result in the folder of a run that had ended."""
        if folder is None or folder.record is None:
            return TrainingRun(self.out, {}, {}, unchanged=True)
        # A stopped run with more epochs needs its states.
        if not is_unfinished(self.out):
            remove_other_states(self.out, folder.record.get(STATE, {}).get("files", ()))
        return TrainingRun.of(folder, self._notes(), unchanged=True, resumed_from=0)

    def _data(self) -> tuple[Pairs, Rows, Pairs, Rows]:
        """Return the training pairs and their rows, and the validation pairs and their rows."""
        pairs = self._pairs(self.preparation, self.folder_of_pairs)
        if self.validation is None:
            rows, held = split(pairs, self.settings.validation_share, self.settings.seed)
            return pairs, rows, pairs, held
        beside = self.folder_of_pairs.with_name(f"{self.folder_of_pairs.name}-validation")
        held_pairs = self._pairs(self.validation, beside)
        return pairs, np.arange(len(pairs)), held_pairs, np.arange(len(held_pairs))

    def _pairs(self, preparation: Preparation, folder: Path) -> Pairs:
        if not self.processes.leads:
            return wait_for(preparation, folder)
        return prepare(
            preparation,
            folder,
            workers=self.workers,
            keep_going=self.keep_going,
            on_progress=self.on_progress,
        )

    def _copies(self, pairs: Pairs) -> ReportCopies | None:
        """Return the changed copies of all reports if the objective needs them, else None.

        The first process finds them, and stores them in the folder of the pairs.
        """
        if not self._bare_objective.copies:
            return None
        cache = pairs.folder.with_name(f"{pairs.folder.name}-copies.jsonl")
        if not self.processes.leads:
            self.processes.wait()
        found = find_copies(pairs.texts, without=self._bare_objective.left_out, cache=cache)
        if self.processes.leads:
            self.processes.wait()
        return found

    def _observations(self, reports: Sequence[str]) -> list[str]:
        """Return the observations that `findings_weight` adds to the loss; none without it."""
        if not self.settings.findings_weight:
            return []
        found = common_observations(reports)
        if not found:
            raise InvalidSetting(
                f"findings_weight={self.settings.findings_weight} (--findings-weight) needs "
                "training reports that state findings: no observation is stated by 15 of them"
            )
        return found

    def _objective(self, encoder: JointEncoder, pairs: Pairs, observations: int) -> Objective:
        with torch.no_grad():
            pixels = encoder.preprocess(as_radiograph(pairs.frontal(0), pairs.ids[0]))
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

    def _validation(self, source: BatchSource, micro_batch: int) -> Validation | None:
        if not len(source.rows):
            return None
        size = self.settings.batch_size
        if self.settings.select == "loss" and len(source.rows) < size:
            raise InvalidSetting(
                f'select="loss" needs a whole batch of {size} validation pairs; there are '
                f"{len(source.rows)}. Hold out more, or select by recall"
            )
        return Validation(source, batch_size=size, micro_batch=micro_batch)


def too_few(pairs: int, size: int) -> str:
    """Return the message for a table with fewer pairs than a batch."""
    return (
        f"there are {pairs} training pairs, fewer than batch_size={size}; give a smaller one "
        "(--batch-size)"
    )


def _device(device: str | None, processes: TrainingProcesses) -> torch.device:
    found = processes.own_device(device)
    return check_device(found or ("cuda" if torch.cuda.is_available() else "cpu"))
