"""Readability on texts whose words, sentences and syllables are counted by hand."""

import pytest

from tests.metrics.contract import check_metric, values_of
from vlscore.errors import MissingDependency
from vlscore.metrics import METRICS, compute

textstat = pytest.importorskip("textstat", reason="textstat is not installed")

# 8 words in 2 sentences; 9 syllables, for "normal" has two.
PLAIN = "The heart is normal. The lungs are clear."
# 9 words in 2 sentences; "pneumothorax" and "cardiomegaly" are long and not on the list.
HARD = "There is a large pneumothorax. No cardiomegaly was found."
SYLLABLES = {
    "the": "DH AH0", "heart": "HH AA1 R T", "is": "IH1 Z", "normal": "N AO1 R M AH0 L",
    "lungs": "L AH1 NG Z", "are": "AA1 R", "clear": "K L IH1 R", "there": "DH EH1 R",
    "a": "AH0", "large": "L AA1 R JH", "no": "N OW1", "was": "W AA1 Z", "found": "F AW1 N D",
    "pneumothorax": "N UW2 M OW0 TH AO1 R AE0 K S",
    "cardiomegaly": "K AA2 R D IY0 OW0 M EH1 G AH0 L IY0",
}  # fmt: skip


@pytest.fixture
def cmudict(tmp_path, monkeypatch):
    """NLTK's corpus of syllables, of the few words above."""
    import nltk

    folder = tmp_path / "corpora" / "cmudict"
    folder.mkdir(parents=True)
    lines = [f"{word.upper()} 1 {sounds}" for word, sounds in SYLLABLES.items()]
    (folder / "cmudict").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])


def _one(name, text, references=None):
    return values_of(name, [text], references or [text]).columns[0][0]


def test_flesch_kincaid_and_fog_counted_by_hand(cmudict):
    assert _one("flesch-kincaid", PLAIN) == pytest.approx(0.39 * 8 / 2 + 11.8 * 9 / 8 - 15.59)
    assert _one("gunning-fog", PLAIN) == pytest.approx(0.4 * 8 / 2)
    assert _one("gunning-fog", HARD) == pytest.approx(0.4 * (9 / 2 + 100 * 2 / 9))


def test_dale_chall_counted_by_hand_and_equal_to_textstat(cmudict):
    # "normal" and "lungs" are not on the list: 2 of 8 words are hard, which is above 5 %.
    assert _one("dale-chall", PLAIN) == pytest.approx(0.1579 * 25 + 0.0496 * 4 + 3.6365)
    assert _one("dale-chall", "No heart is clear.") == pytest.approx(0.0496 * 4)
    for text in (PLAIN, HARD, "Clear.", ""):
        theirs = textstat.textstat.dale_chall_readability_score(text)
        assert _one("dale-chall", text) == pytest.approx(theirs, abs=1e-12)


def test_dale_chall_needs_no_corpus(monkeypatch):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(nltk, "download", lambda *a, **k: pytest.fail("it fetches a corpus"))
    assert _one("dale-chall", PLAIN) > 0
    for name in ("flesch-kincaid", "gunning-fog"):
        with pytest.raises(MissingDependency, match="NLTK_DATA"):
            compute(name, [PLAIN], [PLAIN])


def test_words_that_are_frequent_in_the_references_become_familiar():
    references = ["Normal lungs.", "Lungs are clear.", "Heart is clear.", "No effusion."]
    half = "dale-chall-clinical(share=0.3)"
    # Half of the references hold "lungs"; one of four holds "normal".
    expected = 0.1579 * 100 / 8 + 0.0496 * 4 + 3.6365
    found = values_of(half, [PLAIN] * 4, references)
    assert found.columns[0][0] == pytest.approx(expected)
    assert found.signature.get("fit").startswith("4-references@")
    every = "dale-chall-clinical(share=0.2)"
    assert compute(every, [PLAIN] * 4, references)[every][0] == pytest.approx(0.0496 * 4)


def test_short_reports_have_a_grade_and_empty_ones_0(cmudict):
    for name in ("flesch-kincaid", "gunning-fog", "dale-chall", "dale-chall-clinical"):
        assert _one(name, "") == 0.0
        metric = METRICS[name]
        assert not metric.higher_is_better
        assert not metric.uses_reference
        check_metric(metric)
    assert _one("gunning-fog", "Clear.") == pytest.approx(0.4)
    assert _one("flesch-kincaid", "Clear.") == pytest.approx(0.39 + 11.8 - 15.59)
