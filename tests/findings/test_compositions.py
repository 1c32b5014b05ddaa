"""Rules that are rows of tables: each row's example is its test; patterns are checked."""

from dataclasses import replace

import pytest

from vlscore.errors import InvalidLexicon
from vlscore.findings import changes_of, extract, load_lexicon
from vlscore.findings.compositions import Composition, pattern_rules

RULES = [
    (table, head, rule)
    for table, heads in load_lexicon().rules.items()
    for head, rules in heads.items()
    for rule in rules
]


def reading(text, lexicon):
    found = extract(text, lexicon)
    return found.sentences, changes_of(found)


@pytest.mark.parametrize(("table", "head", "rule"), RULES, ids=[r.row.pattern for *_, r in RULES])
def test_a_row_makes_a_difference_in_its_example(table, head, rule):
    """Without the row, the example is read otherwise; with it, in the way that the row states."""
    lexicon = load_lexicon()
    heads = lexicon.rules[table]
    without = {**heads, head: [each for each in heads[head] if each != rule]}
    ablated = replace(lexicon, rules={**lexicon.rules, table: without})
    sentences, changes = reading(rule.row.example, lexicon)
    assert (sentences, changes) != reading(rule.row.example, ablated)
    if table in ("context", "taken_up", "degree"):
        return
    stated = {a.value for sentence in sentences for a in sentence.changes}
    if table == "amount":
        assert stated or rule.row.value == "none"
        return
    if rule.row.value == "none":
        before = {
            a.value for sentence in reading(rule.row.example, ablated)[0] for a in sentence.changes
        }
        assert stated < before
    elif rule.row.value:
        assert rule.row.value in stated
    else:
        assert stated


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(becomming <comparative>)", "no list becomming"),
        ("<comparatives>", "no list comparatives"),
        ("<comparative:!verbs>", "no list verbs"),
        ("becoming ..3", "has no head"),
    ],
)
def test_a_pattern_with_a_misspelt_name_is_refused(pattern, message):
    with pytest.raises(InvalidLexicon, match=message):
        pattern_rules([Composition(pattern, "An example.")], load_lexicon().lists, ())
