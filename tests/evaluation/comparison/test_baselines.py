"""Baselines, and what candidates are like as texts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlscore.errors import InvalidStudy
from vlscore.evaluation import BaselineSettings, Case, TrainingReports, find_baseline, text_facts
from vlscore.evaluation.comparison.language import same_words


def fitted(name, references, images=None, seed=0):
    """A baseline that learnt from the references of the studies it writes for."""
    there = [k for k, text in enumerate(references) if text is not None]
    found = find_baseline(name, BaselineSettings(seed=seed) if name == "random" else None)
    own = {k: place for place, k in enumerate(there)}
    vectors = None if images is None else images[there]
    found.fit(TrainingReports([references[k] for k in there], images=vectors, own=own), None)
    return found


def random_reports(references, seed):
    cases = [Case(k, str(k)) for k in range(len(references))]
    return fitted("random", references, seed=seed).candidates(cases)


@given(
    st.lists(st.booleans(), min_size=2, max_size=9).filter(lambda some: sum(some) > 1),
    st.integers(0, 99),
)
def test_a_random_report_is_never_the_study_s_own(has_one, seed):
    references = [f"r{k}" if there else None for k, there in enumerate(has_one)]
    drawn = random_reports(references, seed)
    assert len(drawn) == len(references)
    for own, text in zip(references, drawn, strict=True):
        assert text in references
        assert text is not None
        assert text != own


def test_every_other_reference_can_be_drawn_and_the_seed_decides():
    references = list("abcd")
    seen = {
        (k, text) for seed in range(60) for k, text in enumerate(random_reports(references, seed))
    }
    assert seen == {(k, text) for k in range(4) for text in references if text != references[k]}
    assert random_reports(references, 3) == random_reports(references, 3)


def test_reports_of_other_studies_are_all_drawn_from():
    random = find_baseline("random")
    random.fit(TrainingReports(["x", "y"]), None)
    assert set(random.candidates([Case(k, "") for k in range(40)])) == {"x", "y"}


def test_the_constant_report_is_the_most_frequent_one():
    constant = fitted("constant", ["b", "a", "a ", "b", " a"])
    assert constant.candidate(Case(0, "")) == "a"
    assert constant.times == 3


def nearest_reports(vectors, references):
    images = np.array(vectors, dtype=np.float32)
    cases = [Case(k, str(k), image=image) for k, image in enumerate(images)]
    found = fitted("nearest-image", references, images).candidates(cases)
    return [None if isinstance(text, InvalidStudy) else text for text in found]


def test_the_nearest_image_is_another_study_s():
    vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 2.0], [0.1, 5.0], [np.nan, 0.0]]
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
