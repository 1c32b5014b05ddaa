"""The word piece tokenizer on a small vocabulary, and what it refuses."""

from pathlib import Path

import pytest

from vlscore.encoders import WordPieceTokenizer
from vlscore.errors import IncompatibleCheckpoint

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, "no", "effusion", "pleural", "##s", "2", ".", "5", "cm", "'", "t"]
MAX = 16


@pytest.fixture
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer({piece: number for number, piece in enumerate(PIECES)})


def words(tokenizer: WordPieceTokenizer, text: str) -> list[str]:
    tokens = tokenizer([text], max_tokens=MAX)
    return [tokenizer.in_order[id] for id in tokens.ids[0, 1 : int(tokens.lengths[0]) - 1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No pleural effusions", ["no", "pleural", "effusion", "##s"]),
        ("EFFUSIÓN\t2.5 cm\n", ["effusion", "2", ".", "5", "cm"]),
        ("no [UNK] effusion", ["no", "[UNK]", "effusion"]),
        ("pneumothorax", ["[UNK]"]),
        ("肺 \ud800", ["[UNK]", "[UNK]"]),
        ("\x00 \u200b", []),
        ("", []),
    ],
)
def test_pieces(tokenizer: WordPieceTokenizer, text: str, expected: list[str]) -> None:
    assert words(tokenizer, text) == expected


def test_long_text_loses_its_tail_and_keeps_its_end_token(tokenizer: WordPieceTokenizer) -> None:
    tokens = tokenizer(["no effusion pleural 2 5", "no"], max_tokens=5)
    assert tokens.ids.tolist() == [[2, 5, 6, 7, 3], [2, 5, 3, 0, 0]]
    assert tokens.mask.tolist() == [[1] * 5, [1, 1, 1, 0, 0]]
    assert tokens.full_lengths.tolist() == [7, 3]
    assert tokens.truncated.tolist() == [True, False]


def test_line_separators_inside_a_vocabulary_do_not_shift_ids(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, "\u2028", "\x85", "cm"]), encoding="utf-8")
    assert words(WordPieceTokenizer.from_file(path), "cm") == ["cm"]
    assert WordPieceTokenizer.from_file(path)(["cm"], max_tokens=3).ids.tolist() == [[2, 7, 3]]


def test_another_models_vocabulary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES), encoding="utf-8")
    with pytest.raises(IncompatibleCheckpoint, match="15 word pieces, but the encoder has 28996"):
        WordPieceTokenizer.from_file(path, size=28996)
