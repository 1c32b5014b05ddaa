"""Changed copies of reports: as many changes as they say, and the same in other words."""

import numpy as np
import pytest

from vlscore.data import sample_studies
from vlscore.encoders import vocabulary_of
from vlscore.findings import extract
from vlscore.training.copies import SIGNIFICANT, ReportCopies, find_copies
from vlscore.training.equal_sentences import content_of, differences

STUDIES = list(sample_studies(3, 40))
REPORTS = [study.reference for study in STUDIES]


def contents(text: str) -> set:
    found = extract(text)
    read = (content_of(sentence, text) for sentence in found.sentences)
    return {content for content in read if content is not None}


def stated(text: str) -> set:
    """What is there, whatever is denied."""
    return {fact for facts, _ in contents(text) for fact in facts if fact[1] != "negative"}


def draws(copies: ReportCopies, rounds: int = 2):
    for row, report in enumerate(REPORTS):
        for number in range(rounds):
            yield report, copies.draw(row, np.random.default_rng([row, number]))


@pytest.fixture(scope="module")
def copies() -> ReportCopies:
    return find_copies(REPORTS)


def test_insignificant_copies_state_the_same(copies):
    reworded = 0
    for report, drawn in draws(copies):
        other = drawn[2]
        if other.changes == 0:
            reworded += len(set(other.text.split(". ")) - set(report.split(". "))) > 1
            assert other.text != report
            # A word such as "perihilar" may be among those that are exchanged or blotted out.
            before, after = ({fact[:4] for fact in stated(text)} for text in (report, other.text))
            assert before == after
    assert reworded > 20


def test_significant_copies_state_something_else(copies):
    counts = []
    for report, drawn in draws(copies):
        for copy in drawn[:2]:
            if copy.changes > 0:
                counts.append(copy.changes)
                assert contents(copy.text) != contents(report), (report, copy)
    assert set(counts) == {1, 2, 3, 4}


def test_only_comparisons_cannot_be_seen_on_one_film():
    report = "There is a small left pleural effusion, larger than before. No pneumothorax."
    copies = find_copies([report])
    for number in range(40):
        for copy in copies.draw(0, np.random.default_rng(number))[:2]:
            if copy.changes < 1:
                continue
            before, after = ({fact[:6] for fact in stated(text)} for text in (report, copy.text))
            assert copy.visible == (before != after), copy


def test_a_sentence_may_be_changed_and_another_one_added_where_it_ends():
    """The new sentence begins where the changed one ends, and touches no letter of it."""
    report = "There is a small left pleural effusion."
    copies = find_copies([report])
    drawn = (copies.draw(0, np.random.default_rng(number))[:2] for number in range(30))
    texts = {copy.text for both in drawn for copy in both if copy.changes > 1}
    longer = [text.split(". ") for text in texts if ". " in text]
    assert longer
    assert all(f"{first}." != report for first, *_ in longer)


@pytest.mark.parametrize("without", SIGNIFICANT)
def test_a_kind_that_is_left_out_is_in_no_copy(without):
    copies = find_copies(REPORTS[:20], without=without)
    for row in range(20):
        before = stated(REPORTS[row])
        for number in range(10):
            copy = copies.draw(row, np.random.default_rng(number))[0]
            if copy.changes != 1:
                continue
            after = stated(copy.text)
            gone, new = before - after, after - before
            kinds = {fact[0] for fact in gone}, {fact[0] for fact in new}
            if without == "omission":
                assert not gone or kinds[0] & kinds[1], copy
            elif without == "false-finding":
                assert not new or kinds[0] & kinds[1], copy
            elif len(gone) == len(new) == 1 and kinds[0] == kinds[1]:
                one, other = (((fact,), ()) for fact in (*gone, *new))
                assert without not in differences(one, other), copy


def test_every_word_of_a_copy_is_known(copies):
    known = set(vocabulary_of([*REPORTS, *copies.words()]))
    for _, drawn in draws(copies, 1):
        for copy in drawn:
            assert known.issuperset(vocabulary_of([copy.text]))
