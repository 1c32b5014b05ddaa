"""The tokenizer of findings, and small encoders that read with it."""

import shutil

import pytest
import torch

from vlscore.core import resource_path
from vlscore.encoders import READINGS, SmallEncoder, load_encoder
from vlscore.encoders.blocks import word_tokenizers
from vlscore.encoders.blocks.word_tokenizers import STOP, FindingTokenizer
from vlscore.errors import InvalidLexicon
from vlscore.findings import extract, lexicon, lexicon_files, tokens
from vlscore.training import Start
from vlscore.training.start import small_encoder

REPORTS = [
    "There is a small left pleural effusion. The heart is normal. Patient is rotated.",
    "Large right pneumothorax, increased. No effusion or consolidation.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return FindingTokenizer(FindingTokenizer.vocabulary_of(REPORTS))


def encoder_of(style):
    return small_encoder(Start(style=style, side=32, reading="findings"), REPORTS, 1).eval()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Left effusion, small in size.", "There is a small left pleural effusion."),
        ("No pleural effusion or pneumothorax.", "Neither effusion nor pneumothorax is seen."),
        ("Patient is ROTATED", "patient is rotated."),
    ],
)
def test_the_same_in_other_words_has_equal_tokens(tokenizer, text, same):
    assert tokenizer.ids_of(text) == tokenizer.ids_of(same)


@pytest.mark.parametrize(
    "other",
    [
        "There is a small right pleural effusion.",
        "There is a large left pleural effusion.",
        "There is no left pleural effusion.",
        "There may be a small left pleural effusion.",
        "There is a small left pneumothorax.",
        "There is a small left pleural effusion, increased from prior.",
        "There is a small left basal pleural effusion.",
    ],
)
def test_another_statement_has_other_tokens(tokenizer, other):
    text = "There is a small left pleural effusion."
    assert tokenizer.ids_of(text) != tokenizer.ids_of(other)


def test_sentences_without_a_finding_keep_their_words(tokenizer):
    known = set(tokenizer.words)
    assert {"patient", "is", "rotated"} <= known
    assert "=pleural_effusion" in known
    assert "heart" not in known
    assert tokenizer.ids_of("") == [STOP]
    assert tokenizer.ids_of("...") == [STOP]


@pytest.mark.parametrize("style", ["judging", "convirt"])
def test_a_report_vector_does_not_depend_on_words_or_order(style):
    encoder = encoder_of(style)
    texts = [
        "There is a small left pleural effusion. The heart is normal.",
        "Heart size normal. Left effusion, small in size.",
        "There is a small left pleural effusion.",
        "The heart is normal.",
    ]
    with torch.inference_mode():
        one, same, first, second = encoder.embed_reports(encoder.tokenize(texts))
    torch.testing.assert_close(one, same)
    assert not torch.allclose(one, first)
    if style == "judging":
        torch.testing.assert_close(one, first + second)


def test_what_it_reads_is_saved(tmp_path):
    encoder = encoder_of("convirt")
    encoder.save(tmp_path)
    again = SmallEncoder.load(tmp_path)
    assert again.settings.reading == "findings"
    assert type(again.tokenizer) is READINGS["findings"]
    assert torch.equal(again.tokenize(REPORTS).ids, encoder.tokenize(REPORTS).ids)


@pytest.fixture
def new_words(tmp_path, monkeypatch):
    """Give vlscore's own lexicon a new name of a finding and a new abbreviation of one."""
    caches = [lexicon.load_lexicon, lexicon_files.read_tables, lexicon_files.extraction_name]
    caches += [tokens.spellings, word_tokenizers._read]

    def clear():
        for each in caches:
            each.cache_clear()

    folder = tmp_path / "lexicons"
    shutil.copytree(resource_path("perturbations", "lexicons"), folder)
    for name, old, new in (
        ("observations", '"(pleural|) effusion"', '"patient", "effusion"'),
        ("spellings", "\n[abbreviations]\n", '\n[abbreviations]\nheart = "pneumothorax"\n'),
    ):
        path = folder / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def change():
        monkeypatch.setattr(lexicon_files, "our_lexicon", lambda: folder)
        monkeypatch.setattr(lexicon, "our_lexicon", lambda: folder)
        clear()

    yield change
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize("bundled", [True, False])
def test_a_new_word_changes_neither_checksum_nor_vectors(new_words, tmp_path, bundled):
    """An encoder reads with the lexicon that it was trained with, whatever ours learns."""

    def load():
        return load_encoder() if bundled else load_encoder("small", weights=tmp_path)

    if not bundled:
        encoder_of("judging").save(tmp_path)
    before = load()
    vectors, checksum = before.encode_reports(REPORTS), before.checksum
    read = extract(REPORTS[0])
    new_words()
    assert extract(REPORTS[0]) != read
    after = load()
    assert after.checksum == checksum
    assert torch.equal(after.encode_reports(REPORTS), vectors)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"observations": 1}'])
def test_a_broken_lexicon_is_named(tmp_path, content):
    encoder_of("convirt").save(tmp_path)
    (tmp_path / "lexicon.json").write_text(content)
    with pytest.raises(InvalidLexicon, match=r"lexicon\.json is no frozen lexicon"):
        SmallEncoder.load(tmp_path)
