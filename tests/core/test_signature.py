"""Signatures as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.core import Signature, difference
from vlscore.errors import InvalidSetting

WORDS = st.text("abcXYZ0123.@-+= ", min_size=1, max_size=8)
FACTS = st.dictionaries(WORDS, st.none() | WORDS, max_size=5).map(lambda d: tuple(d.items()))


@given(WORDS, FACTS)
def test_printed_and_parsed_is_the_same(subject, facts):
    signature = Signature(subject, facts)
    assert Signature.parse(str(signature)) == signature
    assert hash(Signature.parse(str(signature))) == hash(signature)


def test_facts_are_added_replaced_and_left_out():
    base = Signature("a").plus(C=1.5, txt="all", nothing=None)
    assert str(base) == "a|C:1.5|txt:all"
    assert str(base.plus(C=2.0)) == "a|C:2|txt:all"
    assert str(base.plus({"on": True}).without("C")) == "a|txt:all|on:true"
    assert str(base.plus(Signature("b").plus(v="1"))) == "a|C:1.5|txt:all|v:1"
    assert base.of("z").subject == "z"
    assert base.flagged("F").has("F")
    assert base.flagged("F").get("F") is None
    assert base.get("txt") == "all"
    assert str(base.flagged("F").plus(v="1").plus(Signature("b", (("G", None),)))) == (
        "a|C:1.5|txt:all|v:1|F|G"
    )


def test_what_would_not_parse_is_refused():
    for text in ("a|b", "a\nb"):
        with pytest.raises(InvalidSetting):
            Signature(text)
        with pytest.raises(InvalidSetting):
            Signature("a").plus(k=text)


def test_differences_are_named():
    one = Signature("m").plus(C=1.0, txt="all")
    assert difference(one, one) == ""
    assert difference(one, one.without("txt").flagged("F").plus(C=2.0)) == (
        "C: 1 against 2; txt: all against nothing; F: nothing against yes"
    )
    assert difference(one, one.of("n")) == "of: m against n"
