"""EfficientNet-Lite0 as the image trunk of a small encoder: parity with timm, names, input."""

import pytest
import timm
import torch

from vlscore.encoders.blocks.convolutional import EfficientNetLite, timm_names

TOP = ("conv_head", "bn2.", "classifier")


@pytest.fixture(scope="module")
def published():
    """Return timm's network with random statistics, so that every norm does something."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
        for norm in network.modules():
            if isinstance(norm, torch.nn.BatchNorm2d):
                norm.running_mean.normal_(0, 0.1)
                norm.running_var.uniform_(0.5, 2)
    return network


def state_of(network):
    return {
        name: value
        for name, value in network.state_dict().items()
        if not name.startswith(TOP) and "num_batches" not in name
    }


@pytest.mark.parametrize("is_training", [False, True])
def test_the_maps_are_timms(published, is_training):
    trunk = EfficientNetLite()
    trunk.load_state_dict(state_of(published), strict=False)
    norms = {name: value.clone() for name, value in trunk.named_buffers()}
    images = torch.randn(2, 1, 64, 96, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        found = trunk.train(is_training)(images)
        colours = (images * 0.5).expand(-1, 3, -1, -1)
        expected = published.blocks(published.bn1(published.conv_stem(colours)))
    assert found.shape == (2, 320, 2, 3)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(value, norms[name]) for name, value in trunk.named_buffers())


def test_memory_of_training_does_not_grow_with_the_batch():
    """Only pixels are stored for the backward pass of more than 16 images; gradients are equal."""
    torch.manual_seed(0)
    # In float64, so that the order of sums makes no difference.
    trunk = EfficientNetLite().double()
    images = torch.randn(40, 1, 32, 32, dtype=torch.float64)
    stored = []

    def pack(tensor):
        stored.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        found = trunk(images)
    assert sum(stored) <= 2 * images.numel()
    found.square().mean().backward()
    own = [each.grad.clone() for each in trunk.parameters()]
    trunk.zero_grad()
    torch.cat([trunk(part) for part in images.split(8)]).square().mean().backward()
    for name, parameter in zip(own, trunk.parameters(), strict=True):
        torch.testing.assert_close(name, parameter.grad, rtol=1e-4, atol=1e-6)


def test_names_of_the_other_package_become_timms(published):
    names = {name: torch.tensor(0) for name in state_of(published)}
    own = {
        "_conv_stem.weight": "conv_stem.weight",
        "_bn0.running_mean": "bn1.running_mean",
        "_blocks.0._depthwise_conv.weight": "blocks.0.0.conv_dw.weight",
        "_blocks.0._bn1.bias": "blocks.0.0.bn1.bias",
        "_blocks.0._project_conv.weight": "blocks.0.0.conv_pw.weight",
        "_blocks.0._bn2.weight": "blocks.0.0.bn2.weight",
        "_blocks.1._expand_conv.weight": "blocks.1.0.conv_pw.weight",
        "_blocks.1._bn0.weight": "blocks.1.0.bn1.weight",
        "_blocks.4._depthwise_conv.weight": "blocks.2.1.conv_dw.weight",
        "_blocks.15._bn2.weight": "blocks.6.0.bn3.weight",
        "_blocks.15._project_conv.weight": "blocks.6.0.conv_pwl.weight",
        "_fc.weight": "classifier.weight",
    }
    assert list(timm_names(dict.fromkeys(own, torch.tensor(0)))) == list(own.values())
    assert set(own.values()) - set(names) == {"classifier.weight"}
    assert timm_names(names) == names
