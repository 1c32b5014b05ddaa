"""Filling a module with a checkpoint's tensors."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from vlscore.encoders import load_state_dict, without_initialisation
from vlscore.encoders.checkpoints import without_wrappers
from vlscore.errors import IncompatibleCheckpoint

SOURCE = Path("model.ckpt")


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)


def tensors() -> dict[str, torch.Tensor]:
    return {f"net.{key}": torch.full_like(x, 2) for key, x in Small().state_dict().items()}


def in_container(name: str) -> str:
    return f"net.{name}"


def test_every_value_comes_from_the_checkpoint() -> None:
    with without_initialisation():
        module = Small()
    load_state_dict(module, tensors(), source=SOURCE, key_of=in_container)
    assert all((value == 2).all() for value in module.state_dict().values())


def test_every_kind_of_misfit_is_named_by_the_checkpoints_own_key() -> None:
    given = tensors()
    del given["net.project.bias"]
    given["net.extra.weight"] = torch.zeros(1)
    given["net.norm.weight"] = torch.zeros(5)
    with pytest.raises(IncompatibleCheckpoint) as caught:
        load_state_dict(Small(), given, source=SOURCE, key_of=in_container)
    message = str(caught.value)
    assert message.startswith("model.ckpt does not fit Small: ")
    assert "1 missing (net.project.bias)" in message
    assert "1 unexpected (net.extra.weight)" in message
    assert "1 mis-shaped (net.norm.weight (5,) instead of (2,))" in message


@pytest.mark.parametrize(
    "wrap",
    [
        nn.DataParallel,
        torch.compile,
        lambda model: torch.compile(nn.DataParallel(model)),
        lambda model: nn.DataParallel(torch.compile(model)),
        lambda model: nn.ModuleDict({"net": nn.DataParallel(torch.compile(model))}),
    ],
)
def test_wrappers_of_torch_do_not_change_the_names(wrap: Callable[[nn.Module], nn.Module]) -> None:
    stored = wrap(Small()).state_dict()
    found = {key.removeprefix("net.") for key in without_wrappers(stored)}
    assert found == set(Small().state_dict())


def test_a_part_that_is_called_module_keeps_its_name() -> None:
    model = nn.ModuleDict({"module": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    assert list(without_wrappers(model.state_dict())) == list(model.state_dict())


def test_parts_declared_unused_may_be_there_or_not() -> None:
    given = tensors() | {"net.head.0.weight": torch.zeros(7)}
    for tensors_given in (given, tensors()):
        module = Small()
        load_state_dict(
            module, tensors_given, source=SOURCE, key_of=in_container, unused=["net.head.*"]
        )
        assert all((value == 2).all() for value in module.state_dict().values())
    with pytest.raises(IncompatibleCheckpoint, match=r"1 unexpected \(net\.head\.0\.weight\)"):
        load_state_dict(Small(), given, source=SOURCE, key_of=in_container)


def test_buffers_that_some_versions_rebuild_may_be_missing_or_left_over() -> None:
    given = tensors() | {"net.position_ids": torch.arange(4)}
    del given["net.norm.num_batches_tracked"]
    module = Small()
    load_state_dict(module, given, source=SOURCE, key_of=in_container)
    filled = module.state_dict()
    # Left as the module made it: no batch has been seen.
    assert filled.pop("norm.num_batches_tracked") == 0
    assert all((value == 2).all() for value in filled.values())
