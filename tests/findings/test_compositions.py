"""Rules that are rows of tables: each row's example is its test; patterns are checked."""

import re
from dataclasses import replace

import pytest

from vlscore.errors import InvalidLexicon
from vlscore.findings import changes_of, extract, load_lexicon
from vlscore.findings.compositions import Composition, pattern_rules
from vlscore.findings.lexicon_files import read_tables

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


def test_a_run_stands_for_its_pattern_but_not_inside_quotes():
    lists, runs = load_lexicon().lists, {"slow": "adverb|'a little'"}
    named, written = (
        pattern_rules([Composition(pattern, "An example.")], lists, (), runs)["'slow'"][0]
        for pattern in ("slow* <'slow'>", "adverb|'a little'* <'slow'>")
    )
    assert named[1:] == written[1:]


def test_every_run_is_shared_by_patterns_and_is_no_list():
    tables = [read_tables()[name] for name in ("change", "context")]
    runs = {name: pattern for table in tables for name, pattern in table["runs"].items()}
    patterns = [rule.row.pattern for *_, rule in RULES] + list(runs.values())
    for name in runs:
        assert name not in load_lexicon().lists
        assert sum(name in re.findall("[a-z_]+", pattern) for pattern in patterns) > 1, name
