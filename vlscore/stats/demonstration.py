"""Mark, in captions and figures, of numbers from the demonstration encoder."""

from collections.abc import Iterable
from dataclasses import replace

from vlscore.stats.tables import TextTable

DEMONSTRATION = "demonstration encoder: no statement about real radiographs"


def is_demonstration(signatures: Iterable[object]) -> bool:
    """Return True if one of these signatures names the demonstration encoder."""
    return any("DEMONSTRATION" in str(signature) for signature in signatures)


def with_mark(tables: Iterable[TextTable], signatures: Iterable[object]) -> list[TextTable]:
    """Return the tables, with a caption if a signature names the demonstration encoder.

    In LaTeX a signature is in a comment, which a printed page does not show.
    """
    if not is_demonstration(signatures):
        return list(tables)
    said = f"Made with the {DEMONSTRATION}."
    return [
        replace(table, caption=" ".join(filter(None, (table.caption, said)))) for table in tables
    ]
