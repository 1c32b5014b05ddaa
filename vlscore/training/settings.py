"""Settings of a training run, and the TOML file with them.

- `Start` holds the encoder that is trained, and its start weights. `TrainingSettings` holds every
  other number on which the weights depend, except data. Their fields are also the options of
  `vlscore train`, with hyphens for underscores.
- `read_config` and `write_config` read and write a TOML file of settings, which every run writes.

This file loads no heavy library, because `vlscore train --help` reads it.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import check_settings, described, registered_name, setting, split_call
from vlscore.encoders import encoder_card, encoder_from_file, path_from_file
from vlscore.errors import InvalidSetting

PRECISIONS = ("fp32", "bf16")
SENTENCES = ("all", "shuffled", "one")
SELECTIONS = ("recall", "loss", "last")
START, LEARNING, HELD_OUT = "What is trained", "Learning", "Validation"


@described
@dataclass(frozen=True, eq=False)
class Start:
    """Encoder to train, and its start weights.

    Raises: InvalidSetting if settings contradict each other.
    """

    encoder: Any = setting(  # noqa: RUF009 - it makes a field
        "small",
        "Encoder: small, for a new one; or any encoder with a checkpoint in --weights.",
        "NAME",
        more="Or a loaded encoder, which training changes.",
        panel=START,
        option="--encoder -e",
        typed=str,
    )
    weights: str | Path | None = setting(  # noqa: RUF009
        None,
        "Checkpoint of a whole encoder to start from.",
        "PATH",
        more="As in `load_encoder`.",
        panel=START,
        typed=Path | None,
    )
    tokenizer: str | Path | None = setting(  # noqa: RUF009
        None,
        "Vocabulary file, or folder, of the report tower. Default: next to the weights.",
        "PATH",
        panel=START,
        typed=Path | None,
    )
    image_weights: str | Path | None = setting(  # noqa: RUF009
        None,
        "Weights of EfficientNet-Lite0, which is then the image trunk of a new small encoder. "
        "Default: random.",
        "PATH",
        more="With the tensor names of timm or of the package efficientnet_lite_pytorch.",
        panel=START,
        typed=Path | None,
    )
    style: str | None = setting(
        None,
        "Pooling and normalisation of a new small encoder, by the name of the objective that has "
        "them. Default: siglip.",
        "NAME",
        panel=START,
    )
    side: int | None = setting(
        None,
        "Side in pixels of the images of a new small encoder, a multiple of 32, or of 64 with "
        "--image-weights. Default: 128.",
        "PIXELS",
        panel=START,
    )
    reading: str | None = setting(
        None,
        "What the report tower of a new small encoder reads: words, or findings that `vlscore "
        "findings` extracts. Default: words.",
        "NAME",
        panel=START,
    )

    def __post_init__(self) -> None:
        for name in ("style", "side", "reading", "image_weights"):
            if getattr(self, name) is not None and not self.is_small:
                raise InvalidSetting(
                    f"{name} (--{name.replace('_', '-')}) is of a new small encoder; {self.name} "
                    "has its own"
                )
        if self.side is not None or self.reading is not None:
            from vlscore.encoders import SmallSettings

            SmallSettings(**self.small_settings())

    @property
    def name(self) -> str:
        """Return the name of the encoder."""
        return str(self.encoder if isinstance(self.encoder, str) else self.encoder.card.name)

    @property
    def is_small(self) -> bool:
        """Return whether a small encoder is made, with a vocabulary from the reports."""
        return self.encoder == "small" and self.weights is None

    def small_settings(self) -> dict[str, Any]:
        """Return the fields of SmallSettings that are set for a new small encoder."""
        trunk = None if self.image_weights is None else "efficientnet-lite0"
        options = {"side": self.side, "trunk": trunk, "reading": self.reading}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def stored_side(self) -> int:
        """Return the shorter side of stored images in pixels; raise UnknownName.

        They are a little larger than the tower's input, so that crops can vary in position.
        """
        if self.side is not None:
            size = self.side
        elif isinstance(self.encoder, str):
            size = encoder_card(self.encoder).image_size
        else:
            size = self.encoder.card.image_size
        return max(256, round(size * 8 / 7))


@described
@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run, which are recorded with its result.

    Raises: InvalidSetting that names the first invalid setting.
    """

    objective: str = setting(
        "convirt",
        "Loss, by the name of its paper: convirt, siglip, gloria, limitr, mgca, biovil, medclip; "
        "or judging, for encoders that judge reports; with settings of its own, as in "
        "'convirt(temperature=0.07)'.",
        "NAME",
    )
    epochs: int = setting(10, "Passes over the training pairs.", "N", panel=LEARNING, least=1)
    batch_size: int = setting(
        64,
        "Pairs in one step, over all processes; each is a negative of all others.",
        "N",
        panel=LEARNING,
        least=2,
    )
    learning_rate: float = setting(
        1e-4,
        "Largest learning rate of AdamW.",
        "NUMBER",
        more="It is reached at the end of the warm-up.",
        panel=LEARNING,
    )
    loaded_rate: float = setting(
        1.0,
        "Learning rate of the weights that were loaded, as a share of --learning-rate.",
        "SHARE",
        more="Below 1, they change more slowly than weights that start from random numbers.",
        panel=LEARNING,
        least=0,
    )
    weight_decay: float = setting(
        0.05,
        "Weight decay of AdamW, for matrices.",
        "NUMBER",
        more="Biases, norms and temperatures have none.",
        panel=LEARNING,
        least=0,
    )
    warm_up: float = setting(
        0.05,
        "Share of the steps in which the learning rate rises; after them it falls by a cosine.",
        "SHARE",
        more="The rate rises from 0, and falls to 0 along the cosine.",
        panel=LEARNING,
    )
    clip: float = setting(
        1.0,
        "Longest gradient; 0 for no limit.",
        "NUMBER",
        more="The length is that over all parameters.",
        panel=LEARNING,
        least=0,
    )
    precision: str = setting(
        "fp32",
        "fp32; or bf16, where the hardware has units for it.",
        "NAME",
        more="bf16 is autocast of the towers. Objectives are computed in fp32.",
        panel="Encoder",
        choices=PRECISIONS,
    )
    frozen_norms: bool = setting(
        False,
        "Do not change the statistics of batch norms: for small batches, and where the training "
        "starts from a checkpoint.",
        more="If they change, a pair's vector depends on its micro-batch, as in the authors' code "
        "of the published layouts.",
        panel=LEARNING,
    )
    augmentation: str = setting(
        "none",
        "Augmentation of images: none, light, or the name of a paper. No recipe mirrors an image, "
        "so left stays left.",
        "NAME",
        more="The recipes are in `vlscore.training.augmentation`.",
        panel=LEARNING,
    )
    sentences: str = setting(
        "all",
        "Sentences of a report that are read: all, all in random order (shuffled), or one drawn "
        "in each epoch (one).",
        "NAME",
        panel=LEARNING,
        choices=SENTENCES,
    )
    findings_weight: float = setting(
        0.0,
        "Weight of the findings extracted from the training reports, as a second aim of both "
        "towers, for a few thousand pairs; 0 for none.",
        "NUMBER",
        more="See `vlscore.training.objectives.finding_labels`.",
        panel=LEARNING,
        least=0,
    )
    validation_share: float = setting(
        0.05,
        "Share of the studies held out.",
        "SHARE",
        more="Not used with a validation table.",
        panel=HELD_OUT,
        least=0,
    )
    validate_every: int = setting(1, "Epochs between validations.", "N", panel=HELD_OUT, least=1)
    select: str = setting(
        "recall",
        "Which weights are the result: best by recall (mean R@1, 5 and 10), by loss, or last.",
        "NAME",
        more="Recall and loss are those of the validation pairs.",
        panel=HELD_OUT,
        choices=SELECTIONS,
    )
    patience: int = setting(
        0,
        "End after so many validations without a better one; 0: never.",
        "N",
        panel=HELD_OUT,
        least=0,
    )
    seed: int = setting(0, "Seed of all random choices.", "N", panel=LEARNING, least=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 < self.learning_rate < math.inf:
            raise InvalidSetting(f"learning_rate is above 0, not {self.learning_rate}")
        if not 0 <= self.warm_up < 1:
            raise InvalidSetting(f"warm_up is a share of the steps below 1, not {self.warm_up}")
        if not self.validation_share < 1:
            raise InvalidSetting(f"validation_share is below 1, not {self.validation_share}")

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


# A file may be untrusted: it must not choose which files are written or replaced.
_OF_COMMAND_LINE = {"out", "overwrite", "pairs"}
_PATHS = {"weights", "tokenizer", "image_weights"}


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Read settings by name from a TOML file.

    Args: known: the valid names.
    Raises: InvalidSetting if the file cannot be read, or has an unknown name or an invalid value.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSetting(f"{path} is no TOML file: {error}") from None
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}" if close else f"; it has {', '.join(known)}"
            raise InvalidSetting(f"{path}: training has no setting {name!r}{hint}")
        if name in _OF_COMMAND_LINE:
            raise InvalidSetting(
                f"{path}: a file of settings cannot say where files are written: remove {name!r} "
                f"from it, and write --{name} on the command line"
            )
        if not isinstance(value, str | int | float | bool):
            raise InvalidSetting(f"{path}: {name} is a text, a number, true or false")
    return found


def check_names(path: Path, values: Mapping[str, Any]) -> None:
    """Check that values of a file name only registered members and local paths.

    Args: values: values of `read_config` that are used, without those of the command line.
    Raises: UnknownName, InvalidSetting.
    """
    from vlscore.training.augmentation import AUGMENTATIONS
    from vlscore.training.registry import OBJECTIVES

    if "encoder" in values:
        encoder_from_file(values["encoder"], path)
    for name, family in (("objective", OBJECTIVES), ("augmentation", AUGMENTATIONS)):
        if name in values:
            written, _ = split_call(str(values[name]))
            registered_name(family, written, path, f"--{name}")
    for name in _PATHS & values.keys():
        path_from_file(str(values[name]), path)


def write_config(path: Path, values: Mapping[str, Any]) -> None:
    """Write settings in the form that `read_config` reads; leave out those that are None."""
    # Texts, numbers and truth values look alike in json and TOML.
    lines = (
        f"{name} = {json.dumps(str(value) if isinstance(value, Path) else value, allow_nan=False)}"
        for name, value in values.items()
        if value is not None
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
