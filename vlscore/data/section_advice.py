"""Advice to a user whose references are scored with their headings."""


def headings_note(count: int, total: int) -> tuple[str, ...]:
    """Return a note if some references have headings and are scored whole; else nothing."""
    if not count:
        return ()
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {total} references {have} headings, and are scored whole, indication and "
        "headings included; --reference-section findings scores the findings alone",
    )
