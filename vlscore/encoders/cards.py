"""Encoder cards: facts about an encoder, which are part of every score that it makes.

The card of an encoder that ships with vlscore is weights/cards/NAME.toml; a folder with a trained
encoder has its facts in card.json. Both are read without torch.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from vlscore.core import Signature, resource_path
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting


@dataclass(frozen=True)
class EncoderCard:
    """Facts about a joint image-report encoder.

    Attributes:
        name: the name `load_encoder` takes.
        title: the model's name as its authors print it.
        dim: length d of its global embeddings.
        normalised: whether the embeddings have unit length; None where each folder decides.
        C: the constant of VLScore (Eq. 2) for this encoder, None if none was published.
        C_source: data on which C was calibrated, or why there is no C.
        image_size: side in pixels of the square that enters the image tower.
        max_tokens: longest token sequence that enters the report tower, with special tokens.
        licence: licence of the weights in their authors' words, else "not stated".
        citation: the paper.
        reference_code: code with which the embeddings were compared.
        notes: quirks that change numbers.
        demonstration: True for the bundled encoder, which must not be used on real radiographs.
        trained_on: sha256 of the table on which a user trained the encoder; else None.
        C_views: the choice of views with which a user measured C, as "frontal+lateral"; else None.
    """

    name: str
    title: str
    dim: int
    normalised: bool | None
    C: float | None
    C_source: str
    image_size: int
    max_tokens: int
    licence: str
    citation: str
    reference_code: str
    notes: tuple[str, ...] = ()
    demonstration: bool = False
    trained_on: str | None = None
    C_views: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


CARD = "card.json"
# Fields that a folder's card may set; the encoder fixes all others.
_TEXTS = ("title", "C_source", "licence", "citation", "reference_code")
# Whether a field's value in a file can be used, and its conversion.
_VALID: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str) and bool(value)),
    "C": lambda value: isinstance(value, int | float) and 0 < value < float("inf"),
    "notes": lambda value: isinstance(value, list) and all(isinstance(x, str) for x in value),
    "demonstration": lambda value: isinstance(value, bool),
}
_CONVERTED: dict[str, Callable[[Any], Any]] = {"C": float, "notes": tuple}


def read_facts(facts: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Read the fields of EncoderCard from the content of a card.json.

    Args:
        path: path of the file, for messages.

    Raises: IncompatibleCheckpoint for a value that a card cannot have.
    """
    found: dict[str, Any] = {}
    for name, is_valid in _VALID.items():
        if facts.get(name) is None:
            continue
        if not is_valid(facts[name]):
            raise IncompatibleCheckpoint(f"{path}: {name} is {facts[name]!r}")
        found[name] = _CONVERTED.get(name, lambda value: value)(facts[name])
    training = facts.get("training")
    if isinstance(training, dict) and isinstance(training.get("table_sha256"), str):
        found["trained_on"] = training["table_sha256"]
    calibration = facts.get("calibration")
    if isinstance(calibration, dict) and calibration.get("C") == facts.get("C"):
        # A C that was written by hand after the measurement has unknown views.
        measured = Signature.parse(str(calibration.get("signature")))
        if views := measured.get("views"):
            found["C_views"] = views
    return found


@dataclass(frozen=True)
class PublishedFile:
    """A file by its published name, with its published checksum, if any.

    Attributes:
        also: other names that it may have.
    """

    name: str
    also: tuple[str, ...] = ()
    md5: str | None = None
    sha256: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names, the published one first."""
        return (self.name, *self.also)


@dataclass(frozen=True)
class PublishedWeights:
    """Source of a model's files; weights/cards/README.md explains the fields."""

    name: str
    status: str
    files: tuple[PublishedFile, ...]
    obtain: str
    hub: str | None = None
    revision: str | None = None
    url: str | None = None
    vocabulary: str | None = None
    is_folder: bool = False

    @property
    def source(self) -> str:
        """Return the source of the files, for messages."""
        if self.hub:
            return f"huggingface.co/{self.hub}" + (f"@{self.revision}" if self.revision else "")
        return self.url or "-"


@dataclass(frozen=True)
class CardFile:
    """Content of one card file.

    Attributes:
        variants: the card of each variant.
    """

    card: EncoderCard
    weights: PublishedWeights
    variants: dict[str, EncoderCard]


@cache
def entry_of(name: str) -> CardFile:
    """Read the card file of one encoder; `name` is the file's name.

    Raises: InvalidSetting if there is no such file.
    """
    try:
        path = resource_path("weights", "cards", f"{name}.toml")
    except FileNotFoundError:
        raise InvalidSetting(
            f"the encoder {name} has no card: write weights/cards/{name}.toml, whose fields "
            "weights/cards/README.md explains"
        ) from None
    table = _table(path)
    weights, variants = _weights(name, table), table.pop("variants", {})
    # Facts without a value are absent in the file.
    facts = {"C": None, "normalised": None} | table | {"notes": tuple(table.get("notes", ()))}
    card = EncoderCard(name=name, **facts)
    return CardFile(
        card,
        weights,
        {
            variant: replace(card, name=f"{name}:{variant}", **changes)
            for variant, changes in variants.items()
        },
    )


def _table(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        return tomllib.load(stream)


def _weights(name: str, table: dict[str, Any]) -> PublishedWeights:
    """Take the part about weights out of a card's table."""
    weights = table.pop("weights")
    files = tuple(
        PublishedFile(**file | {"also": tuple(file.get("also", ()))})
        for file in weights.pop("files", ())
    )
    return PublishedWeights(name, files=files, **weights)


def card_of(name: str, variant: str | None = None) -> EncoderCard:
    """Return the card of an encoder that ships with vlscore, or of one of its variants."""
    entry = entry_of(name)
    return entry.card if variant is None else entry.variants[variant]


@dataclass(frozen=True)
class NetworkCard:
    """Facts about a network that metrics run; weights/networks/README.md explains the fields."""

    name: str
    title: str
    licence: str
    citation: str
    metrics: tuple[str, ...]
    weights: PublishedWeights


@cache
def network_cards() -> dict[str, NetworkCard]:
    """Return the card of each network that metrics run, by name."""
    cards = {}
    for path in sorted(resource_path("weights", "networks").glob("*.toml")):
        table = _table(path)
        weights = _weights(path.stem, table)
        facts = table | {"metrics": tuple(table["metrics"])}
        cards[path.stem] = NetworkCard(path.stem, weights=weights, **facts)
    return cards


def networks_named(name: str) -> list[str]:
    """Return the network of a name, or the networks that a metric of this name runs.

    Letters' case does not matter; the list is empty where nothing has the name.
    """
    cards = network_cards()
    if named := [known for known in cards if known.lower() == name.lower()]:
        return named
    return [known for known, card in cards.items() if name.lower() in card.metrics]
