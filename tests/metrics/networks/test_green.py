"""GREEN's answers and prompts against the released code, and its model with constructed weights."""

import hashlib
import os
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.networks.constructed import golden
from tests.metrics.networks.constructed_green import READABLE, UNREADABLE, answer, write_green
from vlscore.core import open_cache
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.metrics import GreenJudge, Memo, UnreadableAnswer, memo, read_green_answer
from vlscore.metrics.networks import green_model as green
from vlscore.metrics.networks.green_model import (
    explanation_removed,
    green_conversation,
    known_answers,
)
from vlscore.metrics.networks.model_files import green_question, read_template

GOLDEN = golden("green")
PAIRS = [tuple(pair) for pair in GOLDEN["reports"]]


@pytest.mark.parametrize("row", range(len(READABLE)))
def test_answers_are_read_as_by_the_released_code(row):
    found = read_green_answer(READABLE[row])
    insignificant = found.insignificant or (0,) * 6
    numbers = [found.score, found.matched, [*found.significant], [*insignificant]]
    assert numbers == GOLDEN["read"][row]


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_answer_without_its_numbers_is_refused(text):
    with pytest.raises(UnreadableAnswer, match=UNREADABLE[text]):
        read_green_answer(text)


@given(st.text(alphabet="[]():. \n012abMN", max_size=80))
def test_any_text_is_read_or_refused(text):
    try:
        found = read_green_answer(answer(text, text, text))
    except UnreadableAnswer:
        return
    assert 0 <= found.score <= 1


def test_the_conversation_has_the_form_of_the_released_one():
    assert green_conversation("QUESTION", "</s>") == GOLDEN["conversation"]


@pytest.mark.parametrize("row", range(len(PAIRS)))
def test_the_question_is_the_released_one(row):
    # Of the second pair's reference 300 of 400 words are read.
    folder = os.environ.get("VLSCORE_GREEN")
    if folder is None:
        pytest.skip("VLSCORE_GREEN names no folder with GREEN's green_prompt.txt")
    template, stated = read_template(Path(folder))
    assert stated == "green@d72c195"
    question = green_question(template, *PAIRS[row])
    assert hashlib.sha256(question.encode()).hexdigest() == GOLDEN["questions"][row]


def test_the_question_takes_three_hundred_words_of_a_report(folder):
    template, stated = read_template(folder)
    assert re.fullmatch("[0-9a-f]{12}", stated)
    empty, long = green_question(template, *PAIRS[1]).split("Candidate Report:")[::-1]
    assert (empty.split(), long.split().count("word")) == ([], 300)
    assert "\n    Left effusion. The heart is normal.\n" in green_question(template, *PAIRS[0])
    # Braces in a report are no places.
    assert "{candidate} {0}" in green_question(template, "a", "{candidate} {0}")


def test_a_model_without_its_question_is_refused(folder, tmp_path):
    with pytest.raises(WeightsNotFound, match=r"no green_prompt\.txt.*make_prompt"):
        read_template(tmp_path)
    for text in ("{reference}", "{candidate} {reference}", "{reference} {candidate} {candidate}"):
        (tmp_path / "green_prompt.txt").write_text(text)
        with pytest.raises(IncompatibleCheckpoint, match=r"after it \{candidate\} once"):
            read_template(tmp_path)


@pytest.mark.parametrize("row", range(3))
def test_what_is_kept_of_a_response_is_what_the_released_code_keeps(row):
    response, kept = GOLDEN["responses"][row]
    assert explanation_removed(response) == kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_green(tmp_path_factory.mktemp("GREEN"))


@pytest.fixture
def short(monkeypatch):
    """Room for a few words of answer, where each would be 1,700."""
    monkeypatch.setattr(green, "LONGEST", 80)


def test_a_model_of_noise_answers_what_cannot_be_read(folder, short):
    first, second = GreenJudge(folder).answers(PAIRS)
    with pytest.raises(UnreadableAnswer, match="no section"):
        read_green_answer(first)
    assert "with these two reports has" in str(second)


def test_answers_are_the_models_most_likely_tokens(folder, short):
    from transformers import AutoModelForCausalLM

    judge = GreenJudge(folder)
    (found,) = judge.answers(PAIRS[:1])
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = judge._tokenizer(
        [green_conversation(green_question(read_template(folder)[0], *PAIRS[0]), "</s>")]
    ).input_ids[0]
    assert ids[-1] == judge._tokenizer.eos_token_id
    start = len(ids)
    with torch.no_grad():
        while len(ids) < green.LONGEST:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == judge._tokenizer.eos_token_id:
                break
    assert found == judge._tokenizer.decode(ids[start:], skip_special_tokens=True)
    assert found


def test_answers_do_not_depend_on_the_pairs_beside(folder, short):
    pairs = [("the effusion " * k, "left no " * (5 - k)) for k in (4, 0, 2, 1)]
    together = GreenJudge(folder).answers(pairs)
    assert len(set(together)) > 1
    assert [GreenJudge(folder).answers([pair])[0] for pair in pairs] == together


def test_each_pair_is_asked_once_and_fewer_at_once_where_memory_is_short(
    folder, short, monkeypatch
):
    judge = GreenJudge(folder)
    sizes = []

    def generate(texts):
        sizes.append(len(texts))
        if len(texts) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return [text.split("Candidate Report:\n    ")[1].split("\n")[0] for text in texts]

    monkeypatch.setattr(judge, "_generate", generate)
    monkeypatch.setattr(green, "_loaded", lambda *_: judge)
    pairs = [(f"report {k}", "") for k in (3, 1, 2, 3, 0)]
    assert known_answers(Memo(), folder, pairs) == [pair[0] for pair in pairs]
    assert sizes == [4, 2, 2]
    assert known_answers(Memo(), folder, pairs[:2]) == ["report 3", "report 1"]
    assert sizes == [4, 2, 2]


def test_a_second_run_takes_answers_and_refusals_from_the_cache(folder, monkeypatch, tmp_path):
    cache, pairs = open_cache(tmp_path), PAIRS[:2]

    class Judge:
        def answers(self, asked):
            return ["an answer" if pair == pairs[0] else UnreadableAnswer("long") for pair in asked]

    monkeypatch.setattr(green, "_loaded", lambda *_: Judge())
    assert known_answers(Memo(cache), folder, pairs)[0] == "an answer"
    memo.forget()
    monkeypatch.setattr(green, "_loaded", lambda *_: pytest.fail("the model was loaded"))
    first, second = known_answers(Memo(cache), folder, pairs)
    assert (first, str(second), type(second)) == ("an answer", "long", UnreadableAnswer)


def test_a_model_is_loaded_again_where_its_question_has_changed(tmp_path):
    folder = write_green(tmp_path)
    first = green._loaded(folder, "cpu")
    assert green._loaded(folder, "cpu") is first
    (folder / "green_prompt.txt").write_text("Another: {reference} {candidate}")
    assert green._loaded(folder, "cpu")._template.startswith("Another: ")
