"""Tables of ratings as people write them: what one bad cell costs, and what is noted."""

import numpy as np

from vlscore.evaluation import read_ratings

HEAD = "study_id,candidate_id,rater,rating\n"


def _table(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_cell_of_one_rater_costs_no_rating_of_another(tmp_path):
    text = "study_id,candidate_id,ann,bob\ns1,a,1,?\ns1,b,2,3\ns2,a,NA,4\ns2,b,0,1\ns2,b,0,\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text), by_rater=("ann", "bob"))
    nan = np.nan
    np.testing.assert_array_equal(pairs.ratings["rating"], [[1, 2, nan, nan], [nan, 3, 4, 1]])
    assert [(bad.row, bad.id) for bad in pairs.bad] == [(1, "s1"), (5, "s2")]
    assert "'?', not a number" in pairs.bad[0].reason
    assert "'ann' rates this candidate twice; both ratings are left out" in pairs.bad[1].reason


def test_a_row_of_two_raters_that_names_no_study_is_one_failed_row(tmp_path):
    text = "study_id,candidate_id,ann,bob\n,a,1,2\ns1,a,1,1\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text), by_rater=("ann", "bob"))
    assert [(bad.row, bad.reason) for bad in pairs.bad] == [(1, 'column "study_id" is empty')]


def test_a_rating_without_a_rater_costs_no_rating_of_another(tmp_path):
    text = HEAD + "s1,a,ann,1\ns1,a,,5\ns1,b,ann,2\ns1,b,bob,3\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text))
    np.testing.assert_array_equal(pairs.ratings["rating"], [[1, 2], [np.nan, 3]])
    assert [(bad.row, bad.id, bad.reason) for bad in pairs.bad] == [
        (2, "s1", 'column "rater" is empty')
    ]


def test_of_counts_a_row_without_a_rater_may_belong_to_every_sum(tmp_path):
    text = "study_id,candidate_id,rater,category,rating\n"
    text += "s1,a,ann,x,1\ns1,a,,y,5\ns1,b,ann,x,2\ns1,b,ann,y,3\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text))
    assert (pairs.studies, pairs.candidates) == (("s1",), ("b",))


def test_texts_for_an_empty_cell_are_no_rating(tmp_path):
    text = HEAD + "s1,a,ann,1\ns1,b,ann,NA\ns2,a,ann,#N/A\ns2,b,ann,2\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text))
    assert pairs.studies == ("s1", "s2")
    assert not pairs.bad


def test_numbers_that_only_python_or_a_comma_locale_writes_are_refused(tmp_path):
    text = "study_id;candidate_id;rater;rating\ns1;a;ann;1_0\ns1;b;ann;3,5\ns1;c;ann;2\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", "\ufeff" + text))
    assert pairs.candidates == ("c",)
    assert [bad.reason for bad in pairs.bad] == [
        "column \"rating\" holds '1_0', not a number",
        "column \"rating\" holds '3,5', not a number; write a decimal point, no comma",
    ]


def test_a_rating_whose_counts_are_all_empty_was_not_made(tmp_path):
    text = "study_id,candidate_id,rater,category,rating\n"
    text += "s1,a,ann,x,1\ns1,a,ann,y,0\ns1,a,bob,x,\ns1,a,bob,y,NA\ns1,b,bob,x,\ns1,b,bob,y,2\n"
    pairs = read_ratings(_table(tmp_path / "t.csv", text))
    np.testing.assert_array_equal(pairs.ratings["total errors"], [[1], [np.nan]])
    assert [(bad.row, bad.id) for bad in pairs.bad] == [(5, "s1")]
    (note,) = pairs.notes
    assert note.startswith("read as not rated: 1 rating with empty counts alone")


def test_chosen_pairs_have_their_own_rows(tmp_path):
    pairs = read_ratings(_table(tmp_path / "t.csv", HEAD + "s1,a,ann,1\ns1,b,ann,2\ns2,b,ann,3\n"))
    chosen = pairs.only(["b"])
    assert (chosen.studies, chosen.rows) == (("s1", "s2"), (2, 3))
