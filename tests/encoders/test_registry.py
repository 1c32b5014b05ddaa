"""Encoders by name: in any spelling, of one's own, and what has no use is refused."""

import sys
from pathlib import Path

import pytest

from tests.doubles import HashEncoder
from vlscore.encoders import (
    ENCODERS,
    check_alone,
    encoder_card,
    encoder_cards,
    find_encoder,
    load_encoder,
)
from vlscore.errors import BrokenContract, InvalidSetting, UnknownName


@pytest.fixture(autouse=True)
def _no_encoder_in_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("VLSCORE_ENCODER", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("GLoRIA", "gloria"),
        ("biovil_t", "biovil-t"),
        ("medclip_swin", "medclip-vit"),
        ("MedCLIP-ResNet50", "medclip-resnet"),
        ("MGCA ResNet50", "mgca-resnet50"),
        ("MGCA-ViT:raw", "mgca-vit:raw"),
        ("open_clip:ViT-B-32", "openclip"),
    ],
)
def test_names_as_papers_write_them(written, found):
    assert encoder_card(written).name == found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("medclip", "medclip-resnet or medclip-vit"),
        ("mgca", "mgca-resnet50 or mgca-vit"),
        ("glorio", "gloria"),
        ("chex-zero", "chexzero"),
    ],
)
def test_a_name_that_is_none_names_what_may_be_meant(written, meant):
    for ask in (encoder_card, load_encoder, find_encoder):
        with pytest.raises(UnknownName, match=f"did you mean .*{meant}"):
            ask(written)


def test_every_card_is_that_of_its_class():
    for card in encoder_cards():
        member, _ = find_encoder(card.name)
        assert member.card == card
        variants = {"raw"} if "mgca" in card.name else {"repository"}
        expected = variants if card.name == "limitr" or "mgca" in card.name else set()
        assert set(member.variants or ()) == expected


OWN = """
from tests.doubles import HashEncoder

class Mine(HashEncoder):
    variants = ("small",)

    @classmethod
    def load(cls, weights=None, tokenizer=None, variant=None):
        encoder = cls()
        encoder.given = weights, tokenizer, variant
        return encoder

class Unloadable(HashEncoder):
    pass

ready = HashEncoder()
nothing = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mymodels.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mymodels", raising=False)
    return "mymodels"


def test_an_encoder_of_ones_own_is_found_where_it_is_written(own):
    encoder = load_encoder(f"{own}:Mine", weights="w", tokenizer="t", image_policy="minmax")
    assert encoder.given == ("w", "t", None)
    assert encoder.image_policy.window == "minmax"
    assert load_encoder(f"{own}:Mine:small").given == (None, None, "small")
    assert encoder_card(f"{own}:Mine").name == "hash"
    assert load_encoder(f"{own}:ready").card.name == "hash"
    with pytest.raises(UnknownName, match=r"no variant 'large'; there is .*Mine:small"):
        load_encoder(f"{own}:Mine:large")
    with pytest.raises(InvalidSetting, match="Unloadable has no classmethod load"):
        load_encoder(f"{own}:Unloadable")
    with pytest.raises(InvalidSetting, match="3 is no encoder"):
        load_encoder(f"{own}:nothing")
    with pytest.raises(UnknownName, match="cannot be imported"):
        load_encoder(f"{own}:Absent")


def test_an_encoder_of_ones_own_can_be_registered(own):
    ENCODERS.register(f"{own}:Mine", "my-own")
    try:
        assert load_encoder("My_Own:small").given[2] == "small"
        assert [card.name for card in encoder_cards()][-1] == "hash"
    finally:
        ENCODERS.unregister("my-own")


def test_an_encoder_object_is_handed_back_as_it_is():
    encoder = HashEncoder()
    assert load_encoder(encoder) is encoder
    with pytest.raises(InvalidSetting, match="weights=/no/such was given, but the enc"):
        load_encoder(encoder, weights="/no/such")
    with pytest.raises(InvalidSetting, match="tokenizer=t was given"):
        check_alone(tokenizer="t")
    with pytest.raises(InvalidSetting, match="its own"):
        load_encoder(encoder, image_policy="authors")
    with pytest.raises(BrokenContract, match="training mode"):
        load_encoder(encoder.train())
    with pytest.raises(InvalidSetting, match="is no encoder"):
        load_encoder(3)  # type: ignore[arg-type]
    assert encoder.image_policy.window == "auto"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"weights": "gloria.ckpt"},
            r"weights=gloria\.ckpt was given, but the encoder is",
        ),
        (
            {"tokenizer": "vocab.txt"},
            r"tokenizer=vocab\.txt was given, but the encoder is",
        ),
        ({"name": "phantom", "tokenizer": "/nope"}, "phantom brings its own"),
        ({"device": "cuda:77"}, "no device 'cuda:77' here"),
        ({"device": "gpu"}, "no device is called 'gpu'"),
        ({"image_policy": "sideways"}, "window is one of"),
    ],
)
def test_settings_without_use_are_refused(options, message):
    with pytest.raises(InvalidSetting, match=message):
        load_encoder(**options)


@pytest.mark.parametrize("name", ["phantom:x", "gloria:x", "biomedclip:x", "chexzero:"])
def test_a_variant_that_is_none_is_refused(name):
    for ask in (load_encoder, encoder_card):
        with pytest.raises(UnknownName, match=f"{name.split(':')[0]} has no variant"):
            ask(name)
