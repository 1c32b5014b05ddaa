"""How an encoder is trained: every number that its weights depend on, beside data and towers."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from vlscore.errors import InvalidSetting

PRECISIONS = ("fp32", "bf16")
SENTENCES = ("all", "shuffled", "one")
SELECTIONS = ("recall", "loss", "last")


@dataclass(frozen=True)
class TrainingSettings:
    """What is set once and recorded with the result.

    Attributes:
        objective: name of an objective, with settings of its own in parentheses, as in
            "convirt(temperature=0.07)".
        epochs: passes over the training pairs.
        batch_size: pairs in one step, of all processes together; each is a negative of the others.
        learning_rate: the largest one, at the end of the warm-up.
        weight_decay: AdamW's, of weights that are matrices; biases, norms and temperatures have
            none.
        warm_up: share of all steps in which the rate grows from 0; after it, the rate falls to 0
            along a cosine.
        clip: longest gradient over all parameters, 0 for no limit.
        precision: of the towers: "fp32" or "bf16" (autocast). Objectives are computed in fp32.
        frozen_norms: batch norms keep the statistics that they start with. Without it, a pair's
            vector depends on its micro-batch, as in the authors' code of the published layouts.
        augmentation: name of a recipe; see `vlscore.training.augmentation`.
        sentences: "all" of a report in their order, "shuffled" in any order, or "one" of them.
        duplicates_apart: pairs of one study, or with equal reports, are not negatives.
        validation_share: of the training studies, held out where there is no validation table.
        validate_every: epochs between two validations.
        select: which weights are the result: those with the best "recall" or "loss" on the
            validation pairs, or the "last".
        patience: validations without improvement after which training ends; 0 for never.
        seed: of everything that is drawn.

    Raises: InvalidSetting naming the first that cannot be honoured.
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
        _one_of(self, PRECISIONS, "precision")
        _one_of(self, SENTENCES, "sentences")
        _one_of(self, SELECTIONS, "select")
        if not 0 < self.learning_rate < math.inf:
            raise InvalidSetting(f"learning_rate is above 0, not {self.learning_rate}")
        if not 0 <= self.warm_up < 1:
            raise InvalidSetting(f"warm_up is a share of the steps below 1, not {self.warm_up}")
        if not self.validation_share < 1:
            raise InvalidSetting(f"validation_share is below 1, not {self.validation_share}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json and TOML."""
        return asdict(self)

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of step `step` (from 0) of `steps`.

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
