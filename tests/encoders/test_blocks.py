"""The towers' building blocks against the libraries whose tensors they take."""

import pytest
import torch

from vlscore.encoders import Bert, Tokens
from vlscore.encoders.blocks.convolutional import ResNet50, feature_maps


def tokens_of(ids, mask):
    return Tokens(ids, mask, mask.sum(1))


@pytest.fixture(scope="module", params=[1, 2], ids=["one segment", "two segments"])
def berts(request):
    """The library's BERT with random weights, and ours with the same ones."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=90,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=192,
        type_vocab_size=request.param,
    )
    theirs = BertModel(config, add_pooling_layer=False).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    ours = Bert(90, hidden=128, layers=3, heads=2, inner=192, segments=request.param).eval()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "bf16"])
@torch.inference_mode()
def test_every_layer_is_that_of_transformers_(berts, padded, half):
    theirs, ours = berts
    ids = torch.randint(0, 90, (4, 33), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    if padded:
        mask[1, 20:] = mask[2, 3:] = 0
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        expected = theirs(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        found = tuple(ours.states(tokens_of(ids, mask)))
        last = ours(tokens_of(ids, mask))
    assert len(found) == 4
    assert all(map(torch.equal, found, expected.hidden_states))
    assert torch.equal(last, expected.last_hidden_state)
    assert not torch.equal(found[0], found[-1])


@torch.inference_mode()
def test_positions_can_be_given(berts):
    theirs, ours = berts
    ids, mask = torch.arange(14).reshape(2, 7), torch.ones(2, 7, dtype=torch.long)
    nowhere = torch.zeros_like(ids)
    expected = theirs(input_ids=ids, attention_mask=mask, position_ids=nowhere).last_hidden_state
    assert torch.equal(ours(tokens_of(ids, mask), nowhere), expected)
    assert not torch.equal(ours(tokens_of(ids, mask)), expected)


def test_bert_has_dropout_in_training_and_begins_as_the_library_does(berts):
    _, ours = berts
    ids = torch.arange(14).reshape(2, 7)
    tokens = tokens_of(ids, torch.ones_like(ids))
    ours.train()
    try:
        assert not torch.equal(ours(tokens), ours(tokens))
    finally:
        ours.eval()
    fresh = Bert(90, hidden=128, layers=1, heads=2, inner=192)
    for name, parameter in fresh.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "LayerNorm" not in name:
            assert 0.015 < float(parameter.detach().std()) < 0.025, name


def test_the_trunk_is_that_of_torchvision():
    from torchvision.models import resnet50

    torch.manual_seed(0)
    theirs, ours = resnet50(weights=None).eval(), ResNet50().eval()
    ours.fc = torch.nn.Linear(2048, 1000)
    for name, buffer in theirs.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(std=0.1)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_children()] == [n for n, _ in theirs.named_children()]
    ours.load_state_dict(theirs.state_dict())
    for side in (64, 97):
        pixels = torch.randn(2, 3, side, side)
        assert torch.equal(ours(pixels), theirs(pixels))
    middle, last = feature_maps(ours, pixels)
    assert (middle.shape, last.shape) == ((2, 1024, 7, 7), (2, 2048, 4, 4))
    spread = [float(m.conv1.weight.detach().std()) for m in (ResNet50(), theirs)]
    assert spread[0] == pytest.approx(spread[1], rel=0.05)
