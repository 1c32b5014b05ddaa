"""The encoders that ship with vlscore, as data: weights/cards/NAME.toml, read without torch."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from vlscore._resources import resource_path
from vlscore.encoders.card import EncoderCard


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
