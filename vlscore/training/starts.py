"""What training starts from: a small encoder with random weights, or a checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vlscore.encoders import JointEncoder, check_ready, encoder_card, load_encoder
from vlscore.errors import InvalidSetting

# Images are kept a little larger than towers take them, so that a crop has room to move in.
_KEPT = 8 / 7
_LEAST_KEPT = 256


@dataclass(frozen=True, eq=False)
class Start:
    """Which encoder is trained, and from which weights.

    Attributes:
        encoder: "small", or the name of any encoder whose checkpoint is given; or an encoder that
            is loaded already, which training changes.
        weights, tokenizer: a checkpoint to go on from, as in `load_encoder`.
        style: of a new small encoder: whose way of pooling and normalising it follows.
    """

    encoder: str | JointEncoder = "small"
    weights: str | Path | None = None
    tokenizer: str | Path | None = None
    style: str | None = None

    def __post_init__(self) -> None:
        if self.style is not None and not self.is_new:
            raise InvalidSetting(
                f"style={self.style} is of a new small encoder; {self.name} has a way of its own"
            )

    @property
    def is_new(self) -> bool:
        """Whether weights are random at first."""
        return self.encoder == "small" and self.weights is None

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.encoder.card.name if isinstance(self.encoder, JointEncoder) else self.encoder

    @cached_property
    def loaded(self) -> JointEncoder | None:
        """The encoder whose training goes on; None for a new one.

        Raises: those of `load_encoder`; BrokenContract for an encoder in training mode.
        """
        if isinstance(self.encoder, JointEncoder):
            check_ready(self.encoder)
            return self.encoder
        if self.is_new:
            return None
        return load_encoder(self.encoder, weights=self.weights, tokenizer=self.tokenizer)

    def key(self) -> dict[str, Any]:
        """What the first weights depend on, beside seed and training reports."""
        weights = None if self.loaded is None else self.loaded.weights_digest
        return {"encoder": self.name, "weights_digest": weights, "style": self.style}

    def make(self, reports: Sequence[str], seed: int) -> JointEncoder:
        """The encoder as it is before the first step.

        Args:
            reports: the training reports, from which a new encoder takes its vocabulary.
            seed: of random weights.
        """
        if self.loaded is not None:
            return self.loaded
        from vlscore.encoders.blocks.sentences import vocabulary_of
        from vlscore.encoders.small import SmallEncoder

        options: dict[str, Any] = {} if self.style is None else {"style": self.style}
        return SmallEncoder.new(vocabulary_of(reports), seed=seed, **options).eval()

    @property
    def kept_side(self) -> int:
        """Pixels of the shorter side that images are kept with; raises UnknownName."""
        known = self.encoder
        card = known.card if isinstance(known, JointEncoder) else encoder_card(known)
        return max(_LEAST_KEPT, round(card.image_size * _KEPT))
