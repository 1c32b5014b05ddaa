"""Baselines, and what candidates are like as texts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vlscore.errors import InvalidSetting
from vlscore.evaluation import text_facts
from vlscore.evaluation.baselines.training_reports import (
    constant_report,
    nearest_reports,
    random_reports,
)
from vlscore.evaluation.comparison.statistics import same_words


@given(
    st.lists(st.booleans(), min_size=2, max_size=9).filter(lambda some: sum(some) > 1),
    st.integers(0, 99),
)
def test_a_random_report_is_never_the_study_s_own(has_one, seed):
    references = [f"r{k}" if there else None for k, there in enumerate(has_one)]
    drawn = random_reports(references, None, seed)
    assert len(drawn) == len(references)
    for own, text in zip(references, drawn, strict=True):
        assert text in references
        assert text is not None
        assert text != own


def test_every_other_reference_can_be_drawn_and_the_seed_decides():
    references = list("abcd")
    seen = {
        (k, text)
        for seed in range(60)
        for k, text in enumerate(random_reports(references, None, seed))
    }
    assert seen == {(k, text) for k in range(4) for text in references if text != references[k]}
    assert random_reports(references, None, 3) == random_reports(references, None, 3)


def test_training_reports_are_drawn_where_there_are_some():
    assert set(random_reports(["a", "b"] * 20, ["x", "y"], 0)) == {"x", "y"}
    assert random_reports(["a"], ["x"], 0) == ["x"]


def test_a_single_study_has_no_other_reference():
    with pytest.raises(InvalidSetting, match="references of other studies"):
        random_reports(["a"], None, 0)


def test_the_constant_report_is_the_most_frequent_one():
    assert constant_report(["b", "a", "a ", "b", " a"]) == ("a", 3)


def test_the_nearest_image_is_another_study_s():
    vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 2.0], [0.1, 5.0], [torch.nan, 0.0]])
    assert nearest_reports(vectors, list("abcde")) == ["b", "a", "d", "c", None]
    # A study without a reference can be asked about, and gives none.
    assert nearest_reports(vectors, ["a", None, "c", "d", "e"]) == ["d", "a", "d", "c", None]
    assert nearest_reports(vectors[:1], ["a"]) == [None]


def test_facts_of_texts():
    known = {same_words("Clear lungs."), same_words("Old report.")}
    texts = ["clear  LUNGS.", "Clear lungs.", "", "There is a large", 'He said "none."']
    facts = text_facts(texts, known)
    assert facts["n"] == 5
    assert facts["empty"] == 1
    assert facts["mean_words"] == (2 + 2 + 0 + 4 + 3) / 5
    assert facts["distinct"] == 4 / 5
    assert facts["verbatim"] == 2 / 5
    assert facts["unfinished"] == 1 / 5
