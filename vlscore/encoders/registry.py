"""Registry of encoders. A new encoder is one file of code, one of data and one line here.

This module does not import torch until an encoder is loaded.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import Registry, registered_name, unregistered
from vlscore.encoders.cards import EncoderCard, entry_of
from vlscore.errors import InvalidSetting, UnknownName, VLScoreError

if TYPE_CHECKING:
    from vlscore.data import ImagePolicy
    from vlscore.encoders.base import JointEncoder


BUNDLED = "phantom-judging"


def _check_member(member: Any) -> None:
    from vlscore.encoders.base import JointEncoder

    if isinstance(member, JointEncoder):
        return
    if not (isinstance(member, type) and issubclass(member, JointEncoder)):
        raise InvalidSetting(
            f"{member!r} is no encoder: give a subclass of vlscore.encoders.JointEncoder with a "
            "classmethod load(weights, tokenizer, variant), or an instance of one"
        )
    if not callable(getattr(member, "load", None)):
        raise InvalidSetting(
            f"{member.__name__} has no classmethod load(weights, tokenizer, variant), by which an "
            "encoder is loaded by name"
        )


ENCODERS = Registry["type[JointEncoder] | JointEncoder"](
    "encoder", group="vlscore.encoders", check=_check_member, listed_by="vlscore encoders"
)
# Other names in papers; case, hyphens and underscores do not matter.
_OURS = (
    ("phantom-judging", "small:PhantomJudgingEncoder", ()),
    ("phantom", "small:PhantomEncoder", ()),
    ("small", "small:SmallEncoder", ()),
    ("ensemble", "ensemble:EnsembleEncoder", ()),
    ("limitr", "limitr:LimitrEncoder", ()),
    ("gloria", "gloria:GloriaEncoder", ()),
    ("convirt", "convirt:ConvirtEncoder", ()),
    ("convirt-mgca", "mgca:ConvirtMgcaEncoder", ("mgca-convirt",)),
    ("biovil", "biovil:BiovilEncoder", ()),
    ("biovil-t", "biovil:BiovilTEncoder", ("biovilt",)),
    ("medclip-resnet", "medclip:MedclipResNetEncoder", ("medclip-resnet50", "medclip-rn50")),
    ("medclip-vit", "medclip:MedclipSwinEncoder", ("medclip-swin", "medclip-swin-t")),
    ("mgca-resnet50", "mgca:MgcaResNetEncoder", ("mgca-resnet", "mgca-resnet-50")),
    ("mgca-vit", "mgca:MgcaVisionTransformerEncoder", ("mgca-vit-b-16",)),
    ("chexzero", "chexzero:ChexzeroEncoder", ()),
    ("biomedclip", "openclip:BiomedClipEncoder", ()),
    ("openclip", "openclip:OpenClipEncoder", ("open-clip",)),
)
for _name, _target, _aliases in _OURS:
    ENCODERS.register(f"vlscore.encoders.models.{_target}", _name, aliases=_aliases)
# Encoders of this package: an encoder from a user's package has no file in weights/cards.
SHIPPED = tuple(name for name, _, _ in _OURS)


def default_encoder() -> str:
    """Return the name in VLSCORE_ENCODER, else the bundled demonstration encoder."""
    return os.environ.get("VLSCORE_ENCODER") or BUNDLED


def load_encoder(
    name: "str | JointEncoder | None" = None,
    *,
    weights: str | Path | None = None,
    tokenizer: str | Path | None = None,
    device: str | None = None,
    image_policy: "ImagePolicy | str | None" = None,
) -> "JointEncoder":
    """Load an encoder by name, ready to embed.

    Args:
        name: a name from `encoder_cards()`, or "family:variant" (as in "openclip:ViT-B-32"), or
            "package.module:Class" of your own; default: VLSCORE_ENCODER, else the bundled
            demonstration encoder. A JointEncoder is checked and returned unchanged.
        weights: checkpoint file or folder; default: the search of `vlscore weights path`.
        tokenizer: folder or vocabulary file; default: the weights' folder.
        device: "cpu", "cuda", "cuda:1", ...; default: "cpu", or the device of a loaded encoder.
        image_policy: an ImagePolicy, or its name; "authors" reads files as the authors' code does.

    Raises:
        UnknownName: no such encoder.
        InvalidSetting: a setting cannot be used: weights or a tokenizer without an encoder, or for
            an encoder that does not take them; a device that does not exist.
        BrokenContract: the encoder is in training mode.
        WeightsNotFound: the checkpoint is absent; the message says how to get it.
        IncompatibleCheckpoint, UnsafeCheckpoint, ChecksumMismatch: the file cannot be trusted.
    """
    from vlscore.data import ImagePolicy
    from vlscore.encoders.devices import check_device, check_ready

    if name is None and not os.environ.get("VLSCORE_ENCODER"):
        _refuse(
            {"weights": weights, "tokenizer": tokenizer},
            "the encoder is the bundled demonstration; name the one that they belong to with "
            "encoder=... (--encoder)",
        )
    wanted = None if device is None else check_device(device)
    policy = ImagePolicy.named(image_policy)
    member, variant = find_encoder(name if name is not None else default_encoder())
    if not isinstance(member, type):
        check_alone(weights=weights, tokenizer=tokenizer)
        if image_policy is not None or variant is not None or wanted not in (None, member.device):
            raise InvalidSetting(
                f"{member.card.name} is loaded already: its device and image policy are its own, "
                "and it has no variants"
            )
        check_ready(member)
        return member
    check_tokenizer(member, tokenizer)
    options = {} if variant is None else {"variant": variant}
    encoder: JointEncoder = member.load(weights=weights, tokenizer=tokenizer, **options)  # type: ignore[attr-defined]
    encoder.image_policy = policy
    encoder = encoder.eval().requires_grad_(False).to(wanted or "cpu")
    encoder.is_as_loaded = True
    return encoder


def check_tokenizer(member: "type[JointEncoder]", tokenizer: object) -> None:
    """Refuse a tokenizer for an encoder that brings its own. Raises: InvalidSetting."""
    if tokenizer is not None and not member.takes_tokenizer:
        raise InvalidSetting(
            f"tokenizer={tokenizer} was given, but {member.card.name} brings its own: leave it out"
        )


def check_alone(*, weights: object = None, tokenizer: object = None) -> None:
    """Refuse weights or a tokenizer together with an encoder that is loaded already.

    Raises: InvalidSetting.
    """
    _refuse(
        {"weights": weights, "tokenizer": tokenizer},
        "the encoder is an object that has both already; leave them out, or name the encoder",
    )


def _refuse(settings: dict[str, object], reason: str) -> None:
    for setting, value in settings.items():
        if value is not None:
            raise InvalidSetting(f"{setting}={value} was given, but {reason}")


def encoder_cards() -> Iterator[EncoderCard]:
    """Yield the card of every registered encoder, without loading any weights.

    A user's encoder that cannot be imported, or has no card, is left out with a warning.
    """
    for name in ENCODERS:
        try:
            card = encoder_card(name)
        except VLScoreError as error:
            warnings.warn(f"encoder {name} is left out: {error}", stacklevel=2)
        else:
            yield card


def encoder_card(name: str) -> EncoderCard:
    """Return the card of one encoder or variant, without loading any weights.

    Raises: UnknownName; InvalidSetting for a user's encoder whose class has no card.
    """
    family, variant = _split(name)
    if (known := _shipped(family)) is not None:
        entry = entry_of(known)
        _check_variant(known, tuple(entry.variants), variant)
        return entry.variants.get(variant or "", entry.card)
    member = find_encoder(name)[0]
    card = getattr(member, "card", None)
    if not isinstance(card, EncoderCard):
        raise InvalidSetting(f"{name} has no card: state `card = EncoderCard(...)` in its class")
    return card


def find_encoder(
    name: "str | JointEncoder",
) -> "tuple[type[JointEncoder] | JointEncoder, str | None]":
    """Return the class of an encoder, or the encoder itself, and the wanted variant.

    Raises: UnknownName, also for an unknown variant; InvalidSetting for an object that is no
        encoder.
    """
    if not isinstance(name, str):
        return ENCODERS.find(name), None
    family, variant = _split(name)
    try:
        member = ENCODERS.find(family)
    except UnknownName as error:
        if Path(name).is_dir() or Path(name).is_file():
            raise UnknownName(
                f"{name} is a checkpoint, not the name of an encoder: name the encoder that it "
                f"belongs to, and give it as weights={name}; what `vlscore train` wrote is, as a "
                f"rule, --encoder small --weights {name}"
            ) from error
        raise
    _check_variant(_shipped(family) or family, member.variants, variant)
    return member, variant


def encoder_from_file(name: object, source: str | Path, option: str = "--encoder") -> str:
    """Return the encoder's name in a file if it is registered, or a variant of such a name.

    Args:
        source: the file, for the message.
        option: option by which users name another encoder.

    Raises: UnknownName for any other name: "package.module:Class", a model of a hub.
    """
    family, colon, variant = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not colon:
        return registered_name(ENCODERS, name, source, option)
    if family not in ENCODERS or variant not in (ENCODERS.find(family).variants or ()):
        raise unregistered("encoder", name, source, option)
    return f"{ENCODERS.name_of(family)}:{variant}"


def _split(name: str) -> tuple[str, str | None]:
    """Split a name into a family or "package.module:Class", and the variant after a colon."""
    family, colon, variant = name.partition(":")
    if colon and family not in ENCODERS:
        target, second, own_variant = variant.partition(":")
        return f"{family}:{target}", own_variant if second else None
    return family, variant if colon else None


def _shipped(family: str) -> str | None:
    known = ENCODERS.name_of(family) if family in ENCODERS else None
    return known if known in SHIPPED else None


def _check_variant(name: str, variants: tuple[str, ...] | None, variant: str | None) -> None:
    # Only open_clip knows which models it has.
    if variant is None or variants is None or variant in variants or name == "openclip":
        return
    known = ", ".join(f"{name}:{each}" for each in variants)
    raise UnknownName(
        f"{name} has no variant {variant!r}; "
        + (f"there is {known}" if known else "it has no variants")
    )
