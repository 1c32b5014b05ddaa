"""Training on a GPU: features, losses, gradients and updates stay where the encoder is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.pretended_gpu import pretended_gpu
from tests.training.conftest import opened
from tests.training.objectives.pairs import DIM, LOCAL_DIM, drawn_pairs
from tests.training.toys import Local, ToyEncoder
from vlscore.errors import InvalidSetting
from vlscore.training import TrainingSettings
from vlscore.training.minibatches import BatchSource
from vlscore.training.processes import TrainingProcesses
from vlscore.training.registry import OBJECTIVES, find_objective
from vlscore.training.step import Step, Towers, make_optimizer
from vlscore.training.training_pairs import prepare


def there(pairs):
    moved = {name: x.to("cuda") for name, x in vars(pairs).items() if x is not None}
    return replace(pairs, **moved)


@pytest.mark.parametrize(
    ("lateral", "micro_batch", "precision"), [(False, 0, "fp32"), (True, 5, "bf16")]
)
def test_a_step_stays_there(table, lateral_table, tmp_path, lateral, micro_batch, precision):
    views = opened(lateral_table, views="frontal+lateral") if lateral else opened(table)
    pairs = prepare(views, tmp_path)
    settings = TrainingSettings(batch_size=12)
    losses = []

    def step(encoder, objective):
        source = BatchSource(pairs, np.arange(len(pairs)), encoder, settings, lateral=lateral)
        batch = next(source.training(0, 1))
        towers = Towers(encoder, local=True, precision=precision)
        towers.train()
        optimizer = make_optimizer(encoder, objective, settings)
        parts = Step(towers, objective, TrainingProcesses(), micro_batch=micro_batch)(
            batch, 0, ["s"] * 12
        )
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        losses.append(sum(parts.values()))
        return encoder

    step(ToyEncoder(norm=True), Local())
    with pretended_gpu():
        encoder = step(ToyEncoder(norm=True).to("cuda"), Local().to("cuda"))
        assert {p.device.type for p in encoder.parameters()} == {"cuda"}
        grads = {
            name: p.grad
            for name, p in encoder.named_parameters()
            if lateral or "lateral" not in name
        }
        assert all(grad is not None and grad.is_cuda for grad in grads.values())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5 if precision == "fp32" else 0.05)


def test_each_process_takes_a_gpu_of_its_own():
    second = TrainingProcesses(3, 4, local_rank=1)
    with pretended_gpu(2):
        for given in (None, "cuda"):
            assert second.own_device(given) == torch.device("cuda", 1)
            assert TrainingProcesses().own_device(given) == torch.device("cuda")
        assert second.own_device("cpu") == torch.device("cpu")
        with pytest.raises(InvalidSetting, match="cuda:1 was given to 4 processes"):
            second.own_device("cuda:1")
    with pretended_gpu(1), pytest.raises(InvalidSetting, match="there is no device 'cuda:1'"):
        second.own_device(None)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_losses_and_gradients_are_those_of_the_cpu(name):
    torch.manual_seed(5)
    objective = find_objective(name, dim=DIM, local_dim=LOCAL_DIM).double().eval()
    found = []
    for device in ("cpu", "cuda"):
        pairs = drawn_pairs(same=True, weights=True, missing_places=True)
        pairs = there(pairs) if device == "cuda" else pairs
        pairs.images.requires_grad_()
        torch.stack(list(objective.to(device)(pairs).values())).sum().backward()
        found.append(pairs.images.grad.cpu())
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)
