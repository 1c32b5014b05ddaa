"""BERT's products in bfloat16: the numbers of autocast, the weights cast once."""

import pytest
import torch

from tests.metrics.networks.constructed import REPORTS
from vlscore.encoders import inference
from vlscore.errors import InvalidSetting
from vlscore.metrics import CheXbert, RadGraph

# Of 8 significant bits, through two layers and the heads.
OF_BFLOAT16 = 0.05


@pytest.fixture(params=["radgraph", "chexbert"])
def both(request):
    weights = request.getfixturevalue(f"{request.param}_weights")
    kind = {"radgraph": RadGraph, "chexbert": CheXbert}[request.param]
    return kind(weights), kind(weights, precision="bf16")


def _bert(annotator):
    return annotator._model.bert if isinstance(annotator, RadGraph) else annotator._bert


def test_numbers_are_those_of_autocast(both):
    plain, half = both
    ids = torch.randint(5, 100, (3, 21), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    mask[1, 12:] = 0
    with inference(torch.device("cpu"), "bf16"):
        expected = _bert(plain)(ids, mask)
    with inference(torch.device("cpu"), "fp32"):
        found = _bert(half)(ids, mask)
        exact = _bert(plain)(ids, mask)
    assert torch.equal(found, expected)
    assert found.dtype == torch.float32
    error = float((found - exact).abs().max() / exact.abs().max())
    assert 0 < error < OF_BFLOAT16


def test_most_of_what_is_read_is_the_same(both):
    plain, half = both
    same = [
        a.to_dict() == b.to_dict() if isinstance(plain, RadGraph) else a.labels == b.labels
        for a, b in zip(plain.annotate(REPORTS), half.annotate(REPORTS), strict=True)
    ]
    assert sum(same) >= len(same) // 3


@pytest.mark.parametrize("kind", ["radgraph", "chexbert"])
def test_another_precision_is_refused(request, kind):
    weights = request.getfixturevalue(f"{kind}_weights")
    with pytest.raises(InvalidSetting, match='"fp32" or "bf16" here, not'):
        {"radgraph": RadGraph, "chexbert": CheXbert}[kind](weights, precision="fp16")
