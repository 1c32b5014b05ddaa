"""Starting published layouts from parts, and reading back what they are saved as."""

from functools import partial
from pathlib import Path

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor
from torchvision.models import resnet50
from transformers import BertConfig, BertModel

from vlscore.encoders import Bert, SwinTiny, find_encoder, load_encoder
from vlscore.encoders.blocks.convolutional import ResNet50
from vlscore.encoders.cards import card_of
from vlscore.encoders.models import biovil, convirt, gloria, medclip, mgca
from vlscore.errors import (
    IncompatibleCheckpoint,
    InvalidSetting,
    UnknownName,
    UnsafeCheckpoint,
    WeightsNotFound,
)
from vlscore.training.start import LAYOUTS, new_encoder

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "no", "effusion", "heart", "##s", "large"]
REPORTS = ["No effusion large hearts", "Heart large"]
LAYERS = 2


@pytest.fixture(autouse=True)
def small_towers(monkeypatch):
    """Transformers with few layers, words and hidden units, which are most of every layout."""

    def small(pieces, *, layers=12, segments=2):
        return Bert(len(PIECES), layers=LAYERS, inner=16, segments=segments)

    for module in (biovil, convirt, gloria, medclip, mgca):
        monkeypatch.setattr(module, "Bert", small)
    monkeypatch.setattr(mgca, "VisionTransformer", partial(VisionTransformer, mlp_ratio=0.1))
    for name in LAYOUTS:
        monkeypatch.setattr(find_encoder(name)[0], "vocabulary_size", len(PIECES))


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Path:
    """A folder with image weights as trainers write them, and a folder of Hugging Face."""
    folder = tmp_path_factory.mktemp("parts")
    torch.manual_seed(7)
    image = {f"module.{key}": value for key, value in resnet50().state_dict().items()}
    torch.save({"epoch": 3, "state_dict": image}, folder / "resnet.pth")
    settings = BertConfig(
        vocab_size=len(PIECES), num_hidden_layers=LAYERS + 1, intermediate_size=16
    )
    text = {f"bert.{key}": value for key, value in BertModel(settings).state_dict().items()}
    text = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for key, value in text.items()
    } | {"cls.predictions.bias": torch.zeros(len(PIECES))}
    (folder / "bert").mkdir()
    torch.save(text, folder / "bert" / "pytorch_model.bin")
    (folder / "bert" / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    return folder


def state(module) -> dict[str, Tensor]:
    return {key: value for key, value in module.state_dict().items() if not key.endswith("tracked")}


def embedded(encoder) -> tuple[Tensor, Tensor]:
    channels = 1 if encoder.card.name.startswith("medclip") else 3
    side = encoder.card.image_size
    pixels = torch.rand(1, channels, side, side, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        return encoder.embed_images(pixels), encoder.embed_reports(encoder.tokenize(REPORTS))


@pytest.mark.parametrize(
    "name", ["limitr", "convirt", "mgca-resnet50", "medclip-resnet", "biovil-t"]
)
def test_from_parts_and_back(name, parts, tmp_path):
    encoder = new_encoder(
        name, image_weights=parts / "resnet.pth", text_weights=parts / "bert", seed=3
    )
    assert all(parameter.requires_grad for parameter in encoder.parameters())
    image = torch.load(parts / "resnet.pth")["state_dict"]
    for place in LAYOUTS[name].images:
        found = state(encoder.get_submodule(place))
        found = {key: value for key, value in found.items() if not key.startswith("fc.")}
        expected = [
            value
            for key, value in image.items()
            if not key.startswith("module.fc.") and not key.endswith("tracked")
        ]
        assert len(found) == len(expected) > 200
        assert all(map(torch.equal, found.values(), expected))
    text = torch.load(parts / "bert" / "pytorch_model.bin")
    bert = encoder.get_submodule(LAYOUTS[name].text)
    assert torch.equal(bert.embeddings.LayerNorm.weight, text["bert.embeddings.LayerNorm.gamma"])
    last = f"encoder.layer.{LAYERS - 1}.output.dense.weight"
    assert torch.equal(bert.state_dict()[last], text[f"bert.{last}"])

    # Training changes everything, so no part may come back as it started.
    torch.manual_seed(8)
    for parameter in encoder.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    encoder.save(tmp_path / "trained", {"C": 20.5, "seed": 3})
    loaded = load_encoder(name, weights=tmp_path / "trained")
    for found, expected in zip(embedded(loaded), embedded(encoder), strict=True):
        # Where weights lie in memory decides the last digit of a product.
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    ours = state(encoder)
    assert state(loaded).keys() == ours.keys()
    assert all(torch.equal(value, ours[key]) for key, value in state(loaded).items())
    assert loaded.card.C == 20.5
    assert loaded.card.title.endswith("own training")


@pytest.mark.parametrize("name", ["mgca-vit", "medclip-vit"])
def test_other_trunks(name, parts, tmp_path):
    trunk = new_encoder(name, tokenizer=parts / "bert", seed=1).get_submodule(
        LAYOUTS[name].images[0]
    )
    tensors = {key.removeprefix("swin."): value for key, value in trunk.state_dict().items()}
    torch.save({"model": tensors | {"head.weight": torch.ones(3, 768)}}, tmp_path / "trunk.pth")
    encoder = new_encoder(
        name, tokenizer=parts / "bert", image_weights=tmp_path / "trunk.pth", seed=2
    )
    found = state(encoder.get_submodule(LAYOUTS[name].images[0]))
    assert all(torch.equal(value, state(trunk)[key]) for key, value in found.items())
    encoder.save(tmp_path / "trained")
    loaded = load_encoder(name, weights=tmp_path / "trained")
    # What its authors measured is not true of new weights.
    assert loaded.card.C is encoder.card.C is None
    for found, expected in zip(embedded(loaded), embedded(encoder), strict=True):
        # Where weights lie in memory decides the last digit of a product.
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_swin_with_transformers_names(parts, tmp_path):
    from transformers import SwinConfig, SwinModel

    torch.manual_seed(2)
    theirs = SwinModel(SwinConfig(depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24])).eval()
    theirs.save_pretrained(tmp_path)
    encoder = new_encoder("medclip-vit", tokenizer=parts / "bert", image_weights=tmp_path)
    pixels = torch.rand(1, 3, 224, 224)
    tower = encoder.vision_model.model
    assert isinstance(tower, SwinTiny)
    with torch.inference_mode():
        torch.testing.assert_close(
            tower(pixels), theirs(pixels).pooler_output, rtol=1e-4, atol=1e-5
        )


def test_the_seed_decides_what_is_random_and_nothing_else_does(parts):
    given = {"tokenizer": parts / "bert"}
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first, second, other = (new_encoder("convirt", seed=seed, **given) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.res_l1.weight, second.res_l1.weight)
    assert not torch.equal(first.res_l1.weight, other.res_l1.weight)
    assert all(value.isfinite().all() for value in first.parameters())


@pytest.fixture(scope="module")
def trunk_file(parts, tmp_path_factory):
    """Writes image weights that differ from ResNet-50's."""

    def write(change) -> Path:
        tensors = change(ResNet50().state_dict())
        path = tmp_path_factory.mktemp("wrong") / "wrong.pth"
        torch.save(tensors, path)
        return path

    return write


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: {k: v for k, v in t.items() if "layer1.0.conv1" not in k},
            r"wrong.pth does not fit ResNet-50 .*: 1 missing \(layer1.0.conv1.weight\)",
        ),
        (
            lambda t: t | {"conv1.weight": torch.zeros(64, 1, 7, 7)},
            r"1 mis-shaped \(conv1.weight \(64, 1, 7, 7\) instead of \(64, 3, 7, 7\)\)",
        ),
        (
            lambda t: t | {"layer3.6.conv1.weight": torch.zeros(3)},
            r"1 unexpected \(layer3.6.conv1.weight\)",
        ),
        (
            lambda t: {"encoder.stages.0.weight": torch.zeros(3)},
            "holds no ResNet-50 with torchvision's names: none of its 1 tensors",
        ),
        (
            lambda t: {f"{tower}.{k}": v for k, v in t.items() for tower in ("query", "key")},
            "holds 2 networks that could be the ResNet-50",
        ),
    ],
    ids=["missing", "mis-shaped", "unexpected", "another", "two"],
)
def test_image_weights_that_do_not_fit(change, message, parts, trunk_file):
    with pytest.raises(IncompatibleCheckpoint, match=message):
        new_encoder("convirt", tokenizer=parts / "bert", image_weights=trunk_file(change))


def test_text_weights_that_do_not_fit(parts, tmp_path):
    torch.save(ResNet50().state_dict(), tmp_path / "resnet.pth")
    with pytest.raises(IncompatibleCheckpoint, match="holds no BERT with transformers' names"):
        new_encoder("convirt", tokenizer=parts / "bert", text_weights=tmp_path / "resnet.pth")
    settings = BertConfig(vocab_size=7, num_hidden_layers=LAYERS, intermediate_size=16)
    torch.save(BertModel(settings).state_dict(), tmp_path / "bert.bin")
    with pytest.raises(IncompatibleCheckpoint, match=r"word_embeddings.weight \(7, 768\) instead"):
        new_encoder("convirt", tokenizer=parts / "bert", text_weights=tmp_path / "bert.bin")


class Runs:
    def __reduce__(self):
        return print, ("this file ran code",)


def test_a_file_that_would_run_code_is_refused(parts, tmp_path, capsys):
    torch.save({"state_dict": Runs()}, tmp_path / "bad.pth")
    with pytest.raises(UnsafeCheckpoint):
        new_encoder("convirt", tokenizer=parts / "bert", image_weights=tmp_path / "bad.pth")
    assert capsys.readouterr().out == ""


def test_what_cannot_be_started(parts, tmp_path):
    with pytest.raises(InvalidSetting, match="cannot be started from parts; these can: limitr"):
        new_encoder("chexzero", tokenizer=parts / "bert")
    with pytest.raises(UnknownName):
        new_encoder("nothing", tokenizer=parts / "bert")
    with pytest.raises(InvalidSetting, match=r"tokenizer=PATH of the vocab.txt of emilyalsentzer"):
        new_encoder("limitr")
    with pytest.raises(WeightsNotFound):
        new_encoder("limitr", tokenizer=parts / "bert", image_weights=tmp_path / "none.pth")
    with pytest.raises(WeightsNotFound):
        new_encoder("limitr", tokenizer=tmp_path / "none")


def test_a_folder_says_what_it_holds(parts, tmp_path):
    new_encoder("convirt", tokenizer=parts / "bert").save(tmp_path)
    with pytest.raises(IncompatibleCheckpoint, match="holds the encoder convirt, not gloria"):
        load_encoder("gloria", weights=tmp_path)
    for stated, message in (
        ('{"encoder": "convirt", "C": -1}', "C is -1"),
        ("{", "is no card of an encoder"),
    ):
        (tmp_path / "card.json").write_text(stated)
        with pytest.raises(IncompatibleCheckpoint, match=message):
            load_encoder("convirt", weights=tmp_path)
    # A file of somebody else's by that name says nothing.
    (tmp_path / "card.json").write_text('{"C": 3}')
    assert load_encoder("convirt", weights=tmp_path).card == card_of("convirt")
