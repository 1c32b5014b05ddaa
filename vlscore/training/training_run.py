"""Result of a training run: its files, and whether it is continued for more epochs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import FinishedRun, finished_run, read_frame, unfinished_key, warn_caller
from vlscore.encoders import JointEncoder
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.evaluation import Calibration
from vlscore.stats import FIGURE_FORMATS, Failure, Run
from vlscore.training.loop import WAYS
from vlscore.training.settings import TrainingSettings
from vlscore.training.start import Start
from vlscore.training.state import FOLDER, LOG, LOGS, PARTS_OF_RUN, STATE
from vlscore.training.training_pairs import FAILURES, Preparation

if TYPE_CHECKING:
    import pandas

CONFIG = "training.toml"
_MODEL_FILES = (
    "model.safetensors",
    "image.safetensors",
    "report.safetensors",
    "vocabulary.json",
    "vocab.txt",
    "card.json",
)
# Every file that training can write, except the folder of the pairs.
RESULTS = (
    *_MODEL_FILES,
    *(f"{name}.csv" for name in LOGS),
    *(f"curves.{suffix}" for suffix in FIGURE_FORMATS),
    *(CONFIG, FAILURES),
)

_SETTINGS, _EPOCHS = "settings", "epochs"

SHOWN = tuple(f"{way} R@1" for way in WAYS)


class TrainingRun(Run):
    """Result of a finished training run: a folder that `load_encoder` reads, with the logs.

    `resumed_from` counts steps. `first_failures` are the rows that gave no pair.
    """

    @property
    def record(self) -> Mapping[str, Any]:
        """Former name of `facts`."""
        warn_caller("TrainingRun.record is now called facts", DeprecationWarning)
        return self.facts

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a logged step: loss, parts of the loss, rates. Needs pandas."""
        return read_frame(self.folder / f"{LOG}.csv")

    @property
    def failed(self) -> tuple[Failure, ...]:
        """Rows that gave no pair, all of them."""
        return tuple(self.first_failures())

    @property
    def encoder(self) -> str:
        """Return the name of the encoder for `load_encoder`."""
        return str(self.facts["start"]["encoder"])

    def summary(self) -> str:
        """Return one line about the trained encoder, and one with its validation results."""
        facts = self.facts
        first = f"{facts['pairs']} pairs, {facts['steps']} steps of {facts['objective']}"
        best = facts["best_validation"]
        if best is None:
            return f"{first}; not validated"
        shown = ", ".join(f"{name} {best[name]:.3f}" for name in ("mean recall", *SHOWN))
        return f"{first}\nbest of {facts['validation_pairs']} validation pairs: {shown}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, one sentence each; the last one if the run was continued."""
        continued = note_on_parts(self.facts.get(PARTS_OF_RUN, []))
        return super().notes if continued is None else (*super().notes, continued)


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


def check_can_be_saved(encoder: JointEncoder) -> None:
    """Raise InvalidSetting for an encoder that cannot be saved."""
    if not callable(getattr(encoder, "save", None)):
        raise InvalidSetting(
            f"{encoder.card.name} cannot be trained: it has no method save(folder, card), which "
            "writes what its load() reads"
        )


def card_of_run(
    encoder: JointEncoder, facts: Mapping[str, Any], calibration: Calibration | None
) -> dict[str, Any]:
    """Return the entries of a trained encoder's card that its layout does not determine."""
    measured: dict[str, Any] = {"C_source": "not measured: vlscore calibrate"}
    if calibration is not None:
        measured = {
            "C": calibration.C,
            "C_source": f"{calibration.source}, of images as kept for training",
            "calibration": calibration.to_dict(),
        }
    title = encoder.card.title.removesuffix(", own training")
    return {
        "title": f"{title}, trained by {facts['objective']} on {Path(facts['table']).name}",
        **measured,
        "training": dict(facts),
    }


def config_of(
    preparation: Preparation,
    validation: Preparation | None,
    start: Start,
    settings: TrainingSettings,
) -> dict[str, Any]:
    """Return every setting of a run by the name of its option."""
    columns = preparation.table.columns.to_dict()
    paths = {
        "studies": preparation.table.path,
        "image_root": preparation.table.root,
        "validation": None if validation is None else validation.table.path,
        "weights": start.weights,
        "tokenizer": start.tokenizer,
        "image_weights": start.image_weights,
        "text_weights": start.text_weights,
    }
    return {
        **{name: None if path is None else Path(path).resolve() for name, path in paths.items()},
        **{f"{role}_column": columns[role] for role in ("id", "image", "reference", "view")},
        "group_column": preparation.group_column,
        "image_policy": preparation.image_policy.signature(),
        "section": preparation.text_policy.section_of("reference"),
        "views": preparation.views,
        "encoder": start.name,
        "style": start.style,
        "side": start.side,
        "reading": start.reading,
        **settings.to_dict(),
    }
