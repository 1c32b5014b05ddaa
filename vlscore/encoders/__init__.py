"""Joint image-report encoders: one file a published model, found by name.

Cards are data: the names below that need torch are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vlscore.encoders.card import EncoderCard
from vlscore.encoders.registry import (
    ENCODERS,
    check_alone,
    default_encoder,
    encoder_card,
    encoder_cards,
    load_encoder,
)

if TYPE_CHECKING:
    from vlscore.encoders.base import JointEncoder
    from vlscore.encoders.inference import (
        Precision,
        check_device,
        check_precision,
        check_ready,
        why_slow,
    )
    from vlscore.encoders.pipeline import ImagePipeline
    from vlscore.encoders.tokens import Tokens

_HOMES = {
    "ImagePipeline": "pipeline",
    "JointEncoder": "base",
    "Precision": "inference",
    "Tokens": "tokens",
    "check_device": "inference",
    "check_precision": "inference",
    "check_ready": "inference",
    "why_slow": "inference",
}

__all__ = [
    "ENCODERS",
    "EncoderCard",
    "ImagePipeline",
    "JointEncoder",
    "Precision",
    "Tokens",
    "check_alone",
    "check_device",
    "check_precision",
    "check_ready",
    "default_encoder",
    "encoder_card",
    "encoder_cards",
    "load_encoder",
    "why_slow",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
