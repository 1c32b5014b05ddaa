"""Tables of encoders and of where their weights come from."""

import textwrap
from collections.abc import Iterable
from typing import Any

from rich.table import Table

from vlscore.encoders.card import EncoderCard
from vlscore.encoders.weights import PublishedWeights

_NONE = "-"
_KEEP_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def cards_table(cards: Iterable[EncoderCard]) -> Table:
    """One row an encoder: what decides whether it can be used for a study."""
    table = Table(title="Encoders", title_justify="left")
    for heading, side in (
        ("name", "left"),
        ("dim", "right"),
        ("normalised", "left"),
        ("C", "right"),
        ("pixels", "right"),
        ("tokens", "right"),
        ("licence of the weights", "left"),
    ):
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for card in cards:
        table.add_row(
            f"{card.name} (demonstration)" if card.demonstration else card.name,
            str(card.dim),
            _yes_or_no(card.normalised),
            _constant(card.C),
            str(card.image_size),
            str(card.max_tokens),
            card.licence,
        )
    return table


def card_table(card: EncoderCard) -> Table:
    """All that is known of one encoder, a fact a row."""
    table = Table(title=card.title, title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in card.to_dict().items():
        if fact == "C":
            table.add_row(fact, _constant(card.C))
        elif isinstance(value, bool):
            table.add_row(fact, _yes_or_no(value))
        elif fact == "notes":
            table.add_row(fact, "\n".join(f"• {note}" for note in card.notes) or _NONE)
        else:
            table.add_row(fact, str(value))
    return table


def weights_text(entry: PublishedWeights, here: bool) -> str:
    """What to know of one encoder's checkpoint before downloading it."""
    facts = {
        "status": f"{entry.status}; {'found' if here else 'not found'} on this machine",
        "files": ", ".join(file.name for file in entry.files),
        "source": entry.source,
        "licence": entry.licence,
        "C": "" if entry.C is None else f"{entry.C:g} ({entry.calibrated_on})",
        "obtain": entry.obtain,
    }
    lines = [
        textwrap.fill(
            value, 100, initial_indent=f"  {fact:<9}", subsequent_indent=" " * 11, **_KEEP_WORDS
        )
        for fact, value in facts.items()
        if value
    ]
    return "\n".join([entry.name, *lines])


def _constant(value: float | None) -> str:
    return _NONE if value is None else f"{value:g}"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
