"""Entries of TOML tables as tuples: what is absent, unknown or of another type is named."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import pytest

from vlscore.core import entries_of, entry_of, read_table
from vlscore.errors import InvalidLexicon


class Part(NamedTuple):
    side: Literal["left", "right"]


class Kind(NamedTuple):
    name: str
    words: frozenset[str]
    grades: tuple[int, int]
    weight: float = 1.0
    pattern: re.Pattern[str] | None = None
    parts: tuple[Part, ...] = ()
    of: Mapping[str, tuple[str, ...]] = {}


GOOD = {"name": "nodule", "words": ["a", "b"], "grades": [1, 2]}


def test_fields_have_the_types_of_the_tuple():
    more = {"weight": 2, "pattern": ["old", "prior"], "parts": [{"side": "left"}]}
    found = entry_of(Kind, GOOD | more | {"of": {"x": ["y"]}}, "file.toml")
    assert found[:4] == ("nodule", frozenset("ab"), (1, 2), 2.0)
    assert type(found.weight) is float
    assert found.pattern.search("An older film")
    assert found.parts == (Part("left"),)
    assert found.of == {"x": ("y",)}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD | {"wieght": 2}, r"^file\.toml: 'nodule' has an unknown key wieght; known: name, wo"),
        ({"name": "nodule", "grades": [1, 2]}, r"^file\.toml: 'nodule' lacks words$"),
        (GOOD | {"weight": "2"}, r"^file\.toml: 'nodule', weight: '2' is no float$"),
        (GOOD | {"grades": [1, True]}, "'nodule', grades: True is no int"),
        (GOOD | {"grades": [1]}, "it needs 2 values"),
        (GOOD | {"words": "ab"}, "'ab' is no frozenset"),
        (GOOD | {"parts": [{"side": "up"}]}, "it is one of 'left', 'right', not 'up'"),
        (GOOD | {"parts": [{"sides": "left"}]}, "has an unknown key sides"),
    ],
)
def test_a_wrong_entry_is_named(table, message):
    with pytest.raises(InvalidLexicon, match=message):
        entries_of(Kind, [table], "file.toml")


def test_an_absent_table_is_named(tmp_path):
    (tmp_path / "words.toml").write_text("[here]\n")
    table = read_table(tmp_path / "words.toml")
    assert table["here"] == {}
    with pytest.raises(InvalidLexicon, match=r"^words\.toml lacks there$"):
        table["there"]
