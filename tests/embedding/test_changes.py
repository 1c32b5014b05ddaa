"""Changes of a module's tensors."""

import pytest
import torch
from torch import nn

from vlscore.embedding.cached import Changes


def model():
    inner = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    return nn.Sequential(inner, nn.Linear(3, 1, bias=False))


def watched():
    module = model()
    changes = Changes(module)
    assert changes.are_new()
    assert not changes.are_new()
    return module, changes


def change_in_place(module):
    with torch.no_grad():
        module[1].weight.add_(1)


def change_a_buffer(module):
    module[0][1].running_mean.zero_()


def replace_a_parameter(module):
    module[1].weight = nn.Parameter(torch.zeros(1, 3))


def replace_a_submodule(module):
    module[0][0] = nn.Linear(2, 3)


def replace_below_a_new_submodule(module):
    module[0] = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def add_a_buffer(module):
    module[0].register_buffer("scale", torch.ones(1))


def load_a_state(module):
    module.load_state_dict(model().state_dict())


def train_a_step(module):
    module(torch.ones(4, 2)).sum().backward()
    torch.optim.SGD(module.parameters(), 0.1).step()


@pytest.mark.parametrize(
    "change",
    [
        change_in_place,
        change_a_buffer,
        replace_a_parameter,
        replace_a_submodule,
        replace_below_a_new_submodule,
        add_a_buffer,
        load_a_state,
        train_a_step,
    ],
)
def test_a_change_is_seen_once(change):
    module, changes = watched()
    change(module)
    assert changes.are_new()
    assert not changes.are_new()


def test_what_a_new_submodule_holds_is_watched_too():
    module, changes = watched()
    replace_below_a_new_submodule(module)
    assert changes.are_new()
    with torch.no_grad():
        module[0][0].weight.zero_()
    assert changes.are_new()


def test_using_a_module_is_no_change():
    module, changes = watched()
    module.eval()
    module(torch.ones(4, 2))
    module.to("cpu")
    assert not changes.are_new()


def test_tensors_that_count_no_changes_may_always_have_changed():
    with torch.inference_mode():
        module = nn.Linear(2, 2)
    changes = Changes(module)
    assert changes.are_new()
    assert changes.are_new()
