"""What the words of BLEU and CIDEr-D leave behind in memory."""

import pytest

from vlscore.metrics import compute
from vlscore.metrics.library import words

pytest.importorskip("sacrebleu")


def remembered():
    """Lines that sacrebleu's tokenizers keep."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    return max(each.__call__.cache_info().currsize for each in (Tokenizer13a, TokenizerRegexp))


def reports(count, side):
    return [f"Nodule of {k} mm in the {side} lung." for k in range(count)]


def test_sacrebleu_keeps_no_report_of_a_batch_of_bleu():
    compute("bleu-4", reports(50, "left"), reports(50, "right"))
    assert remembered() == 0


def test_splitting_many_reports_keeps_few_of_them(monkeypatch):
    monkeypatch.setattr(words, "_REMEMBERED", 100)
    split = words.splitter("13a")
    expected = [f"nodule of {k} mm in the left lung .".split() for k in range(950)]
    assert [split(text) for text in reports(950, "left")] == expected
    assert remembered() <= 100
