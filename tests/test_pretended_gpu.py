"""The pretended GPU refuses what a GPU refuses, and computes what the CPU computes."""

import numpy as np
import pytest
import torch

from tests.pretended_gpu import OnGPU, pretended_gpu

X = torch.arange(6.0).reshape(2, 3)


def test_what_is_sent_there_says_so_and_comes_back():
    with pretended_gpu():
        there = X.to("cuda")
        assert isinstance(there, OnGPU)
        assert (there.device, there.is_cuda) == (torch.device("cuda", 0), True)
        assert torch.zeros(2, device="cuda").is_cuda
        assert torch.equal((there @ there.T).cpu(), X @ X.T)
        assert there.sum().item() == 15
        assert type(there.cpu()) is torch.Tensor
        assert not torch.zeros(2).is_cuda


@pytest.mark.parametrize(
    "mistake",
    [
        lambda there: there + X,
        lambda there: torch.cat([X, there]),
        lambda there: there[torch.tensor([0, 1])],
        lambda there: X[there.long()[:, 0]],
        lambda there: torch.nn.functional.linear(there, X),
        lambda there: there.masked_fill(X > 1, 0),
        lambda there: there + X.to("cuda:1"),
        lambda there: X.add_(there),
    ],
)
def test_tensors_of_two_devices_do_not_meet(mistake):
    with pretended_gpu(2):
        there = X.to("cuda")
        with pytest.raises(RuntimeError, match="meet"):
            mistake(there)


def test_numpy_does_not_read_there():
    with pretended_gpu():
        there = X.to("cuda")
        for read in (lambda: there.numpy(), lambda: np.asarray(there)):
            with pytest.raises(TypeError, match="can't convert cuda"):
                read()


def test_modules_move_and_learn():
    with pretended_gpu():
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to("cuda")
        with torch.autocast("cuda", torch.bfloat16):
            assert model[0](X.to("cuda")).dtype == torch.bfloat16
        optimizer = torch.optim.AdamW(model.parameters())
        model(X.to("cuda")).sum().backward()
        assert all(p.grad is not None and p.grad.is_cuda for p in model.parameters())
        optimizer.step()
        model.to("cpu")
    assert all(type(p) is torch.nn.Parameter for p in model.parameters())
