"""Where the findings of a study are: by the boxes of its table, or by side and zone of a report."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.core import first_of, with_noun
from vlscore.evaluation.audit.alterations import Box, joined
from vlscore.findings import extract

#: Sides and zones of a finding.
Place = tuple[tuple[str, ...], tuple[str, ...]]


def places_of(report: str) -> dict[str, Place]:
    """Return observation -> all sides and zones on which a report states it as present.

    No side or no zone means all of them. A sentence that names neither says nothing of the place
    where another one names it.

    >>> places_of("Small left effusion, large right effusion. Effusions are new.")
    {'pleural_effusion': (('left', 'right'), ())}
    """
    mentions: dict[str, list[Place]] = {}
    for found in extract(report).present:
        mentions.setdefault(found.observation, []).append((found.sides, found.zones))
    return {
        name: _union([place for place in places if any(place)] or places)
        for name, places in mentions.items()
    }


def _union(places: Sequence[Place]) -> Place:
    sides, zones = (
        tuple(dict.fromkeys(each for names in own for each in names)) if all(own) else ()
        for own in zip(*places, strict=True)
    )
    return sides, zones


def boxes_of(cell: Any, unread: Counter[str]) -> dict[str, tuple[Box, ...]]:
    """Return observation -> its boxes; those that overlap are one.

    Args: unread: labels that name no finding are counted here.
    """
    found: dict[str, list[Box]] = {}
    rows = json.loads(cell) if isinstance(cell, str) and cell.strip() else cell or ()
    for row in rows:
        if isinstance(row, Mapping):
            row = [row[name] for name in ("finding", "x", "y", "width", "height")]
        label, x, y, width, height = row
        left, top = float(x), float(y)
        box = Box(round(left), round(top), round(left + float(width)), round(top + float(height)))
        names = {each.observation for each in extract(f"{label}.").present}
        unread.update([label] if not names else [])
        for name in names:
            found.setdefault(name, []).append(box)
    return {name: joined(boxes) for name, boxes in found.items()}


def unread_note(unread: Counter[str]) -> list[str]:
    """Return a note on boxes whose labels name no finding."""
    if not unread:
        return []
    total = with_noun(unread.total(), "box label")
    return [f"{total} left out, because no finding has this name: {most_frequent(unread)}"]


def most_frequent(counts: Counter[str]) -> str:
    """Return the most frequent names with their counts, for a note.

    >>> most_frequent(Counter(["edema", "mass", "edema"]))
    'edema (2), mass (1)'
    """
    return first_of([f"{name} ({count})" for name, count in counts.most_common()])
