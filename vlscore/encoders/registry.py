"""Encoders by name. A new encoder is one file and one line here."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.encoders.card import EncoderCard
from vlscore.errors import UnknownName
from vlscore.images import ImagePolicy

if TYPE_CHECKING:
    from vlscore.encoders.base import JointEncoder

BUNDLED = "phantom"

ENCODERS: dict[str, str] = {
    "phantom": "vlscore.encoders.phantom:PhantomEncoder",
    "limitr": "vlscore.encoders.limitr:LimitrEncoder",
    "gloria": "vlscore.encoders.gloria:GloriaEncoder",
    "convirt": "vlscore.encoders.convirt:ConvirtEncoder",
    "convirt-mgca": "vlscore.encoders.mgca:ConvirtMgcaEncoder",
    "biovil": "vlscore.encoders.biovil:BiovilEncoder",
    "biovil-t": "vlscore.encoders.biovil:BiovilTEncoder",
    "medclip-resnet": "vlscore.encoders.medclip:MedclipResNetEncoder",
    "medclip-vit": "vlscore.encoders.medclip:MedclipSwinEncoder",
    "mgca-resnet50": "vlscore.encoders.mgca:MgcaResNetEncoder",
    "mgca-vit": "vlscore.encoders.mgca:MgcaVisionTransformerEncoder",
    "chexzero": "vlscore.encoders.chexzero:ChexzeroEncoder",
    "biomedclip": "vlscore.encoders.openclip:BiomedClipEncoder",
    "openclip": "vlscore.encoders.openclip:OpenClipEncoder",
}


def default_encoder() -> str:
    """The name in the environment variable VLSCORE_ENCODER, else the bundled demonstration."""
    return os.environ.get("VLSCORE_ENCODER") or BUNDLED


def load_encoder(
    name: str | None = None,
    *,
    weights: str | Path | None = None,
    tokenizer: str | Path | None = None,
    device: str = "cpu",
    image_policy: ImagePolicy | str | None = None,
) -> "JointEncoder":
    """Load an encoder by name, ready to embed.

    Args:
        name: a name from `encoder_cards()`, or "family:variant" (as in "openclip:ViT-B-32");
            default: VLSCORE_ENCODER, else the bundled demonstration encoder.
        weights: checkpoint file or folder; default: where `vlscore weights path` looks.
        tokenizer: folder or vocabulary file; default: beside the weights.
        device: "cpu", "cuda", "cuda:1", ...
        image_policy: an ImagePolicy, or its name; "authors" reads files as the authors' code does.

    Raises:
        UnknownName: no such encoder.
        WeightsNotFound: the checkpoint is not there; the message says how to get it.
        IncompatibleCheckpoint, UnsafeCheckpoint, ChecksumMismatch: the file cannot be trusted.
    """
    name = name or default_encoder()
    encoder_class, variant = _find(name)
    options: dict[str, Any] = {"variant": variant} if variant is not None else {}
    encoder: JointEncoder = encoder_class.load(weights=weights, tokenizer=tokenizer, **options)
    encoder.image_policy = ImagePolicy.named(image_policy)
    return encoder.eval().requires_grad_(False).to(device)


def encoder_cards() -> Iterator[EncoderCard]:
    """The card of every registered encoder, without loading any weights."""
    for target in ENCODERS.values():
        yield _class_at(target).card


def encoder_card(name: str) -> EncoderCard:
    """The card of one encoder, without loading any weights. Raises UnknownName."""
    card: EncoderCard = _find(name)[0].card
    return card


def _find(name: str) -> tuple[Any, str | None]:
    family, separator, variant = name.partition(":")
    target = ENCODERS.get(family)
    if target is None:
        known = ", ".join(sorted(ENCODERS))
        raise UnknownName(f"no encoder is called {name!r}; known: {known}")
    return _class_at(target), variant if separator else None


def _class_at(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
