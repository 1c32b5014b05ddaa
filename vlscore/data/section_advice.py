"""What to tell a user whose references are scored with their headings."""


def headings_note(count: int, total: int) -> tuple[str, ...]:
    """Return a sentence where some of the references have headings and are scored whole."""
    if not count:
        return ()
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {total} references {have} headings, and are scored whole, indication and "
        "headings included; --reference-section findings scores the findings alone",
    )
