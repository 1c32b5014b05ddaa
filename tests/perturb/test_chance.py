"""Choices that stay the same for ever, and are fair."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.perturb import Chance


def test_the_stream_never_changes():
    """Data sets that were made once are made again, so these numbers are part of the format."""
    chance = Chance(0, "s1", "paraphrase")
    assert [chance.below(10) for _ in range(12)] == [2, 5, 6, 9, 9, 5, 7, 5, 8, 4, 6, 6]
    chance = Chance(7, "s1")
    assert "".join(chance.shuffled("abcdef")) == "fadceb"


@pytest.mark.parametrize("other", [(1, "a", "b"), (0, "ab", ""), (0, "", "ab"), (0, "a", "b", "")])
def test_another_key_is_another_stream(other):
    one, two = Chance(0, "a", "b"), Chance(*other)
    assert [one.below(1000) for _ in range(8)] != [two.below(1000) for _ in range(8)]


def test_any_text_is_a_key():
    assert Chance(0, "\ud800").below(2) in (0, 1)
    assert Chance(-5, "Ärzte", None).below(1) == 0


@given(st.integers(), st.text(), st.integers(1, 10**9))
def test_below_is_in_range(seed, name, count):
    assert 0 <= Chance(seed, name).below(count) < count


@given(st.integers(), st.lists(st.integers()))
def test_shuffling_keeps_what_is_shuffled(seed, options):
    assert Counter(Chance(seed).shuffled(options)) == Counter(options)


def test_choices_are_fair():
    chance = Chance("fair")
    picked = Counter(chance.pick("abcd") for _ in range(4_000))
    orders = Counter("".join(chance.shuffled("abc")) for _ in range(6_000))
    # Six standard deviations around 1000 of each.
    assert all(abs(count - 1_000) < 6 * 29 for count in (*picked.values(), *orders.values()))
    assert (len(picked), len(orders)) == (4, 6)
