"""Answers of language models: every form of one judgement is read as that judgement."""

import json

import pytest

from vlscore.errors import VLScoreError
from vlscore.metrics.judge.judge_answers import UnusableAnswer, read_answer
from vlscore.text import split_sentences

CANDIDATE, REFERENCE = "Small left effusion. Clear lungs.", "Small right effusion. Clear lungs."
ERROR = {
    "category": "wrong_location",
    "severity": 4,
    "finding": "effusion",
    "candidate_line": 1,
    "reference_line": 1,
    "correction": "Small right effusion.",
    "reason": "other side",
}
CONTENT = {"errors": [ERROR], "correct": [{"finding": "clear lungs", "severity": 1}]}
ANSWER = json.dumps(CONTENT)
DRAFT = json.dumps({"errors": [], "correct": []})


def read(answer):
    lines, true_lines = split_sentences(CANDIDATE), split_sentences(REFERENCE)
    return read_answer(answer, CANDIDATE, REFERENCE, lines, true_lines)


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "\ufeff{}\n",
        "```json\n{}\n```",
        "```json\n{}```",
        "```{}```",
        "``` json {} ```",
        "```JSON\r\n{}\r\n```",
        "~~~\n{}\n~~~",
        "~~~json\n{}\n~~~",
        "````json\n{}\n````",
        "'''json\n{}\n'''",
        "`{}`",
        "Here is the judgement:\n{}",
        "{}\nI hope that this helps {{:-)}}.",
        "Line [1] of the candidate {{effusion}} is wrong:\n```json\n{}\n```\nEnd.",
        "<answer>{}</answer>",
        "<think>The side is wrong.</think>{}",
        "<think>\nA draft: {draft}\n</think>\n\n{}",
        "A thought whose first mark is part of the question: {draft}</think>{}",
        "<thinking>{draft}</thinking>\n```json\n{}\n```",
        "<Thought>{draft}</Thought>{}<reflection>{draft}</reflection>",
        "[THINK]{draft}[/THINK]{}",
        "◁think▷{draft}◁/think▷{}",
        "<seed:think>{draft}</seed:think>{}",
        "<|begin_of_thought|>{draft}<|end_of_thought|>{}",
        "<|channel|>analysis<|message|>{draft}<|end|><|start|>assistant<|channel|>final"
        "<|message|>{}<|return|>",
        "{}\n\n{}",
        "{}\n<think>and now {draft}",
    ],
)
def test_every_wrapping_is_read(form):
    answer = form.replace("{{", "\0").replace("}}", "\1")
    answer = answer.replace("{draft}", DRAFT).replace("{}", ANSWER)
    assert read(answer.replace("\0", "{").replace("\1", "}")) == read(ANSWER)


@pytest.mark.parametrize("four", [4, 4.0, "4", " 4 "])
@pytest.mark.parametrize("one", [1, 1.0, "1"])
def test_whole_numbers_are_read_in_every_spelling(four, one):
    error = {**ERROR, "severity": four, "candidate_line": one, "reference_line": one}
    assert read(json.dumps({**CONTENT, "errors": [error]})) == read(ANSWER)


@pytest.mark.parametrize("wrong", [True, 1.5, "1.5", "one", "", [1], -1, 0, 3, "3", 1e300, "①"])
def test_other_values_are_no_numbers(wrong):
    error = {**ERROR, "candidate_line": wrong}
    with pytest.raises(UnusableAnswer, match="candidate_line must be"):
        read(json.dumps({**CONTENT, "errors": [error]}))


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER[:-1] + ', "errors": []}',
        ANSWER.replace('"severity": 4', '"severity": 1, "severity": 4'),
        ANSWER.replace('"finding": "clear lungs"', '"finding": "x", "finding": "clear lungs"'),
        "```json\n" + ANSWER[:-1] + ', "errors": []}\n```',
    ],
)
def test_a_name_that_comes_twice_is_refused(answer):
    with pytest.raises(UnusableAnswer, match="twice"):
        read(answer)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (f"{ANSWER} or rather {DRAFT}", "several JSON objects"),
        (f"<think>{ANSWER}", "no JSON object"),
        (ANSWER[:-20], "no JSON object"),
        ("I cannot judge this.", "no JSON object"),
        ('{"judgement": ' + ANSWER + "}", "must be an object with errors, correct"),
        (f"[{ANSWER}]", "must be an object with errors, correct"),
        ("{" * 5000 + ANSWER, "no JSON object"),
        ("x" + '{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_one_answer_is_refused_with_the_reason(answer, reason):
    with pytest.raises(UnusableAnswer, match=reason) as raised:
        read(answer)
    assert isinstance(raised.value, VLScoreError)
    assert "effusion" not in str(raised.value)
