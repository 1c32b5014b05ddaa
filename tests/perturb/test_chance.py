"""Choices that stay the same for ever, and are fair."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vlscore.perturb import Chance


def test_the_stream_never_changes():
    """Data sets that were made once are made again, so these numbers are part of the format."""
    chance = Chance(0, "s1", "paraphrase")
    assert [chance.below(10) for _ in range(12)] == [2, 5, 6, 9, 9, 5, 7, 5, 8, 4, 6, 6]
    chance = Chance(7, "s1")
    assert "".join(chance.shuffled("abcdef")) == "fadceb"


@given(st.integers(), st.text(), st.integers(1, 10**9))
def test_below_is_in_range(seed, name, count):
    assert 0 <= Chance(seed, name).below(count) < count


def test_choices_are_fair():
    chance = Chance("fair")
    picked = Counter(chance.pick("abcd") for _ in range(4_000))
    orders = Counter("".join(chance.shuffled("abc")) for _ in range(6_000))
    # Six standard deviations around 1000 of each.
    assert all(abs(count - 1_000) < 6 * 29 for count in (*picked.values(), *orders.values()))
    assert (len(picked), len(orders)) == (4, 6)
