"""The plain reading of a report: denials, places, whose normality a sentence states."""

import pytest

from vlscore.findings import load_lexicon
from vlscore.perturb import apply_edits
from vlscore.perturb.lexicons import perturbation_table
from vlscore.perturb.plaintext import (
    any_of,
    claims,
    denial_of,
    sentences_of,
    spared,
    topics,
    words,
)

EFFUSION = any_of(["effusions?"])


def plain(text):
    (sentence,) = sentences_of(text, [(0, len(text))])
    return sentence


DENIED = [
    "no effusion",
    "no pneumothorax, consolidation or effusion",
    "without evidence of effusion",
    "lungs are free of effusion",
    "effusion is not seen",
    "effusion has resolved",
    "effusion: none",
    "negative for effusion",
]
CLAIMED = [
    "small effusion",
    "no pneumothorax but an effusion",
    "no change; effusion",
    "no cardiomegaly with effusions",
    "cannot exclude effusion",
    "effusion that is not large",
    "effusion and no pneumothorax",
]


def test_what_a_plain_negation_denies():
    assert [said for said in DENIED if claims(said, EFFUSION)] == []
    assert [said for said in CLAIMED if not claims(said, EFFUSION)] == []


def test_a_forgotten_stop_parts_a_sentence():
    sentence = plain("No focal infiltrate Emphysema is seen.")
    assert claims(sentence.text, topics()["emphysema"].names)
    assert not claims(sentence.text, topics()["infiltrate"].names)


def test_sentences_keep_their_places_whatever_the_letters():
    text = "İstanbul: NO EFFUSION. Heart."
    first, second = sentences_of(text, [(10, 22), (23, 29)])
    assert text[first.start + first.lead :].startswith("NO")
    assert len(first.text) == first.end - first.start
    assert second.text.strip() == "heart."


NORMAL = {
    "No acute cardiopulmonary abnormality.": (True, {"lung", "pleura", "heart size"}),
    "No evidence of active disease.": (True, set()),
    "Normal chest.": (False, set()),
    "Unremarkable views of the chest.": (False, set()),
    "Negative.": (False, set()),
    "The lungs are hypoinflated but clear.": (False, {"lung"}),
    "Clear lungs bilaterally.": (False, {"lung"}),
    "The pleural spaces show no acute abnormality.": (True, {"pleura"}),
    "Visualized osseous structures are unremarkable.": (False, {"bone"}),
    "Degenerative changes without acute bony abnormality.": (True, {"bone"}),
    "Heart size is normal.": (False, {"heart size"}),
}


@pytest.mark.parametrize(("said", "expected"), NORMAL.items())
def test_whose_normality_a_sentence_states(said, expected):
    denial = denial_of(plain(said))
    assert denial is not None
    assert denial.only_acute is expected[0]
    assert denial.systems >= expected[1]
    assert bool(denial.systems) is bool(expected[1])


@pytest.mark.parametrize(
    "said", ["No effusion.", "Mild edema.", "No findings of edema.", "Stable chest.", "No change."]
)
def test_what_denies_no_organ(said):
    assert denial_of(plain(said)) is None


ROOM = {
    "No acute disease.": "No other acute disease.",
    "Negative for acute abnormality.": "Negative for other acute abnormality.",
    "No evidence of active disease.": "No evidence of other active disease.",
    "Edema without an acute abnormality.": "Edema without another acute abnormality.",
    "Edema without any acute abnormality.": "Edema without any other acute abnormality.",
    "The lungs are clear.": "The lungs are otherwise clear.",
    "Lungs clear.": "Lungs otherwise clear.",
    "Clear lungs.": "Otherwise clear lungs.",
    "clear lungs.": "otherwise clear lungs.",
    "Heart normal and clear lungs.": "Heart normal and otherwise clear lungs.",
    "No other acute disease.": "No other acute disease.",
    "The chest is otherwise normal.": "The chest is otherwise normal.",
}


@pytest.mark.parametrize(("said", "expected"), ROOM.items())
def test_a_denial_makes_room(said, expected):
    edit = spared(said, plain(said))
    assert edit is not None
    assert apply_edits(said, [edit] if edit.replacement else []) == expected


def test_every_topic_is_of_observations_and_systems_that_there_are():
    known = load_lexicon().observations.keys()
    table = perturbation_table("consistency")
    named = [name for entry in table["topic"] for name in entry["observations"]]
    assert len(set(named)) == len(named)
    assert set(named) <= known
    for topic in topics().values():
        assert topic.systems | topic.beside <= table["systems"].keys()
    assert words()._fields == tuple(name for name in words()._fields if name in table["words"])


def test_what_kinds_move_regrade_or_state_has_a_topic():
    """Else the check would look for nothing."""
    from vlscore.perturb.lexicons import false_findings, location_moves

    wanted = {finding.observation for finding in false_findings()} | location_moves().movable
    assert wanted <= topics().keys()
