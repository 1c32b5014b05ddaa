"""ROUGE-L against a longest common subsequence of our own and pycocoevalcap's formula."""

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.errors import InvalidSetting
from vlscore.metrics import compute

TEXT = st.lists(
    st.sampled_from(["No", "effusion,", "left", "small", "heart.", "1.5"]), max_size=12
).map(" ".join)


def _longest_common(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    @cache
    def longest(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        if a[i] == b[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


@pytest.mark.parametrize("beta", [1.0, 1.2])
@given(candidate=TEXT, reference=TEXT)
def test_is_the_f_measure_of_the_longest_common_subsequence(beta, candidate, reference):
    name = "rouge-l" if beta == 1 else f"rouge-l(beta={beta})"
    value = compute([name], [candidate], [reference])[name][0]
    g, r = (tuple(re.findall("[a-z0-9]+", text.lower())) for text in (candidate, reference))
    common = _longest_common(g, r)
    if not common:
        assert value == 0
        return
    precision, recall = common / len(g), common / len(r)
    expected = (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
    assert value == pytest.approx(expected, rel=1e-12)


def test_stemming_joins_forms_of_a_word():
    plain = compute(["rouge-l"], ["effusions"], ["effusion"])["rouge-l"]
    stemmed = compute(["rouge-l(stemming=true)"], ["effusions"], ["effusion"])
    assert plain.tolist() == [0.0]
    assert stemmed["rouge-l(stemming=true)"].tolist() == [1.0]


@pytest.mark.parametrize("beta", [1.0, 1.2])
@given(candidate=TEXT, reference=TEXT)
def test_with_words_at_blanks_periods_and_commas_count(beta, candidate, reference):
    name = "rouge-l(tokens=blanks)" if beta == 1 else f"rouge-l(beta={beta},tokens=blanks)"
    value = compute([name], [candidate], [reference])[name][0]
    g, r = (tuple(text.lower().split()) for text in (candidate, reference))
    common = _longest_common(g, r)
    if not common:
        assert value == 0
        return
    precision, recall = common / len(g), common / len(r)
    expected = (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
    assert value == pytest.approx(expected, rel=1e-12)


def test_stemming_is_of_the_other_tokens():
    with pytest.raises(InvalidSetting, match="stems words"):
        compute("rouge-l(stemming=true,tokens=blanks)", ["a"], ["a"])
