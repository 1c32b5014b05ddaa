"""Reports in the order and the groups in which a network reads them."""

from collections.abc import Iterator, Sequence

# Tokens of a group, padding included: enough to fill a processor, little enough for any memory.
TOKENS_AT_ONCE = 4096


def groups_of_like_length(
    lengths: Sequence[int], tokens: int = TOKENS_AT_ONCE
) -> Iterator[list[int]]:
    """Positions of reports, those of like length together, so that little is padded.

    Args:
        lengths: tokens of each report.
        tokens: of a group at most, each report counted with the length of the longest.

    >>> list(groups_of_like_length([3, 9, 2, 8], tokens=18))
    [[2, 0], [3, 1]]
    """
    group: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda p: (lengths[p], p)):
        # In ascending order each report is the longest of its group so far.
        if group and (len(group) + 1) * lengths[position] > tokens:
            yield group
            group = []
        group.append(position)
    if group:
        yield group
