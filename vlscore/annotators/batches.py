"""Reports in the order and the groups in which a network reads them."""

from collections.abc import Iterator, Sequence

# Tokens of a group, padding included. More of them leave a processor's caches, and gain nothing;
# a GPU needs many to be busy.
_TOKENS_AT_ONCE = {"cpu": 512}
_TOKENS_OF_OTHERS = 16384
# Share of a group that may be padding.
_MOST_PADDING = 1 / 8


def groups_of_like_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Positions of reports, those of like length together, so that little is padded.

    Args:
        lengths: tokens of each report.
        tokens: of a group at most, each report counted with the length of the longest.

    >>> list(groups_of_like_length([8, 40, 7, 39], tokens=80))
    [[2, 0], [3, 1]]
    """
    group: list[int] = []
    held = 0
    for position in sorted(range(len(lengths)), key=lambda p: (lengths[p], p)):
        # In ascending order each report is the longest of its group so far.
        held += lengths[position]
        padded = (len(group) + 1) * lengths[position]
        if group and (padded > tokens or padded - held > _MOST_PADDING * padded):
            yield group
            group, held = [], lengths[position]
        group.append(position)
    if group:
        yield group


def tokens_at_once(device: str) -> int:
    """How many tokens a kind of device, such as "cpu" or "cuda", is given at a time."""
    return _TOKENS_AT_ONCE.get(device, _TOKENS_OF_OTHERS)
