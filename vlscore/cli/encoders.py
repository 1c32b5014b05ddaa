"""Encoders and where their weights come from, in lines that no terminal of 80 columns breaks.

`vlscore encoders`: the table of cards.
"""

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vlscore.cli.output import echo
from vlscore.cli.shared import AsJson

if TYPE_CHECKING:
    from vlscore.encoders import EncoderCard, PublishedWeights

_NONE = "-"
_WIDEST = 100
_KEEP_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def cards_text(cards: "Iterable[EncoderCard]") -> str:
    """One line an encoder: what decides whether it can be used for a study."""
    headings = ("name", "dim", "unit length", "C", "pixels", "tokens", "licence")
    rows = [
        (
            card.name,
            str(card.dim),
            _yes_or_no(card.normalised),
            _constant(card.C),
            str(card.image_size),
            str(card.max_tokens),
            # The text in parentheses is part of the encoder's own card.
            "demonstration only" if card.demonstration else card.licence.partition(" (")[0],
        )
        for card in cards
    ]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)][:-1]
    left = sum(widths) + 2 * len(widths)
    lines = []
    for row in (headings, *rows):
        # Words and yes or no stand at the left, numbers at the right.
        cells = [
            text.ljust(width) if place in (0, 2) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines += _filled("  ".join(cells) + "  ", row[-1], left)
    return "\n".join(lines)


def card_text(card: "EncoderCard") -> str:
    """All that is known of one encoder, fact by fact."""
    facts = {
        name: _constant(value)
        if name == "C"
        else _yes_or_no(value)
        if isinstance(value, bool)
        else str(value)
        for name, value in card.to_dict().items()
        if name not in ("title", "notes")
    }
    lines = [card.title, *_facts(facts)]
    if card.notes:
        lines.append("  notes")
    for note in card.notes:
        lines += _filled("  - ", note, 4)
    return "\n".join(lines)


def weights_text(entry: "PublishedWeights", card: "EncoderCard", here: bool) -> str:
    """What to know of one encoder's checkpoint before downloading it."""
    facts = {
        "status": f"{entry.status}; {'found' if here else 'not found'} on this machine",
        "files": ", ".join(file.name for file in entry.files),
        "source": entry.source,
        "licence": card.licence,
        "C": "" if card.C is None else f"{card.C:g} ({card.C_source})",
        "obtain": entry.obtain,
    }
    return "\n".join([entry.name, *_facts({key: value for key, value in facts.items() if value})])


def _facts(facts: Mapping[str, str]) -> list[str]:
    width = max(map(len, facts))
    return [
        line
        for name, value in facts.items()
        for line in _filled(f"  {name:<{width}}  ", value, width + 4)
    ]


def _filled(beginning: str, text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        min(shutil.get_terminal_size().columns, _WIDEST),
        initial_indent=beginning,
        subsequent_indent=" " * indent,
        **_KEEP_WORDS,
    )


def _constant(value: float | None) -> str:
    return _NONE if value is None else f"{value:.5g}"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def encoders(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the encoders, or show everything about one.

    C is the triangle area that scores 0; "-" means that nobody published one, and --C must be
    given. An encoder whose embeddings have no unit length has areas of its own magnitude. Names
    are found in any spelling; one of your own is written package.module:Class.

    Example: vlscore encoders limitr

    Args:
        name: Show everything about this encoder.
    """
    import json

    from vlscore.encoders import encoder_card, encoder_cards

    cards = [encoder_card(name)] if name is not None else list(encoder_cards())
    if as_json:
        found = [card.to_dict() for card in cards]
        echo(json.dumps(found if name is None else found[0], indent=2))
    else:
        echo(cards_text(cards) if name is None else card_text(cards[0]))
