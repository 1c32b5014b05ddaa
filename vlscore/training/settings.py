"""Settings of a training run, and the TOML file with them.

- `TrainingSettings` holds every number on which the weights depend, except data and towers.
- `read_config` and `write_config` read and write a TOML file of settings, which every run writes.
  The names are those of the options of `vlscore train`, with underscores for hyphens.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, registered_name, split_call
from vlscore.encoders import encoder_from_file, path_from_file
from vlscore.errors import InvalidSetting
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.registry import OBJECTIVES
from vlscore.training.start import Start
from vlscore.training.training_pairs import Preparation

PRECISIONS = ("fp32", "bf16")
SENTENCES = ("all", "shuffled", "one")
SELECTIONS = ("recall", "loss", "last")


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run, which are recorded with its result.

    Attributes:
        objective: name of an objective, with settings of its own in parentheses, as in
            "convirt(temperature=0.07)".
        epochs: passes over the training pairs.
        batch_size: pairs in one step, of all processes together; each is a negative of the others.
        learning_rate: largest learning rate, at the end of the warm-up.
        weight_decay: AdamW's, of weights that are matrices; biases, norms and temperatures have
            none.
        warm_up: share of all steps in which the rate grows from 0; after it, the rate falls to 0
            along a cosine.
        clip: longest gradient over all parameters, 0 for no limit.
        precision: of the towers: "fp32" or "bf16" (autocast). Objectives are computed in fp32.
        frozen_norms: whether the statistics of batch norms stay fixed. If not, a pair's vector
            depends on its micro-batch, as in the authors' code of the published layouts.
        augmentation: name of a recipe; see `vlscore.training.augmentation`.
        sentences: "all" of a report in their order, "shuffled" in any order, or "one" of them.
        findings_weight: weight of the findings that `vlscore.findings` extracts from the training
            reports, as a second aim for images and reports; 0 for none. See
            `vlscore.training.objectives.finding_labels`.
        average_weights: decay of an exponential moving average of the weights, updated after
            every step: 0.99 is an average of about the last hundred steps; 0 for none. With it,
            validation and the result use the averaged weights (Tarvainen and Valpola, NeurIPS
            2017).
        duplicates_apart: pairs of one study, or with equal reports, are not negatives.
        validation_share: share of the training studies held out if there is no validation table.
        validate_every: epochs between two validations.
        select: which weights are the result: those with the best "recall" or "loss" on the
            validation pairs, or the "last".
        patience: validations without improvement after which training ends; 0 for never.
        seed: seed of all random numbers.

    Raises: InvalidSetting that names the first invalid setting.
    """

    objective: str = "convirt"
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 0.05
    warm_up: float = 0.05
    clip: float = 1.0
    precision: str = "fp32"
    frozen_norms: bool = False
    augmentation: str = "none"
    sentences: str = "all"
    findings_weight: float = 0.0
    average_weights: float = 0.0
    duplicates_apart: bool = True
    validation_share: float = 0.05
    validate_every: int = 1
    select: str = "recall"
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        _at_least(self, 1, "epochs", "validate_every")
        _at_least(self, 2, "batch_size")
        _at_least(self, 0, "weight_decay", "clip", "patience", "seed", "validation_share")
        _at_least(self, 0, "findings_weight")
        _one_of(self, PRECISIONS, "precision")
        _one_of(self, SENTENCES, "sentences")
        _one_of(self, SELECTIONS, "select")
        if not 0 < self.learning_rate < math.inf:
            raise InvalidSetting(f"learning_rate is above 0, not {self.learning_rate}")
        if not 0 <= self.warm_up < 1:
            raise InvalidSetting(f"warm_up is a share of the steps below 1, not {self.warm_up}")
        if not 0 <= self.average_weights < 1:
            raise InvalidSetting(
                f"average_weights is a decay from 0 to below 1, not {self.average_weights}"
            )
        if not self.validation_share < 1:
            raise InvalidSetting(f"validation_share is below 1, not {self.validation_share}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json and TOML can write."""
        return asdict(self)

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of step `step` (from 0) of `steps`.

        >>> settings = TrainingSettings(learning_rate=1.0, warm_up=0.5)
        >>> [round(settings.rate_at(step, 4), 3) for step in range(4)]
        [0.5, 1.0, 1.0, 0.5]
        """
        rising = round(self.warm_up * steps)
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        done = (step - rising) / max(steps - rising, 1)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def _at_least(settings: TrainingSettings, least: int, *names: str) -> None:
    whole = {each.name for each in fields(settings) if each.type is int}
    for name in names:
        value = getattr(settings, name)
        if not (value >= least and math.isfinite(value)) or (name in whole and value != int(value)):
            kind = "a whole number" if name in whole else "a number"
            raise InvalidSetting(f"{name} is {kind} from {least} on, not {value!r}")


def _one_of(settings: TrainingSettings, known: tuple[str, ...], name: str) -> None:
    if getattr(settings, name) not in known:
        raise InvalidSetting(
            f"{name} is one of {', '.join(known)}, not {getattr(settings, name)!r}"
        )


# A file may be untrusted: it must not choose which files are written or replaced.
_OF_COMMAND_LINE = {"out", "overwrite", "pairs"}
_PATHS = {"weights", "tokenizer", "image_weights", "text_weights"}


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Read settings by name from a TOML file.

    Args: known: the valid names.
    Raises: InvalidSetting if the file cannot be read, or has an unknown name or an invalid value.
    """
    try:
        with path.open("rb") as stream:
            found = tomllib.load(stream)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSetting(f"{path} is no TOML file: {error}") from None
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}" if close else f"; it has {', '.join(known)}"
            raise InvalidSetting(f"{path}: training has no setting {name!r}{hint}")
        if name in _OF_COMMAND_LINE:
            option = f"--{name.replace('_', '-')}"
            raise InvalidSetting(
                f"{path}: a file of settings cannot say where files are written: remove "
                f"{name!r} from it, and write {option} on the command line"
            )
        if not isinstance(value, str | int | float | bool):
            raise InvalidSetting(f"{path}: {name} is a text, a number, true or false")
    return found


def check_names(path: Path, values: Mapping[str, Any]) -> None:
    """Check that values of a file name only registered members and local paths.

    Args: values: values of `read_config` that are used, without those of the command line.
    Raises: UnknownName, InvalidSetting.
    """
    if "encoder" in values:
        encoder_from_file(values["encoder"], path)
    for name, family in (("objective", OBJECTIVES), ("augmentation", AUGMENTATIONS)):
        if name in values:
            written, _ = split_call(str(values[name]))
            registered_name(family, written, path, f"--{name}")
    for name in _PATHS & values.keys():
        path_from_file(str(values[name]), path)


def write_config(path: Path, values: Mapping[str, Any], *, comment: str | None = None) -> None:
    """Write settings in the form that `read_config` reads; leave out those that are None.

    Args: comment: text for the head of the file.
    Raises: OutputFailed.
    """
    with atomic_write(path) as stream:
        stream.writelines(f"# {line}\n" for line in (comment or "").splitlines())
        stream.writelines(
            f"{name} = {_written(value)}\n" for name, value in values.items() if value is not None
        )


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
        **settings.to_dict(),
    }


def _written(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no setting")
    # Texts, numbers and truth values look alike in json and TOML.
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=True)
