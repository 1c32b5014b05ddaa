"""`vlscore encoders`: the table of encoder cards, or one card."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vlscore.cli.output import AsJson, echo, print_json, terminal_width

if TYPE_CHECKING:
    from vlscore.encoders import EncoderCard

_WIDEST = 100


def cards_text(cards: "Iterable[EncoderCard]") -> str:
    """Return a table with a row for each encoder: what decides whether a study can use it."""
    from vlscore.stats import text_table

    rows = [
        {
            "name": card.name,
            "dim": str(card.dim),
            "unit length": _cell(card.normalised),
            "C": "-" if card.C is None else f"{card.C:.5g}",
            "pixels": str(card.image_size),
            "tokens": str(card.max_tokens),
            # The text in parentheses is part of the encoder's own card.
            "licence": "demonstration only"
            if card.demonstration
            else card.licence.partition(" (")[0],
        }
        for card in cards
    ]
    return text_table("", rows).text(terminal_width())


def facts_text(title: str, facts: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """Return a title, facts by name, and notes, in lines that fit the terminal."""
    indent = max(map(len, facts)) + 4
    lines = [title]
    for name, value in facts.items():
        lines += _wrapped(f"  {name}".ljust(indent), _cell(value), indent)
    for note in notes:
        lines += _wrapped("  - ", note, 4)
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "by style" if value is None else str(value)


def _wrapped(beginning: str, text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        min(terminal_width(), _WIDEST),
        initial_indent=beginning,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def encoders(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the encoders, or show everything about one.

    C is the triangle area that scores 0; "-" means that none was published, so that --C must be
    given. If embeddings do not have unit length, the size of areas depends on the encoder. Names
    may be written in any spelling; an encoder of your own is package.module:Class.

    Example: vlscore encoders limitr

    Args:
        name: Show everything about this encoder.
    """
    from vlscore.encoders import encoder_card, encoder_cards

    if name is None:
        cards = list(encoder_cards())
        if as_json:
            print_json([card.to_dict() for card in cards])
        else:
            echo(cards_text(cards))
        return
    facts = encoder_card(name).to_dict()
    if as_json:
        print_json(facts)
        return
    title, notes = facts.pop("title"), facts.pop("notes")
    known = {n: x for n, x in facts.items() if x is not None or n == "normalised"}
    echo(facts_text(title, known, notes))
