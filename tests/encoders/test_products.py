"""Linear maps by oneDNN: the same numbers, where they may be used."""

import pytest
import torch
from torch import nn

from vlscore.encoders.blocks import products

IS_HERE = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()


@pytest.fixture
def layer() -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(96, 40)


@pytest.mark.parametrize("shape", [(1, 96), (5, 7, 96), (2, 1, 3, 96), (0, 96)])
def test_it_is_the_layer(layer: nn.Linear, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    with torch.inference_mode():
        found, wanted = products.linear(layer, x), layer(x)
    assert found.shape == wanted.shape
    assert found.layout == torch.strided
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_columns_of_a_larger_tensor(layer: nn.Linear) -> None:
    """As attention gives them: not side by side in memory."""
    x = torch.randn(4, 96, 6).transpose(1, 2)
    with torch.no_grad():
        torch.testing.assert_close(products.linear(layer, x), layer(x), rtol=1e-5, atol=1e-6)


def test_gradients_and_half_precision_stay_pytorchs(layer: nn.Linear) -> None:
    x = torch.randn(3, 96)
    learned = products.linear(layer, x)
    assert learned.requires_grad
    assert torch.equal(learned, layer(x))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert products.linear(layer, x).dtype == torch.bfloat16
    with torch.no_grad():
        assert products.linear(layer.double(), x.double()).dtype == torch.float64


@pytest.mark.skipif(not IS_HERE, reason="this PyTorch has no MKL, or no oneDNN")
def test_onednn_is_used(layer: nn.Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Linear, "forward", lambda *_: pytest.fail("PyTorch chose"))
    with torch.inference_mode():
        assert products.linear(layer, torch.randn(3, 96)).shape == (3, 40)
