"""What published encoders give while they learn: one pass, the same vectors, gradients."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from tests.encoders.random_encoders import random_encoder, word_pieces
from vlscore.encoders import ImageFeatures, JointEncoder, Tokens, WordPieceTokenizer
from vlscore.encoders.base import ReportFeatures
from vlscore.encoders.blocks.bert import attention_of_first

REPORTS = ["No effusion", "The heart is mildly enlarged", "Lungs clear"]
WORDS = [3, 6, 3]
# How many places there are, whether words have vectors, and whether each tower says what it
# attends to.
LOCAL = {
    "gloria": (361, True, False, False),
    "mgca-resnet50": (361, True, False, True),
    "mgca-vit": (196, True, True, True),
    "biovil-t": (9, False, False, False),
    "convirt": (0, False, False, False),
}
# Convolutions all through take any size, and a small one is quicker.
SIDES = {"biovil-t": 96, "convirt": 64}


TOWER_LAYERS = ("_Layer", "PatchEmbed", "Block", "_Bottleneck")


def tokenizer() -> WordPieceTokenizer:
    return word_pieces("no", "effusion", "is", "clear", "the", "heart")


@dataclass(frozen=True)
class Passed:
    """An encoder, what it was given, what came of it, and the layers that ran, in their order."""

    encoder: JointEncoder
    pixels: Tensor
    tokens: Tokens
    image: ImageFeatures
    report: ReportFeatures
    ran: list[nn.Module]

    @property
    def name(self) -> str:
        return self.encoder.card.name


@pytest.fixture(scope="module", params=LOCAL)
def passed(request: pytest.FixtureRequest) -> Passed:
    torch.manual_seed(1)
    encoder = random_encoder(request.param, tokenizer())
    side = SIDES.get(request.param, encoder.card.image_size)
    pixels, tokens = torch.rand(1, 3, side, side), encoder.tokenize(REPORTS)
    ran: list[nn.Module] = []
    hooks = [
        module.register_forward_hook(lambda module, *_: ran.append(module))
        for module in encoder.modules()
        if type(module).__name__ in TOWER_LAYERS
    ]
    image, report = encoder.image_features(pixels), encoder.report_features(tokens)
    for hook in hooks:
        hook.remove()
    return Passed(encoder, pixels, tokens, image, report, ran)


def test_vectors_are_the_embeddings(passed: Passed) -> None:
    # With gradients, as in training: without them a CPU takes a quicker way, last digits apart.
    images = passed.encoder.embed_images(passed.pixels)
    reports = passed.encoder.embed_reports(passed.tokens)
    assert torch.equal(passed.image.vectors, images)
    assert torch.equal(passed.report.vectors, reports)


def test_places(passed: Passed) -> None:
    count, _, weighed, _ = LOCAL[passed.name]
    found, weights = passed.image.patches, passed.image.patch_weights
    if not count:
        assert found is None
        return
    assert found.shape[:2] == (1, count)
    assert passed.image.is_patch is None
    assert (weights is not None) == weighed
    if weights is not None:
        assert weights.shape == (1, count)
        assert (weights > 0).all()
        # The class token attends to itself too.
        assert (weights.sum(1) < 1).all()
        assert not weights.requires_grad


def test_words(passed: Passed) -> None:
    _, has_words, _, weighed = LOCAL[passed.name]
    found, is_word = passed.report.words, passed.report.is_word
    weights = passed.report.word_weights
    if not has_words:
        assert found is None
        return
    # Without [SEP], or without [CLS], as the authors' losses have it.
    assert is_word.sum(1).tolist() == WORDS
    assert found.shape[:2] == is_word.shape == (3, 6)
    assert not found[~is_word].any()
    assert found[is_word].abs().sum(1).all()
    assert (weights is not None) == weighed
    if weights is not None:
        assert (weights[is_word] > 0).all()
        assert not weights[~is_word].any()
        assert (weights.sum(1) < 1).all()
        assert not weights.requires_grad


def test_one_pass_with_gradients_to_every_parameter(passed: Passed) -> None:
    layers = [m for m in passed.encoder.modules() if type(m).__name__ in TOWER_LAYERS]
    assert len(passed.ran) == len(set(passed.ran)) == len(layers) >= 5
    image, report, encoder = passed.image, passed.report, passed.encoder
    # Not a sum of squares, which is one whatever the direction of a vector of unit length.
    loss = image.vectors.sin().sum() + report.vectors.sin().sum()
    for local in (image.patches, report.words):
        if local is not None:
            loss = loss + local.sin().sum()
    loss.backward()
    # BioViL-T's temporal pooler compares with a previous image, and there is none here.
    without = [
        name
        for name, each in encoder.named_parameters()
        if each.grad is None and "vit_pooler" not in name
    ]
    assert without == []


def test_local_heads_stay_out_of_batch_statistics_for_padding() -> None:
    torch.manual_seed(3)
    encoder = random_encoder("mgca-vit", tokenizer())
    head = encoder.text_encoder.local_embed.train()
    states = torch.randn(3, 5, 768)
    is_there = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
    found = head(states, is_there)
    wider = head(
        torch.nn.functional.pad(states, (0, 0, 0, 4), value=9.0),
        torch.nn.functional.pad(is_there, (0, 4)),
    )
    torch.testing.assert_close(wider[:, :5], found)
    assert not wider[:, 5:].any()
    whole = torch.ones(3, 5, dtype=torch.bool)
    torch.testing.assert_close(head(states, whole), head(states), rtol=1e-4, atol=1e-5)


def test_what_the_first_token_attends_to_is_the_models_own_attention() -> None:
    torch.manual_seed(4)
    encoder = random_encoder("mgca-resnet50", tokenizer())
    tokens, bert = encoder.tokenize(REPORTS), encoder.text_encoder.model
    with torch.inference_mode():
        found = attention_of_first(bert, tuple(bert.states(tokens))[-2], tokens.mask)
        config = BertConfig(
            vocab_size=len(bert.embeddings.word_embeddings.weight),
            num_hidden_layers=len(bert.encoder.layer),
            type_vocab_size=1,
            attn_implementation="eager",
        )
        library = BertModel(config, add_pooling_layer=False).eval()
        assert not library.load_state_dict(bert.state_dict(), strict=False).unexpected_keys
        whole = library(tokens.ids, tokens.mask, output_attentions=True).attentions[-1]
    torch.testing.assert_close(found, whole[:, :, 0].mean(1), rtol=1e-4, atol=1e-6)


def test_limitrs_studies_with_and_without_a_lateral() -> None:
    torch.manual_seed(5)
    encoder = random_encoder("limitr", tokenizer())
    pixels = torch.rand(2, 3, 224, 224)
    has_lateral = torch.tensor([False, True])
    with torch.inference_mode():
        found = encoder.study_features(pixels, pixels[1:2], has_lateral)
        frontal = encoder.embed_images(pixels)
        lateral = encoder.embed_lateral_images(pixels)
        expected = torch.stack([frontal[0] / 2, (frontal[1] + lateral[1]) / 2])
        torch.testing.assert_close(found.vectors, expected)
        assert found.patches.shape == (2, 722, 768)
        assert found.is_patch.sum(1).tolist() == [361, 722]
        assert not found.patches[~found.is_patch].any()
        assert found.patches[1, 361:].any()
        none = encoder.study_features(pixels, pixels[:0], torch.zeros(2, dtype=torch.bool))
        torch.testing.assert_close(none.vectors, frontal / 2)
