"""The one table of a comparison: columns, best values, ties, families of tests."""

from itertools import combinations

import pytest

from vlscore.errors import InvalidSetting
from vlscore.evaluation import TableSettings, paper_table

SYSTEMS = ["x", "y", "z"]


def _measured(name, metric, values, *, headline, higher=True, corpus=False, title=""):
    intervals = {
        s: {"estimate": v, "low": v - 0.02, "high": v + 0.04}
        for s, v in zip(SYSTEMS, values, strict=True)
    }
    return {
        "name": name,
        "metric": metric,
        "title": title or name,
        "values": intervals,
        "count": 8,
        "higher_is_better": higher,
        "is_headline": headline,
        "of_corpus": corpus,
    }


def _tested(name, values, p_values, pairs=None):
    pairs = pairs or list(combinations(range(3), 2))
    return [
        {
            "name": name,
            "first": SYSTEMS[a],
            "second": SYSTEMS[b],
            "p_value": p,
            "difference": {
                "estimate": values[a] - values[b],
                "low": values[a] - values[b] - (0.01 if p < 0.05 else 1),
                "high": values[a] - values[b] + (0.01 if p < 0.05 else 1),
            },
        }
        for (a, b), p in zip(pairs, p_values, strict=True)
    ]


GOOD, LOW, SUB = (0.5, 0.4, 0.3), (1.0, 2.0, 3.0), (0.9, 0.6, 0.7)


@pytest.fixture
def content():
    return {
        "systems": SYSTEMS,
        "against": None,
        "measured": [
            _measured("bleu-4", "bleu-4", SUB, headline=False, title="BLEU-4 (mean)"),
            _measured("bleu-4 corpus", "bleu-4", GOOD, headline=True, corpus=True, title="BLEU-4"),
            _measured("radcliq-v1", "radcliq-v1", LOW, headline=True, higher=False),
        ],
        "tested": [
            *_tested("bleu-4", SUB, (0.5, 0.6, 0.7)),
            *_tested("bleu-4 corpus", GOOD, (0.2, 0.001, 0.3)),
            *_tested("radcliq-v1", LOW, (0.001, 0.001, 0.02)),
        ],
        "signatures": {"bleu-4": "bleu-4|v:1", "radcliq-v1": "radcliq-v1|v:1"},
    }


def test_headlines_with_direction_best_and_ties(content):
    table = paper_table(content)
    assert table.columns == ("system", "BLEU-4 ↑", "radcliq-v1 ↓")
    assert table.rows[0] == ("x", "0.500", "1.000")
    assert table.best == ((0, 1), (0, 2))
    # y and x do not differ in BLEU-4; z and x do.
    assert table.signs == (("", "", ""), ("", "†", ""), ("", "", ""))
    assert "over the 6 tests of this table" in table.caption
    assert "n = 8 studies; BLEU-4: values of the whole corpus" in table.caption
    assert table.notes == ("bleu-4|v:1", "radcliq-v1|v:1")


def test_letters_are_shared_by_systems_that_do_not_differ(content):
    table = paper_table(content, TableSettings(ties="letters", systems_as_rows=False))
    assert table.columns == ("metric", "x", "y", "z")
    assert table.signs == (("", "a", "ab", "b"), ("", "a", "b", "c"))
    for each, signs in zip(content["measured"][1:], table.signs, strict=True):
        shown = dict(zip(SYSTEMS, signs[1:], strict=True))
        for test in content["tested"]:
            if test["name"] == each["name"]:
                shares = bool(set(shown[test["first"]]) & set(shown[test["second"]]))
                assert shares is (test["p_value"] > 0.05)


def test_the_family_decides_what_is_significant(content):
    """0.02 is significant among the 6 tests of the headlines, and not among 200 more."""
    more = _tested("bleu-4", SUB, (0.9, 0.9, 0.9)) * 67
    content["tested"] += [{**test, "name": f"label {k}"} for k, test in enumerate(more)]
    content["tested"][6:9] = _tested("radcliq-v1", LOW, (0.01, 0.02, 0.02))
    shown = paper_table(content, TableSettings(columns=("radcliq-v1",)))
    every = paper_table(content, TableSettings(columns=("radcliq-v1",), family="all"))
    assert not shown.signs
    assert [row[1] for row in every.signs] == ["", "†", "†"]
    assert "over the 3 tests of this table" in shown.caption
    assert "over the 210 tests of the comparison" in every.caption


def test_where_interval_and_test_disagree_no_difference_is_shown(content):
    for test in content["tested"]:
        test["difference"] |= {"low": -1.0, "high": 1.0}
    assert [row[2] for row in paper_table(content).signs] == ["", "†", "†"]


def test_against_one_system(content):
    content["against"] = "y"
    content["tested"] = [t for t in content["tested"] if "y" in (t["first"], t["second"])]
    table = paper_table(content)
    assert [row[1] for row in table.signs] == ["†", "", "†"]
    assert "not significantly different from y" in table.caption
    with pytest.raises(InvalidSetting, match="only y was tested"):
        paper_table(content, TableSettings(ties="letters"))


def test_columns_digits_and_intervals(content):
    def rows(**settings):
        return paper_table(content, TableSettings(**settings)).rows

    assert rows(columns=("bleu-4.mean",), digits=1)[0] == ("x", "0.9")
    assert len(rows(columns=("all",))[0]) == 4
    assert rows(columns=("bleu-4", "bleu-4 corpus"))[0] == ("x", "0.500")
    assert rows(intervals="half")[1] == ("y", "0.400 ± 0.030", "2.000 ± 0.030")
    assert rows(intervals="below", digits=2)[:2] == (
        ("x", "0.50", "1.00"),
        ("", "[0.48, 0.54]", "[0.98, 1.04]"),
    )
    with pytest.raises(InvalidSetting, match="no number 'blue-4'; it has bleu-4"):
        rows(columns=("blue-4",))
    with pytest.raises(InvalidSetting, match="ties is one of sign, letters, none"):
        TableSettings(ties="stars")


def test_csv_is_numbers_and_html_is_escaped(content):
    content["systems"] = ["<b>x", "y", "z"]
    for each in content["measured"]:
        each["values"]["<b>x"] = each["values"].pop("x")
    for test in content["tested"]:
        test["first"] = test["first"].replace("x", "<b>x")
    table = paper_table(content)
    assert table.csv().splitlines()[1] == "<b>x,0.500,1.000"
    assert "&lt;b&gt;x" in table.html()
    assert "<b>0.500</b>" in table.html()
    assert "0.400<sup>†</sup>" in table.html()
    assert "**0.500**" in table.markdown()
    assert "0.500*" in table.text()
