"""The small trainable encoder: what it keeps on disk, and the features it learns from."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encoders.contract import check_encoder
from tests.encoders.goldens import row_error
from vlscore.encoders import STYLES, SmallEncoder, load_encoder, vocabulary_of
from vlscore.encoders.cards import CARD
from vlscore.encoders.models.small import MODEL, VOCABULARY
from vlscore.errors import ChecksumMismatch, IncompatibleCheckpoint, WeightsNotFound

REPORTS = [
    "Small left pleural effusion. No pneumothorax.",
    "The heart is normal in size; lungs are clear.",
    "",
    "Large nodule in the right upper lobe. Small left pleural effusion. " * 3,
]
SMALLER = {"side": 64, "dim": 24, "local_dim": 12, "channels": (8, 12, 16), "width": 16}


def make(style: str = "siglip", seed: int = 0, **settings: object) -> SmallEncoder:
    return SmallEncoder.new(vocabulary_of(REPORTS), style=style, seed=seed, **(SMALLER | settings))


def pixels(count: int, side: int = 64) -> torch.Tensor:
    return torch.randn(count, 1, side, side, generator=torch.Generator().manual_seed(1))


def ready(encoder: SmallEncoder) -> SmallEncoder:
    return encoder.eval().requires_grad_(False)


@pytest.mark.parametrize("style", ["convirt", "gloria"])
def test_the_contract_holds_where_vectors_have_any_length(style: str) -> None:
    check_encoder(ready(make(style)))


@pytest.mark.parametrize(
    ("style", "pixels"), [*((style, "padded") for style in STYLES), ("convirt", "equalised")]
)
def test_a_round_trip_changes_nothing(style: str, pixels: str, tmp_path: Path) -> None:
    encoder = ready(make(style, pixels=pixels))
    encoder.save(tmp_path / "encoder", {"C": 1.5, "C_source": "a test", "objective": style})
    again = load_encoder("small", weights=tmp_path / "encoder")
    assert (again.card.C, again.card.C_source) == (1.5, "a test")
    assert again.card.normalised == STYLES[style].normalised
    assert again.card.dim == 24
    picture = (np.arange(70 * 90).reshape(70, 90) % 251).astype(np.uint8)
    assert torch.equal(again.encode_images([picture]), encoder.encode_images([picture]))
    assert torch.equal(again.encode_reports(REPORTS), encoder.encode_reports(REPORTS))
    assert again.checksum == encoder.checksum


def test_other_weights_or_words_have_another_checksum(tmp_path: Path) -> None:
    first, same, other = make(seed=0), make(seed=0), make(seed=1)
    assert ready(first).checksum == ready(same).checksum != ready(other).checksum
    words = vocabulary_of(REPORTS)
    assert ready(SmallEncoder.new(words[::-1], **SMALLER)).checksum != first.checksum


@pytest.mark.parametrize("name", [MODEL, VOCABULARY, CARD])
def test_a_folder_that_misses_a_file_names_it(name: str, tmp_path: Path) -> None:
    make().save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(WeightsNotFound, match=name):
        load_encoder("small", weights=tmp_path)


@pytest.mark.parametrize("name", [MODEL, VOCABULARY])
def test_a_folder_that_changed_after_training_is_refused(name: str, tmp_path: Path) -> None:
    make().save(tmp_path)
    content = (tmp_path / name).read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1]) if name == MODEL else b'["a"]'
    (tmp_path / name).write_bytes(changed)
    with pytest.raises(ChecksumMismatch, match=r"card\.json states"):
        load_encoder("small", weights=tmp_path)


@pytest.mark.parametrize("style", STYLES)
def test_features_are_the_embeddings_with_local_vectors_beside_them(style: str) -> None:
    encoder = ready(make(style))
    images, tokens = pixels(3), encoder.tokenize(REPORTS)
    seen, read = encoder.image_features(images), encoder.report_features(tokens)
    assert torch.equal(seen.vectors, encoder.embed_images(images))
    assert torch.equal(read.vectors, encoder.embed_reports(tokens))
    assert seen.patches.shape == (3, 4, 12)
    counts = [len(report.replace(";", "").replace(".", "").split()) for report in REPORTS]
    assert read.is_word.sum(dim=1).tolist() == counts
    assert read.words.shape == (4, max(counts), 12)
    assert not read.words[~read.is_word].any()
    assert read.words[read.is_word].any(dim=1).all()


def test_a_word_has_the_vector_that_its_own_report_gives_it() -> None:
    encoder = ready(make())
    together = encoder.report_features(encoder.tokenize(REPORTS))
    alone = encoder.report_features(encoder.tokenize(REPORTS[:1]))
    count = alone.words.shape[1]
    assert row_error(together.words[0, :count], alone.words[0]) < 1e-5
    # The last sentence of the long report is its second once more, and the first of the first.
    last = together.words[3][together.is_word[3]][-4:]
    assert row_error(last, alone.words[0, :4]) < 1e-5


@pytest.mark.parametrize("style", ["convirt", "gloria", "siglip"])
def test_an_image_and_a_report_do_not_depend_on_their_batch_while_they_learn(style: str) -> None:
    encoder = make(style)
    images, tokens = pixels(4), encoder.tokenize(REPORTS)
    with torch.no_grad():
        seen, alone = encoder.embed_images(images), encoder.embed_images(images[:1])
        read, one = encoder.embed_reports(tokens), encoder.embed_reports(tokens.take([0]))
    assert row_error(seen[:1], alone) < 1e-5
    assert row_error(read[:1], one) < 1e-5


def test_words_that_training_never_showed_say_nothing_of_their_own() -> None:
    encoder = ready(make())
    known, strange, other = encoder.encode_reports(
        ["Small left effusion.", "Small qwrt effusion.", "Small zxcv effusion."]
    )
    assert torch.equal(strange, other)
    assert not torch.equal(strange, known)


@pytest.mark.parametrize(
    ("card", "named"),
    [
        ("{", "is no card of a small encoder"),
        ('{"settings": 3}', "is no card of a small encoder"),
        ('{"settings": {"style": "clip"}}', "style is one of biovil"),
        ('{"settings": {"dim": -3}}', "sizes are whole numbers"),
        ('{"settings": {"channels": [1, 2, "a"]}}', "is no card of a small encoder"),
        ('{"settings": {"side": 100}}', "multiple of 32"),
        ('{"settings": {"pixels": "sharp"}}', "pixels is one of padded"),
        ('{"settings": {}, "C": "large"}', "C is 'large'"),
        ('{"settings": {}, "notes": "none"}', "notes is 'none'"),
        ('{"settings": {"dim": 32}}', "does not fit SmallEncoder"),
    ],
)
def test_a_damaged_card_is_refused_by_name(tmp_path: Path, card: str, named: str) -> None:
    make().save(tmp_path)
    (tmp_path / CARD).write_text(card)
    with pytest.raises(IncompatibleCheckpoint, match=named) as raised:
        load_encoder("small", weights=tmp_path)
    assert str(tmp_path) in str(raised.value)
