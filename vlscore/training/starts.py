"""What training starts from: random weights, weights of a layout's parts, or a checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.encoders import JointEncoder, check_ready, encoder_card, load_encoder
from vlscore.errors import InvalidSetting
from vlscore.training.starting import LAYOUTS, new_encoder

# Images are kept a little larger than towers take them, so that a crop has room to move in.
_KEPT = 8 / 7
_LEAST_KEPT = 256


@dataclass(frozen=True, eq=False)
class Start:
    """Which encoder is trained, and from which weights.

    Attributes:
        encoder: "small", the name of a published layout or of any encoder whose checkpoint is
            given; or an encoder that is loaded already, which training changes.
        weights: a checkpoint to go on from, as in `load_encoder`.
        tokenizer: vocabulary of a published layout, or of the checkpoint.
        image_weights, text_weights: of the parts of a published layout; see `new_encoder`.
        style: of a new small encoder: whose way of pooling and normalising it follows.

    Raises: InvalidSetting where settings do not go together.
    """

    encoder: str | JointEncoder = "small"
    weights: str | Path | None = None
    tokenizer: str | Path | None = None
    image_weights: str | Path | None = None
    text_weights: str | Path | None = None
    style: str | None = None

    def __post_init__(self) -> None:
        if self.style is not None and not self.is_small:
            raise InvalidSetting(
                f"style={self.style} (--style) is of a new small encoder; {self.name} has a way of "
                "its own"
            )
        parts = {"image_weights": self.image_weights, "text_weights": self.text_weights}
        given = [name for name, path in parts.items() if path is not None]
        if given and (self.weights is not None or not self.is_layout):
            raise InvalidSetting(
                f"{' and '.join(given)} are of a published layout that starts from its parts "
                f"({', '.join(LAYOUTS)}), without weights of the whole"
            )

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.encoder.card.name if isinstance(self.encoder, JointEncoder) else self.encoder

    @property
    def is_small(self) -> bool:
        """Whether a small encoder is made, whose vocabulary the reports give."""
        return self.encoder == "small" and self.weights is None

    @property
    def is_layout(self) -> bool:
        """Whether a published encoder is made anew."""
        if isinstance(self.encoder, JointEncoder) or self.weights is not None:
            return False
        return encoder_card(self.encoder).name.partition(":")[0] in LAYOUTS

    def opened(self, seed: int) -> JointEncoder | None:
        """The encoder before the first step; None for a small one, which needs the reports.

        Args: seed: of random weights.
        Raises: those of `load_encoder` and `new_encoder`; BrokenContract for an encoder that is in
            training mode already.
        """
        if isinstance(self.encoder, JointEncoder):
            check_ready(self.encoder)
            return self.encoder
        if self.is_small:
            return None
        if self.is_layout:
            return new_encoder(
                self.encoder,
                tokenizer=self.tokenizer,
                image_weights=self.image_weights,
                text_weights=self.text_weights,
                seed=seed,
            )
        return load_encoder(self.encoder, weights=self.weights, tokenizer=self.tokenizer)

    def small(self, reports: Sequence[str], seed: int) -> JointEncoder:
        """A new small encoder with the words of the training reports."""
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


def own_copy(encoder: JointEncoder) -> JointEncoder:
    """The encoder itself, its tensors in memory of their own and its digests forgotten.

    The tensors of a checkpoint may lie in the mapped file, which training must not write to.
    """
    for tensor in (*encoder.parameters(), *encoder.buffers()):
        tensor.data = tensor.data.clone()
    # Those of the weights that training is about to change.
    for name in ("weights_digest", "checksum"):
        vars(encoder).pop(name, None)
    return encoder
