"""ROUGE-L against a longest common subsequence of our own and pycocoevalcap's formula."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.contract import values_of
from vlscore.errors import InvalidSetting
from vlscore.metrics import Scorer, compute


def test_words_at_blanks_and_the_weight_of_recall_by_hand():
    # "no effusion," and "edema" of 4 and 5 words; the periods differ.
    name = "rouge-l(beta=1.2,tokens=blanks)"
    found = compute(name, ["No effusion, edema ."], ["no left effusion, or edema"])[name]
    precision, recall = 3 / 4, 3 / 5
    expected = (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)
    assert found == pytest.approx([expected], rel=1e-12)


def test_stemming_joins_forms_of_a_word():
    plain = compute(["rouge-l"], ["effusions"], ["effusion"])["rouge-l"]
    stemmed = compute(["rouge-l(stemming=true)"], ["effusions"], ["effusion"])
    assert plain.tolist() == [0.0]
    assert stemmed["rouge-l(stemming=true)"].tolist() == [1.0]


def test_stemming_is_of_the_other_tokens():
    with pytest.raises(InvalidSetting, match="can only stem words"):
        compute("rouge-l(stemming=true,tokens=blanks)", ["a"], ["a"])


def test_the_mean_over_a_generator_is_pycocoevalcaps():
    """Recomputed by pycocoevalcap 1.2: .3248 with runs of blanks as one, .3243 with each as one."""
    path = Path(__file__).parents[3] / "shared" / "data" / "generated" / "vlm_final.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    name = "rouge-l(beta=1.2,tokens=blanks)"
    found = compute([name], [row["candidate"] for row in rows], [row["reference"] for row in rows])[
        name
    ]
    assert found.mean() == pytest.approx(0.3248, abs=5e-5)


@given(
    st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcde"), max_size=40)
)
def test_the_longest_common_subsequence_is_that_of_rouge_score(first, second):
    """rouge-score's own table; an independent program."""
    from rouge_score.rouge_scorer import _score_lcs

    from vlscore.metrics.library.rouge_l import longest_common

    theirs = _score_lcs(first, second)
    common = longest_common(first, second)
    if first and second:
        assert (common / len(second), common / len(first)) == (theirs.precision, theirs.recall)
    else:
        assert common == 0


@pytest.mark.parametrize("stemming", [False, True])
def test_every_value_has_the_bits_of_rouge_score(stemming):
    from rouge_score.rouge_scorer import RougeScorer

    texts = ["", "No effusion.", "Small left effusions; no edema.", "é 胸水", "edema " * 30]
    scorer = RougeScorer(["rougeL"], use_stemmer=stemming)
    pairs = [(g, r) for g in texts for r in texts]
    name = "rouge-l(stemming=true)" if stemming else "rouge-l"
    found = values_of(name, *map(list, zip(*pairs, strict=True))).columns[0]
    for (g, r), value in zip(pairs, found, strict=True):
        theirs = scorer.score(r, g)["rougeL"]
        p, q = theirs.precision, theirs.recall
        assert value == (2 * p * q / (q + p) if q + p else 0.0)


def test_long_texts_take_little_memory():
    """Two texts of 20,000 words; a table of their lengths has 400 million cells."""
    words = [f"w{k * k % 977}" for k in range(20_000)]
    tracemalloc.start()
    try:
        found = compute(["rouge-l"], [" ".join(words)], [" ".join(words[::-1])])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < found["rouge-l"][0] < 1
    assert peak < 64 << 20


@pytest.mark.parametrize("text", ["心影增大。", "Сердце не увеличено.", "القلب طبيعي", "심장 비대"])
def test_a_text_without_a_word_that_is_read_gets_a_note(text):
    """rouge-score finds no word in other scripts, and equal texts have 0.0 there, too."""
    assert compute("rouge-l", [text], [text])["rouge-l"].tolist() == [0.0]
    scorer = Scorer(metrics="rouge-l")
    (note,) = scorer.language_notes(
        {"references": iter([text, "Clear."]), "candidates": ["Clear."]}
    )
    assert "finds no word in 1 of 2 different references" in note
    (values,) = compute("rouge-l(tokens=blanks)", [text], [text]).values()
    assert values.tolist() == [1.0]
    assert Scorer(metrics="rouge-l(tokens=blanks)").language_notes({"references": [text]}) == []
    assert scorer.language_notes({"references": ["Épanchement.", "", None, "...", "2 cm"]}) == []
