"""What a folder with an encoder of one's own states about it, in card.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore.errors import IncompatibleCheckpoint

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
    return found
