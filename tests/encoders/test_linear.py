"""Linear maps by oneDNN against the same maps by PyTorch and in float64."""

import copy

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.tolerances import VECTOR
from vlscore.encoders import Bert, inference, unchanging_weights
from vlscore.encoders.blocks import bert as linear
from vlscore.encoders.blocks.bert import Linear, by_onednn, uses_onednn
from vlscore.encoders.devices import ProcessorFacts

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    reason="this build of PyTorch has no oneDNN",
)


@pytest.fixture
def chosen(monkeypatch):
    """oneDNN is used whatever the processor; how many products it was asked for is counted."""
    monkeypatch.setattr(linear, "uses_onednn", lambda: True)
    asked = []
    product = Linear._product

    def counted(self, rows):
        asked.append(len(rows))
        return product(self, rows)

    monkeypatch.setattr(Linear, "_product", counted)
    return asked


@pytest.fixture(scope="module")
def layer():
    torch.manual_seed(3)
    return Linear(96, 160)


def _relative(found, expected):
    return float((found.double() - expected).abs().max() / expected.abs().max())


@needs_onednn
@pytest.mark.parametrize("shape", [(1, 96), (32, 96), (33, 96), (7, 41, 96), (0, 96), (96,)])
@torch.inference_mode()
def test_it_is_the_linear_map_within_the_rounding_of_float32(chosen, layer, shape):
    given = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    expected = nn.functional.linear(given.double(), layer.weight.double(), layer.bias.double())
    found = layer(given)
    assert chosen or not given.numel()
    assert found.shape == expected.shape
    assert found.dtype == torch.float32
    if given.numel():
        assert _relative(found, expected) < VECTOR


@needs_onednn
@torch.inference_mode()
def test_without_bias_and_of_rows_that_do_not_lie_together(chosen, layer):
    plain = Linear(96, 160, bias=False)
    given = torch.randn(96, 80).T
    assert _relative(plain(given), given.double() @ plain.weight.double().T) < VECTOR
    assert torch.equal(layer(given[::2]), layer(given[::2].contiguous()))


@needs_onednn
@torch.inference_mode()
def test_few_numbers_of_rows_are_handed_over_and_no_row_depends_on_others(
    chosen, layer, monkeypatch
):
    monkeypatch.setattr(linear, "_ROWS_A_THREAD", 64)
    monkeypatch.setattr(linear, "_MOST_ROWS", 64)
    rows = torch.randn(200, 96)
    whole = layer(rows)
    assert chosen == [64, 64, 64, 32]
    for count in (1, 2, 5, 31, 64, 65, 199):
        assert torch.equal(layer(rows[:count]), whole[:count])
    assert set(chosen) == {32, 64}


@needs_onednn
def test_it_is_left_out_where_it_does_not_belong(chosen, layer):
    rows = torch.randn(4, 96)
    assert torch.equal(layer(rows), nn.functional.linear(rows, layer.weight, layer.bias))
    layer(rows).sum().backward()
    assert layer.weight.grad is not None
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(rows).dtype == torch.bfloat16
    with torch.inference_mode():
        assert copy.deepcopy(layer).double()(rows.double()).dtype == torch.float64
    with FakeTensorMode(allow_non_fake_inputs=True), torch.inference_mode():
        assert layer(torch.empty(4, 96)).shape == (4, 160)
    assert chosen == []
    layer.weight.grad = layer.bias.grad = None


@needs_onednn
@torch.inference_mode()
def test_bert_by_oneDNN_is_bert(chosen, monkeypatch):
    torch.manual_seed(0)
    bert = Bert(90, hidden=128, layers=3, heads=2, inner=192).eval()
    ids = torch.randint(0, 90, (4, 33))
    mask = torch.ones_like(ids)
    mask[1, 20:] = 0
    found = bert(ids, mask)
    assert len(chosen) == 3 * 6
    exact = copy.deepcopy(bert).double()(ids, mask)
    assert _relative(found, exact) < VECTOR
    monkeypatch.setattr(linear, "uses_onednn", lambda: False)
    assert _relative(bert(ids, mask), exact) < VECTOR
    assert len(chosen) == 3 * 6


@needs_onednn
@torch.inference_mode()
def test_the_layers_of_a_librarys_model_can_be_changed_in_place(chosen):
    model = nn.Sequential(nn.Linear(96, 160), nn.GELU(), nn.Linear(160, 8)).eval()
    names = list(model.state_dict())
    exact = copy.deepcopy(model).double()
    rows = torch.randn(5, 96)
    assert by_onednn(model) is model
    assert _relative(model(rows), exact(rows.double())) < VECTOR
    assert chosen == [32, 32]
    assert list(model.state_dict()) == names
    # What a library builds upon nn.Linear may mean something else by it.
    attention = nn.MultiheadAttention(16, 2)
    by_onednn(attention)
    assert type(attention.out_proj) is not Linear


@pytest.mark.parametrize(
    ("maker", "flags", "used"),
    [
        ("AuthenticAMD", {"avx512f", "avx2"}, True),
        ("AuthenticAMD", {"avx2"}, False),
        ("GenuineIntel", {"avx512f"}, False),
        ("", set(), False),
    ],
)
def test_it_is_for_processors_whose_units_MKL_leaves_idle(monkeypatch, maker, flags, used):
    facts = ProcessorFacts(maker, frozenset(flags))
    monkeypatch.setattr(linear, "processor_facts", lambda: facts)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    uses_onednn.cache_clear()
    try:
        assert uses_onednn() is (used and hasattr(torch.ops.mkldnn, "_linear_pointwise"))
    finally:
        uses_onednn.cache_clear()


def test_under_autocast_weights_are_cast_once_and_numbers_are_pytorchs(layer, monkeypatch):
    casts = []
    cast = linear._cast
    monkeypatch.setattr(linear, "_cast", lambda *given: casts.append(given) or cast(*given))
    given = torch.randn(5, 7, 96)
    with unchanging_weights(), inference(torch.device("cpu"), "bf16"):
        found = [layer(given) for _ in range(3)]
        expected = nn.Linear.forward(layer, given)
    assert expected.dtype is torch.bfloat16
    assert all(torch.equal(each, expected) for each in found)
    assert len(casts) == 1
    with inference(torch.device("cpu"), "bf16"):
        assert torch.equal(layer(given), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(given).requires_grad
    assert len(casts) == 2
