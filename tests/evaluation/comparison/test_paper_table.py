"""The one table of a comparison: columns, best values, ties; and its figures."""

import pandas as pd
import pytest

from tests.evaluation.golden_tables import text_tables
from tests.evaluation.samples import compare
from vlscore.core import frame
from vlscore.errors import InvalidSetting
from vlscore.evaluation import TableSettings, paper_table
from vlscore.metrics import Scorer
from vlscore.stats import Content, Interval, Result

SYSTEMS = ["x", "y", "z"]
GOOD, LOW, MEANS = (0.5, 0.4, 0.3), (1.0, 2.0, 3.0), (0.9, 0.6, 0.7)


def number(name, of, values, *, primary=True, higher=True, corpus=False, title=""):
    return [
        {
            "metric": name,
            "of": of,
            "title": title or name,
            "primary": primary,
            "of_corpus": corpus,
            "higher_is_better": higher,
            "n": 8,
            "system": system,
            "value": Interval(v, v - 0.02, v + 0.04),
        }
        for system, v in zip(SYSTEMS, values, strict=True)
    ]


def differences_in(name, values, p_values):
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = []
    for (a, b), p in zip(pairs, p_values, strict=True):
        apart, width = values[a] - values[b], 0.01 if p < 0.05 else 1
        interval = Interval(apart, apart - width, apart + width)
        names = {"first": SYSTEMS[a], "second": SYSTEMS[b]}
        found.append({"metric": name, **names, "p": p, "difference": interval})
    return found


@pytest.fixture
def made(tmp_path):
    """Make the result of a comparison of three systems."""

    def make(against=None, change=lambda test: test):
        measured = [
            *number("bleu-4", "bleu-4", MEANS, primary=False, title="BLEU-4 (mean)"),
            *number("bleu-4 corpus", "bleu-4", GOOD, corpus=True, title="BLEU-4"),
            *number("radcliq-v1", "radcliq-v1", LOW, higher=False),
        ]
        tested = [
            *differences_in("bleu-4", MEANS, (0.5, 0.6, 0.7)),
            *differences_in("bleu-4 corpus", GOOD, (0.2, 0.001, 0.3)),
            *differences_in("radcliq-v1", LOW, (0.001, 0.001, 0.02)),
        ]
        if against is not None:
            tested = [t for t in tested if against in (t["first"], t["second"])]
        frames = {"systems": frame(measured), "differences": frame(map(change, tested))}
        signatures = {"bleu-4": "bleu-4|v:1", "radcliq-v1": "radcliq-v1|v:1"}
        content = Content(frames, signatures=signatures)
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        return Result.make(out, {"against": against}, lambda path: content)

    return make


def test_primary_numbers_with_direction_best_and_ties(made):
    table = paper_table(made())
    assert table.columns == ("system", "BLEU-4 ↑", "radcliq-v1 ↓")
    assert table.rows[0] == ("x", "0.500", "1.000")
    assert table.best == ((0, 1), (0, 2))
    # y and x do not differ in BLEU-4; z and x do.
    assert table.signs == (("", "", ""), ("", "†", ""), ("", "", ""))
    assert "over 6 tests of this table" in table.caption
    assert "n = 8 studies; BLEU-4: values of the whole corpus" in table.caption
    assert table.notes == ("bleu-4|v:1|level:corpus", "radcliq-v1|v:1|level:report")
    assert "**0.500**" in table.markdown()


def test_where_interval_and_test_disagree_no_difference_is_shown(made):
    def disagree(test):
        return {**test, "difference": Interval(test["difference"].estimate, -1.0, 1.0)}

    assert [row[2] for row in paper_table(made(change=disagree)).signs] == ["", "†", "†"]


def test_against_one_system(made):
    table = paper_table(made(against="y"))
    assert [row[1] for row in table.signs] == ["†", "", "†"]
    assert "not significantly different from y" in table.caption
    assert "and a 95 % interval of the difference without 0." in table.caption


def test_a_sign_that_the_table_does_not_have_is_not_explained(made):
    table = paper_table(made(), TableSettings(columns=("radcliq-v1",)))
    assert not table.signs
    assert "†" not in table.caption
    assert "The others are significantly different from the best. " in table.caption
    assert "over 3 tests of this table" in table.caption


def test_what_was_not_tested_against_the_best_is_marked(made):
    """Without a test nothing is known of a difference: a cell without a sign would claim one."""
    table = paper_table(made(change=lambda t: {**t, "p": t["p"] if t["second"] == "y" else None}))
    # x is best under both; only its differences from y were tested.
    assert [row[1:] for row in table.signs] == [("", ""), ("†", ""), ("‡", "‡")]
    assert table.caption.endswith("‡: not tested against it, as two baselines never are.")
    assert "‡" not in paper_table(made()).caption
    assert "over 2 tests" in table.caption


def test_equal_best_values_have_no_sign(tmp_path):
    measured = number("rouge-l", "rouge-l", (0.0, 0.0, 0.0))
    tested = differences_in("rouge-l", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    frames = {"systems": frame(measured), "differences": frame(tested)}
    result = Result.make(tmp_path, {"against": None}, lambda path: Content(frames))
    table = paper_table(result)
    # None of equal systems is the best.
    assert not table.best
    assert not table.signs
    assert "†" not in table.caption
    assert "different" not in table.caption


def test_columns_digits_and_intervals(made):
    result = made()

    def rows(**settings):
        return paper_table(result, TableSettings(**settings)).rows

    assert rows(columns=("bleu-4.mean",), digits=1)[0] == ("x", "0.9")
    assert len(rows(columns=("all",))[0]) == 4
    assert rows(columns=("bleu-4", "bleu-4 corpus"))[0] == ("x", "0.500")
    shown = rows(columns=("bleu-4",), intervals=True, digits=2)
    assert shown[0] == ("x", "0.50 [0.48, 0.54]")
    with pytest.raises(InvalidSetting, match="no number 'blue-4'; it has bleu-4"):
        rows(columns=("blue-4",))


def test_a_table_that_does_not_fit_has_one_row_a_number(tmp_path):
    result = Result.make(
        tmp_path,
        {"against": None},
        lambda path: Content(
            {
                "systems": frame(
                    row for k in range(9) for row in number(f"number-{k}", f"number-{k}", GOOD)
                )
            }
        ),
    )
    table = paper_table(result)
    assert table.columns == ("metric", "x", "y", "z")
    assert table.rows[8] == ("number-8 ↑", "0.500", "0.400", "0.300")
    assert table.best[8] == (8, 1)


def test_the_table_is_written_again_from_finished_numbers(tmp_path):
    tables = text_tables(tmp_path)
    systems, scorer = [tables["ours"], tables["theirs"]], Scorer(metrics="rouge-l,bleu-2")
    quick = {"resamples": 20, "permutations": 99}
    out = tmp_path / "out"
    with pytest.raises(InvalidSetting, match="no number 'chrf'"):
        compare(systems, out, scorer, table=TableSettings(columns=("chrf",)), **quick)
    assert not out.exists()
    run = compare(systems, out, scorer, **quick)
    assert "BLEU-2 $\\uparrow$" in (out / "table.tex").read_text(encoding="utf-8")
    again = compare(systems, out, scorer, table=TableSettings(columns=("bleu-2.mean",)), **quick)
    assert again.unchanged
    assert "BLEU-2 (mean)" in (out / "table.md").read_text(encoding="utf-8")
    assert pd.DataFrame(run.content["frames"]["systems"]).equals(
        pd.DataFrame(again.content["frames"]["systems"])
    )
