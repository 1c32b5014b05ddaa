"""Language of candidates, counted by hand."""

import pytest

from vlscore.evaluation.comparison.language import language_facts, repeats_itself

REFERENCES = ["Clear lungs. No effusion.", "Stable nodule.", "Edema.", ""]


@pytest.mark.parametrize(
    ("report", "repeats"),
    [
        ("PA and lateral views views views of the chest", True),
        ("the lungs are clear . the lungs are clear . no edema", True),
        ("no edema , no effusion , no edema", False),
        ("very very small effusion", False),
        ("", False),
    ],
)
def test_repeated_phrases(report, repeats):
    assert repeats_itself(report) == repeats


def test_facts_are_those_counted_by_hand():
    ours = [
        "Clear lungs.",
        "Clear lungs.",
        "Edema, larger than before. Clear lungs.",
        "clear  lungs.",
    ]
    found = language_facts({"ours": ours}, REFERENCES, [False, False, False, True])
    own, references = found
    # clear, lungs, edema, larger, than, before; "clear lungs" and "edema, larger than before".
    assert (own["vocabulary"], own["sentences"], own["most_frequent"]) == (6, 2, 0.75)
    assert (references["vocabulary"], references["sentences"]) == (7, 4)
    # The second reference speaks of an earlier image, and the fourth study has one.
    assert (own["n_without_earlier"], own["earlier_image"]) == (2, 0.5)
    assert references["earlier_image"] is None


def test_where_every_study_has_an_earlier_image_there_is_no_share():
    (own, _) = language_facts({"ours": ["Stable."]}, ["Edema."], [True])
    assert own["earlier_image"] is None
