"""What a published encoder is, as data that travels with every score it makes.

What a folder with an encoder of one's own states about it, in card.json.

The encoders that ship with vlscore, as data: weights/cards/NAME.toml, read without torch.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from vlscore.core import resource_path
from vlscore.errors import IncompatibleCheckpoint


@dataclass(frozen=True)
class EncoderCard:
    """Facts about a joint image-report encoder.

    Attributes:
        name: the name `load_encoder` takes.
        title: the model's name as its authors print it.
        dim: length d of its global embeddings.
        normalised: whether the embeddings have unit length.
        C: the constant of VLScore (Eq. 2) for this encoder, None where nobody published one.
        C_source: what C was calibrated on, or why there is none.
        image_size: side in pixels of the square that enters the image tower.
        max_tokens: longest token sequence the report tower sees, special tokens included.
        licence: of the weights, as stated by their authors; "not stated" otherwise.
        citation: the paper.
        reference_code: the code that the embeddings were checked against.
        notes: quirks that change numbers.
        demonstration: True for the bundled encoder, which must not be used on real radiographs.
        trained_on: sha256 of the table that an encoder of one's own was trained on; else None.
    """

    name: str
    title: str
    dim: int
    normalised: bool
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


CARD = "card.json"
# What a folder may state of itself; all else is fixed by its encoder.
_TEXTS = ("title", "C_source", "licence", "citation", "reference_code")


def read_facts(facts: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The fields of EncoderCard among what a card.json says.

    Args:
        path: of the file, for messages.

    Raises: IncompatibleCheckpoint for a value that a card cannot have.
    """

    def require(held: bool, name: str) -> None:
        if not held:
            raise IncompatibleCheckpoint(f"{path}: {name} is {facts[name]!r}")

    found: dict[str, Any] = {}
    for name in set(_TEXTS) & facts.keys():
        require(isinstance(facts[name], str) and bool(facts[name]), name)
        found[name] = facts[name]
    if facts.get("C") is not None:
        C = facts["C"]
        require(isinstance(C, int | float) and 0 < C < float("inf"), "C")
        found["C"] = float(C)
    if "notes" in facts:
        notes = facts["notes"]
        require(isinstance(notes, list) and all(isinstance(note, str) for note in notes), "notes")
        found["notes"] = tuple(notes)
    if "demonstration" in facts:
        require(isinstance(facts["demonstration"], bool), "demonstration")
        found["demonstration"] = facts["demonstration"]
    training = facts.get("training")
    if isinstance(training, dict) and isinstance(training.get("table_sha256"), str):
        found["trained_on"] = training["table_sha256"]
    return found


@dataclass(frozen=True)
class PublishedFile:
    """A file by its published name, and its checksums where its authors state them.

    Attributes:
        also: other names under which it is found.
    """

    name: str
    also: tuple[str, ...] = ()
    md5: str | None = None
    sha256: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the published one first."""
        return (self.name, *self.also)


@dataclass(frozen=True)
class PublishedWeights:
    """Where an encoder's checkpoint comes from; weights/cards/README.md explains the fields."""

    name: str
    status: str
    files: tuple[PublishedFile, ...]
    obtain: str
    hub: str | None = None
    revision: str | None = None
    url: str | None = None
    vocabulary: str | None = None

    @property
    def source(self) -> str:
        """Where the files come from, for people."""
        if self.hub:
            return f"huggingface.co/{self.hub}" + (f"@{self.revision}" if self.revision else "")
        return self.url or "-"


@dataclass(frozen=True)
class Entry:
    """All that one file says.

    Attributes:
        variants: the card of each variant.
    """

    card: EncoderCard
    weights: PublishedWeights
    variants: dict[str, EncoderCard]


@cache
def entry_of(name: str) -> Entry:
    """What the file of one encoder says; `name` as its file is called."""
    with resource_path("weights", "cards", f"{name}.toml").open("rb") as stream:
        table: dict[str, Any] = tomllib.load(stream)
    weights, variants = table.pop("weights"), table.pop("variants", {})
    # Facts without a value are absent in the file.
    facts = {"C": None} | table | {"notes": tuple(table.get("notes", ()))}
    card = EncoderCard(name=name, **facts)
    files = tuple(
        PublishedFile(**file | {"also": tuple(file.get("also", ()))})
        for file in weights.pop("files", ())
    )
    return Entry(
        card,
        PublishedWeights(name, files=files, **weights),
        {
            variant: replace(card, name=f"{name}:{variant}", **changes)
            for variant, changes in variants.items()
        },
    )


def card_of(name: str, variant: str | None = None) -> EncoderCard:
    """The card of an encoder that ships with vlscore, or of one of its variants."""
    entry = entry_of(name)
    return entry.card if variant is None else entry.variants[variant]
