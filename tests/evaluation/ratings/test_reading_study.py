"""Reading studies of systems: balance, forms of sheets, checked answers, and what follows."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from tests.evaluation.alignment.samples import write_csv
from tests.evaluation.ratings.samples import make_sheets, read_rows
from vlscore.errors import InvalidLexicon, InvalidSetting, InvalidTable
from vlscore.evaluation import (
    ratings_read,
    read_ratings,
)
from vlscore.evaluation.ratings.questions import COUNTS
from vlscore.evaluation.ratings.ratings_read import implied_preferences
from vlscore.evaluation.ratings.sheet_files import read_key

RATERS = ["ann", "bob", "carl", "dora"]


@pytest.fixture(scope="module")
def systems(tmp_path_factory):
    """Three systems for 12 studies; in study 0 two of them say the same."""
    folder = tmp_path_factory.mktemp("systems")
    paths = []
    for name in ("one", "two", "three"):
        rows = [
            {
                "id": f"s{k:02}",
                "reference": f"Reference {k}.",
                "candidate": "Same." if k == 0 and name != "three" else f"={name}+{k}",
            }
            for k in range(12)
        ]
        paths.append(write_csv(folder / f"{name}.csv", rows))
    return paths


def test_loads_are_balanced_and_a_study_stays_together(systems, tmp_path):
    sheets = make_sheets(systems, tmp_path / "s", raters=RATERS, raters_per_study=2, seed=4)
    items = read_key(tmp_path / "s" / "key.csv")
    assert sheets.record["items"] == len(items) == 3 * 12 - 1
    by_study = {}
    for item in items.values():
        assert by_study.setdefault(item.study, item.raters) == item.raters
    loads = Counter(rater for raters in by_study.values() for rater in raters)
    assert set(loads.values()) == {6}
    met = Counter(itertools.chain(*(itertools.combinations(r, 2) for r in by_study.values())))
    # All six couples of raters meet twice.
    assert sorted(met.values()) == [2] * 6
    for rater in RATERS:
        own = [items[row["item"]] for row in read_rows(tmp_path / "s" / f"sheet-{rater}.csv")]
        seen = Counter(name for item in own for name in item.systems[0])
        assert set(seen.values()) == {6}


def test_nothing_that_a_rater_can_sort_by_tells_which_system_is_report_a(tmp_path):
    """A rater who knows one report must learn nothing of the others, by any part of a name.

    By chance, a share of n fair coins lies within 4 standard errors of 1/2.
    """
    count = 150
    paths = [
        write_csv(
            tmp_path / f"{name}.csv",
            [{"id": f"{k}", "reference": "R.", "candidate": f"{name} {k}"} for k in range(count)],
        )
        for name in ("delta", "beta")
    ]
    make_sheets(paths, tmp_path / "s", ask=["preferences"], raters=["ann", "bob"])
    items = read_key(tmp_path / "s" / "key.csv")
    for rater in ("ann", "bob"):
        rows = read_rows(tmp_path / "s" / f"sheet-{rater}.csv")
        names = [row["item"] for row in rows]
        assert len(names) == count
        for order in (names, sorted(names), sorted(names, key=lambda name: name[::-1])):
            first = np.array([items[n].systems[0] == ("delta",) for n in order])
            fair = 4 * 0.5 / np.sqrt(count)
            assert abs(first.mean() - 0.5) < fair
            for step in (1, 2, 3):
                apart = first[step:] != first[:-step]
                assert abs(apart.mean() - 0.5) < fair
            # Two neighbours that begin at an even place.
            assert abs((first[::2] != first[1::2]).mean() - 0.5) < 4 * 0.5 / np.sqrt(count / 2)
            half = count // 2
            assert abs(first[:half].mean() - first[half:].mean()) < 4 / np.sqrt(count)
        for place in range(-3, 0):
            for letter in {name[place] for name in names}:
                own = [n for n in names if n[place] == letter]
                share = np.mean([items[n].systems[0] == ("delta",) for n in own])
                assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(len(own))


def test_each_system_is_report_a_as_often_as_report_b(systems, tmp_path):
    make_sheets(systems, tmp_path / "s", ask=["preferences"], raters=RATERS, seed=1)
    items = read_key(tmp_path / "s" / "key.csv")
    for rater in RATERS:
        sides = Counter()
        rows = read_rows(tmp_path / "s" / f"sheet-{rater}.csv")
        for row in rows:
            item = items[row["item"]]
            # In study 0 one comparison is of two systems at once.
            if item.study == "s00":
                continue
            sides[item.systems[0][0], item.systems[1][0]] += 1
        # Reports that are equal are not compared.
        assert len(rows) == 3 * 11 + 1
        for one, other in itertools.combinations(("one", "two", "three"), 2):
            assert abs(sides[one, other] - sides[other, one]) == 1
            assert sides[one, other] + sides[other, one] == 11


@pytest.fixture
def filled(systems, tmp_path):
    """Two raters who rate the longer name lower, one of them with noise."""
    folder = tmp_path / "filled"
    make_sheets(systems, folder, ask=["errors", "dimensions"], raters=["ann", "bob"])
    items = read_key(folder / "key.csv")
    rng = np.random.default_rng(0)
    for rater in ("ann", "bob"):
        rows = read_rows(folder / f"sheet-{rater}.csv")
        for row in rows:
            worse = ("one", "two", "three").index(items[row["item"]].systems[0][0])
            noise = rng.integers(2) if rater == "bob" else 0
            row[next(iter(COUNTS))] = str(worse + noise)
            row |= dict.fromkeys(["correctness", "completeness", "readability"], str(5 - worse))
            row["fluency"] = str(5 - worse - noise)
        write_csv(folder / f"sheet-{rater}.csv", rows)
    return folder


def test_answers_become_tables_agreement_and_ranks(filled, tmp_path):
    out = tmp_path / "o"
    run = ratings_read(filled, out, groups={"clinicians": ["ann"]}, resamples=50)
    assert not run.failures
    rows = run.frame("agreement").to_dict("records")
    agreement = {(row["group"], row["rating"]): row for row in rows}
    assert agreement["all", "correctness"]["alpha"] == 1
    assert agreement["all", "correctness"]["kappa"] == 1
    assert agreement["all", "fluency"]["alpha"] < 1
    # In study 0 two systems have one report, which a rater judges once.
    assert {each["units"] for each in agreement.values()} == {3 * 12 - 1}
    # One rater alone has no agreement.
    assert ("clinicians", "fluency") not in agreement
    systems = run.frame("systems")
    ranked = systems[(systems["rating"] == "fluency") & (systems["group"] == "all")]
    assert list(ranked["system"]) == ["one", "two", "three"]
    assert set(systems["group"]) == {"all", "clinicians"}
    # The tables are what `vlscore align` reads, with the same numbers.
    pairs = read_ratings(filled)
    names = ("correctness", "completeness", "readability", "fluency")
    again = read_ratings(out / "ratings.csv", ratings=names, meaning="quality")
    counted = read_ratings(out / "counts.csv")
    assert (again.studies, again.candidates, again.texts) == (
        pairs.studies, pairs.candidates, pairs.texts,
    )  # fmt: skip
    np.testing.assert_array_equal(again.ratings["fluency"], pairs.ratings["fluency"])
    np.testing.assert_array_equal(counted.ratings["total errors"], pairs.ratings["total errors"])
    assert run.record["align_with"][0].startswith(f"vlscore align {out / 'counts.csv'}")
    assert ratings_read(filled, out, groups={"clinicians": ["ann"]}, resamples=50).unchanged


def test_preferences_follow_from_ratings(filled):
    pairs = read_ratings(filled)
    said = implied_preferences(pairs, "total errors").query("rater == 'ann'")
    order = {"one": 2, "two": 1, "three": 0}
    for each in said.itertuples():
        expected = np.sign(order[each.first] - order[each.second])
        # Equal reports of a study are judged once, so they tie.
        assert each.answer == (0 if each.study == "s00" and "three" not in (each.first, each.second)
                               else expected)  # fmt: skip
    assert len(said) == 3 * 12


def test_wrong_rows_are_named_and_lose_no_other(filled, tmp_path):
    path = filled / "sheet-ann.csv"
    rows = read_rows(path)
    rows[0]["fluency"] = "6"
    rows[1]["fluency"] = ""
    rows[2]["item"] = "item-99"
    rows[3][next(iter(COUNTS))] = "1.5"
    rows[5]["item"] = rows[4]["item"]
    write_csv(path, rows[:-1])
    run = ratings_read(filled, tmp_path / "o", resamples=10)
    said = "\n".join(f"{bad.row} {bad.reason}" for bad in run.failures)
    assert "1 sheet-ann.csv: column \"fluency\" holds '6'; write a whole number from 1 to 5" in said
    assert '2 sheet-ann.csv: column "fluency" is empty; the row is filled in part' in said
    assert "3 sheet-ann.csv: column \"item\" holds 'item-99', which is not in key.csv" in said
    assert "holds '1.5'; write a whole number from 0" in said
    assert "which has an earlier row" in said
    # Lost: the last row, and those of the items whose names were overwritten.
    assert said.count("has no row for") == 3
    assert any("sheet-ann.csv: 29 of 35 reports are rated" in note for note in run.notes)


def test_a_rater_without_a_sheet_is_read_with_a_note(filled, tmp_path):
    rows = read_rows(filled / "sheet-ann.csv")
    write_csv(filled / "sheet-zoe.csv", rows)
    run = ratings_read(filled, tmp_path / "o", resamples=10)
    assert run.record["raters"] == ["ann", "bob", "zoe"]
    assert any("no sheet was made for a rater 'zoe'" in note for note in run.notes)


def test_a_study_that_is_compared_in_part_has_no_ranks(systems, tmp_path):
    make_sheets(systems, tmp_path / "s", ask=["preferences"], raters=["ann"])
    path = tmp_path / "s" / "sheet-ann.csv"
    items = read_key(tmp_path / "s" / "key.csv")
    rows = read_rows(path)
    left = next(row for row in rows if items[row["item"]].study == "s05")
    for row in rows:
        row["preferred"] = "" if row is left else "tie"
    write_csv(path, rows)
    run = ratings_read(tmp_path / "s", tmp_path / "o", resamples=10)
    assert any("1 time a rater compared only some reports" in note for note in run.notes)
    pairs = read_ratings(tmp_path / "s")
    assert "s05" not in pairs.studies
    assert set(pairs.ratings["preference rank"][0]) == {2.0}
    assert pairs.meaning == "ranks"


def test_settings_that_cannot_be_used_are_refused(systems, tmp_path):
    def refused(error, match, **options):
        with pytest.raises(error, match=match):
            make_sheets(systems, tmp_path / "s", **options)

    refused(InvalidSetting, "make two folders", ask=["errors", "preferences"])
    refused(InvalidSetting, "not 'beauty'", ask=["beauty"])
    refused(InvalidSetting, "1 to 1 raters", raters_per_study=2)
    refused(InvalidSetting, "sheets are csv, html, not pdf", format=["pdf"])
    refused(InvalidSetting, "add the format html", images=True)
    refused(InvalidTable, "no table has a column image", images=True, format=["html"])
    refused(InvalidSetting, "needs the question dimensions", dimensions=tmp_path / "d.toml")
    (tmp_path / "d.toml").write_text("[[dimension]]\nname = 'a'\n")
    refused(InvalidLexicon, "has no 'text'", ask=["dimensions"], dimensions=tmp_path / "d.toml")
    with pytest.raises(InvalidTable, match="two different reports"):
        make_sheets(systems[:1], tmp_path / "s", ask=["preferences"])
    assert not list((tmp_path / "s").glob("[!.]*"))


def test_dimensions_of_a_user_are_asked(systems, tmp_path):
    text = '[[dimension]]\nname = "use"\ntext = "Would you use it?"\nlow = "no"\nhigh = "yes"\n'
    (tmp_path / "own.toml").write_text(text)
    make_sheets(systems, tmp_path / "s", ask=["dimensions"], dimensions=tmp_path / "own.toml")
    content = json.loads((tmp_path / "s" / "questions.json").read_text())
    assert [q["name"] for q in content["questions"]] == ["use"]
    assert (
        "- use: Would you use it? 1: no; 5: yes" in (tmp_path / "s" / "instructions.md").read_text()
    )


def test_a_comparison_that_two_systems_share_counts_once_between_raters(systems, tmp_path):
    folder = tmp_path / "s"
    make_sheets(systems, folder, ask=["preferences"], raters=RATERS)
    items = read_key(folder / "key.csv")
    for rater in RATERS:
        path = folder / f"sheet-{rater}.csv"
        rows = read_rows(path)
        for row in rows:
            one, other = items[row["item"]].systems
            is_worse = "three" in one
            # The raters differ in the shared comparison of study 0 alone.
            is_worse ^= items[row["item"]].study == "s00" and rater == "ann"
            row["preferred"] = "B" if is_worse else "A"
            if "three" not in (*one, *other):
                row["preferred"] = "tie"
        write_csv(path, rows)
    run = ratings_read(folder, tmp_path / "out", resamples=20)
    (units,) = run.frame("agreement")["units"]
    assert units == 3 * 11 + 1
    both = [row for row in read_rows(run.folder / "comparisons.csv") if row["study_id"] == "s00"]
    assert len(both) == 2 * len(RATERS)
