"""Settings of the wrong kind are refused by name, before anything is computed."""

import pytest

from vlscore.errors import InvalidSetting, UnknownName
from vlscore.evaluation import ComparisonSettings, TableSettings, compare, evaluate, read_ratings
from vlscore.metrics import RuleJudge, Scorer

TABLE = "studies.csv"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("by", lambda: ComparisonSettings(by="sex")),
        ("lower_is_better", lambda: ComparisonSettings(lower_is_better="errors")),
        ("columns", lambda: TableSettings(columns="bleu-2")),
        ("systems", lambda: compare("first.csv", "out")),
        ("ratings", lambda: read_ratings(TABLE, ratings="rating")),
        ("by_rater", lambda: read_ratings(TABLE, by_rater="ann")),
    ],
)
def test_one_text_in_place_of_several_names(name, call):
    with pytest.raises(InvalidSetting, match=f"{name} is a tuple of names, as in"):
        call()


@pytest.mark.parametrize("name", ["by", "keep"])
def test_one_text_in_place_of_columns_of_evaluate(name, tmp_path):
    (tmp_path / TABLE).write_text("id,reference,candidate,view\na,Edema.,Edema.,PA\n")
    with pytest.raises(InvalidSetting, match=f"{name} is a tuple of names"):
        evaluate(tmp_path / TABLE, tmp_path / "out", Scorer(metrics="rouge-l"), **{name: "view"})


@pytest.mark.parametrize("word", ["kept", "yes", "", "ignore"])
@pytest.mark.parametrize("made", [RuleJudge, lambda **given: Scorer(metrics="judge", **given)])
def test_comparisons_are_ignored_or_not_named(word, made):
    with pytest.raises(InvalidSetting, match="comparisons is one of ignored, not"):
        made(comparisons=word)


def test_a_frame_that_there_is_not(tmp_path):
    (tmp_path / TABLE).write_text("id,reference,candidate\na,Edema.,Edema.\nb,Mass.,Mass.\n")
    result = evaluate(tmp_path / TABLE, tmp_path / "out", Scorer(metrics="rouge-l"))
    with pytest.raises(UnknownName, match=r"no frame 'kindz'; there are summary"):
        result.frame("kindz")
