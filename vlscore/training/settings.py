"""Settings of a training run, and the TOML file with them.

- `Start` holds the encoder that is trained, and its start weights. `TrainingSettings` holds every
  other number on which the weights depend, except data. Their attributes are also the options of
  `vlscore train`, with hyphens for underscores, and the entries of its TOML file.
- `Execution` holds what the weights do not depend on.
- `read_config` and `write_config` read and write a TOML file of settings, which every run writes.

This file loads no heavy library, because `vlscore train --help` reads it.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vlscore.core import OnProgress, check_settings, no_progress, registered_name, split_call
from vlscore.encoders import encoder_card, encoder_from_file, path_from_file
from vlscore.errors import InvalidSetting

#: What a new small encoder takes, besides weights for its image trunk.
OF_SMALL = ("style", "side", "reading", "pixels")


@dataclass(frozen=True, eq=False)
class Start:
    """Encoder to train, and its start weights.

    Attributes:
        encoder: Encoder: small, for a new one, or any encoder with a checkpoint in --weights; in
            Python also a loaded encoder, which training changes.
        weights: Checkpoint of a whole encoder to start from.
        tokenizer: Vocabulary file, or folder, of the report tower. Default: next to the weights.
        image_weights: Weights of EfficientNet-Lite0 (from timm or efficientnet_lite_pytorch) for
            the image trunk of a new small encoder. Default: random.
        style: Pooling and normalisation of a new small encoder, as for this objective. Default:
            siglip.
        side: Pixels of the images of a new small encoder, a multiple of 32, or of 64 with
            --image-weights. Default: 128.
        reading: What the report tower of a new small encoder reads: words, or findings. Default:
            words.
        pixels: Images of a new small encoder: padded to squares; or equalised: stretched, with
            equalised grey levels. Default: padded.

    Raises: InvalidSetting if settings contradict each other.
    """

    encoder: Any = "small"
    weights: str | Path | None = None
    tokenizer: str | Path | None = None
    image_weights: str | Path | None = None
    style: str | None = None
    side: int | None = None
    reading: str | None = None
    pixels: str | None = None

    def __post_init__(self) -> None:
        for name in (*OF_SMALL, "image_weights"):
            if getattr(self, name) is not None and not self.is_small:
                raise InvalidSetting(
                    f"{name} (--{name.replace('_', '-')}) is of a new small encoder; {self.name} "
                    "has its own"
                )
        if self.small_settings():
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
        options = {**{name: getattr(self, name) for name in OF_SMALL}, "trunk": trunk}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def stored_side(self) -> int:
        """Return the shorter side of stored images in pixels; raise UnknownName.

        They are a little larger than the tower's input, so that crops can vary in position.
        """
        card = encoder_card(self.encoder) if isinstance(self.encoder, str) else self.encoder.card
        return max(256, round((self.side or card.image_size) * 8 / 7))


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run, which are recorded with its result.

    Attributes:
        objective: Loss, by the name of its paper: convirt, siglip, gloria, limitr, mgca, biovil,
            medclip; or judging; with its settings, as in 'convirt(temperature=0.07)'.
        epochs: Passes over the training pairs.
        batch_size: Pairs in one step, over all processes; each is a negative of all others.
        learning_rate: Largest learning rate of AdamW, reached at the end of the warm-up.
        loaded_rate: Learning rate of the weights that were loaded, as a share of --learning-rate:
            below 1, they change more slowly than weights that start from random numbers.
        weight_decay: Weight decay of AdamW, for matrices; biases, norms and temperatures have none.
        warm_up: Share of the steps in which the learning rate rises from 0; after them it falls to
            0 along a cosine.
        clip: Longest gradient, over all parameters; 0 for no limit.
        precision: fp32; or bf16 in the towers, if the hardware supports it.
        frozen_norms: Do not change the statistics of batch norms: for small batches, and where the
            training starts from a checkpoint. If they change, a pair's vector depends on its
            micro-batch, as in the authors' code of the published layouts.
        augmentation: Augmentation of images: none, light, hospitals, or a paper's name. No image
            is mirrored.
        sentences: Sentences that are read: all, all in random order (shuffled), or one in each
            epoch.
        findings_weight: Weight of a second objective, for a few thousand pairs: both towers predict
            the findings of the reports.
        validation_share: Share of the studies held out, without --validation.
        validate_every: Epochs between validations.
        select: Epoch whose weights are the result: by recall of the validation pairs (mean of R@1,
            5, 10), by loss, or last.
        patience: End after so many validations without a better one; 0: never.
        seed: Seed of all random choices.

    Raises: InvalidSetting that names the first invalid setting.
    """

    objective: str = "convirt"
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 1e-4
    loaded_rate: float = 1.0
    weight_decay: float = 0.05
    warm_up: float = 0.05
    clip: float = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    frozen_norms: bool = False
    augmentation: str = "none"
    sentences: Literal["all", "shuffled", "one"] = "all"
    findings_weight: float = 0.0
    validation_share: float = 0.05
    validate_every: int = 1
    select: Literal["recall", "loss", "last"] = "recall"
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(
            self,
            epochs=1,
            batch_size=2,
            loaded_rate=0,
            weight_decay=0,
            clip=0,
            findings_weight=0,
            validation_share=0,
            validate_every=1,
            patience=0,
            seed=0,
        )
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


@dataclass(frozen=True)
class Execution:
    """How a training runs; the result does not depend on it, but for rounding.

    Attributes:
        pairs: folder for the decoded images, which runs may share; default: "pairs" in the output.
        workers: processes that decode images, then threads that preprocess them.
        micro_batch: most pairs that go through the towers at once; 0 for no limit. It bounds
            memory, and changes the result by rounding alone.
        device: default: a GPU if there is one.
        keep_seconds: time between two stored states.
        on_progress: called with (rows done, rows failed) while images are decoded.
        on_step: called with a `StepProgress` after every step.
    """

    pairs: str | Path | None = None
    workers: int = 0
    micro_batch: int = 0
    device: str | None = None
    keep_seconds: float = 600.0
    on_progress: OnProgress = no_progress
    on_step: Callable[[Any], None] = lambda shown: None


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
