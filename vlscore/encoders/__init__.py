"""Joint image-report encoders: one file a published model, found by name."""

from vlscore.encoders.base import ImagePipeline, JointEncoder, Precision
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.registry import (
    ENCODERS,
    default_encoder,
    encoder_card,
    encoder_cards,
    load_encoder,
)
from vlscore.encoders.tokens import Tokens

__all__ = [
    "ENCODERS",
    "EncoderCard",
    "ImagePipeline",
    "JointEncoder",
    "Precision",
    "Tokens",
    "default_encoder",
    "encoder_card",
    "encoder_cards",
    "load_encoder",
]
