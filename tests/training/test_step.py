"""Gradients of a batch: in micro-batches exactly those of the whole batch at once."""

import csv

import numpy as np
import pytest
import torch

from tests.training.conftest import opened
from tests.training.toys import Broken, Global, Local, ToyEncoder
from vlscore.errors import TrainingDiverged
from vlscore.training import TrainingSettings
from vlscore.training.minibatches import BatchSource
from vlscore.training.processes import TrainingProcesses
from vlscore.training.step import Step, Towers, make_optimizer
from vlscore.training.training_pairs import prepare

IDS = [f"s{number}" for number in range(12)]


@pytest.fixture(scope="module")
def lateral_pairs(lateral_table, tmp_path_factory):
    views = opened(lateral_table, views="frontal+lateral")
    return prepare(views, tmp_path_factory.mktemp("pairs"))


def _batch(pairs, encoder, *, lateral=False):
    settings = TrainingSettings(batch_size=12)
    source = BatchSource(pairs, np.arange(len(pairs)), encoder, settings, lateral=lateral)
    return next(source.training(0, 1))


def _gradients(pairs, micro_batch, objective, *, lateral=False, **options):
    """Loss and gradients of one step in float64, and the towers it was made with."""
    encoder = ToyEncoder(**options).double().train()
    towers = Towers(encoder, local=objective.local, precision="fp32")
    step = Step(towers, objective, TrainingProcesses(), micro_batch=micro_batch)
    parts = step(_batch(pairs, encoder, lateral=lateral), 3, IDS)
    found = {
        name: parameter.grad.clone()
        for module in (encoder, objective)
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }
    return parts, found, encoder


@pytest.mark.parametrize("micro_batch", [1, 5, 12, 100])
@pytest.mark.parametrize("make", [Global, Local])
def test_micro_batches_give_the_gradients_of_the_whole_batch(pairs, make, micro_batch):
    whole, expected, _ = _gradients(pairs, 0, make().double())
    parts, found, _ = _gradients(pairs, micro_batch, make().double())
    assert parts == pytest.approx(whole, rel=1e-13)
    assert found.keys() == expected.keys()
    assert {"rows.weight", "words.weight", "image_out.weight", "scale"} <= found.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-11, atol=1e-13)


def test_the_gradients_are_those_of_plain_backpropagation(pairs):
    """Against autograd through towers and loss in one piece."""
    objective = Local().double()
    _, found, _ = _gradients(pairs, 4, objective)
    encoder = ToyEncoder().double().train()
    batch = _batch(pairs, encoder)
    again = Local().double()
    features = Towers(encoder, local=True, precision="fp32")(batch, slice(0, 12))
    from vlscore.training.objective import PairFeatures

    sum(again(PairFeatures(**features, same=batch.same)).values()).backward()
    for module in (encoder, again):
        for name, parameter in module.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(found[name], parameter.grad, rtol=1e-11, atol=1e-13)


def test_a_missing_lateral_view_counts_as_zeros(lateral_pairs):
    encoder = ToyEncoder().double()
    batch = _batch(lateral_pairs, encoder, lateral=True)
    towers = Towers(encoder, local=False, precision="fp32")
    found = towers(batch, slice(0, 12))["images"]
    frontal = encoder.embed_images(batch.pixels)
    lateral = encoder.embed_lateral_images(batch.lateral)
    assert 0 < len(lateral) < 12
    rows = iter(lateral)
    for row, there in enumerate(batch.has_lateral):
        expected = (frontal[row] + (next(rows) if there else 0)) / 2
        torch.testing.assert_close(found[row], expected)


def test_both_passes_drop_the_same(pairs):
    """With dropout, the second pass repeats the first; else gradients would belong to no loss."""
    _, one, _ = _gradients(pairs, 12, Local().double(), dropout=0.5)
    torch.manual_seed(99)
    _, same, _ = _gradients(pairs, 12, Local().double(), dropout=0.5)
    for name, gradient in one.items():
        assert torch.equal(gradient, same[name])
    loss, halves, _ = _gradients(pairs, 6, Local().double(), dropout=0.5)
    again, repeated, _ = _gradients(pairs, 6, Local().double(), dropout=0.5)
    assert loss == again
    assert all(torch.equal(halves[name], repeated[name]) for name in halves)


def test_batch_statistics_are_updated_once(pairs):
    _, _, whole = _gradients(pairs, 0, Global().double(), norm=True)
    _, _, micro = _gradients(pairs, 12, Global().double(), norm=True)
    torch.testing.assert_close(whole.norm.running_mean, micro.norm.running_mean)
    _, _, halves = _gradients(pairs, 6, Global().double(), norm=True)
    encoder = ToyEncoder(norm=True).double().train()
    batch = _batch(pairs, encoder)
    for rows in (slice(0, 6), slice(6, 12)):
        encoder.image_features(batch.pixels[rows])
    torch.testing.assert_close(halves.norm.running_mean, encoder.norm.running_mean)
    assert halves.norm.momentum == 0.1


def test_a_loss_that_is_not_finite_names_its_studies(pairs):
    encoder = ToyEncoder().train()
    step = Step(Towers(encoder, local=False, precision="fp32"), Broken(), TrainingProcesses())
    with pytest.raises(TrainingDiverged) as raised:
        step(_batch(pairs, encoder), 6, IDS)
    assert "the loss of step 7 is not finite (image inf)" in str(raised.value)
    assert "s0, s1, s2, s3, s4, s5, s6, s7, ..." in str(raised.value)
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_bf16_changes_features_a_little_and_gives_float32(pairs):
    encoder = ToyEncoder()
    batch = _batch(pairs, encoder)
    full, half = (
        Towers(encoder, local=True, precision=precision)(batch, slice(0, 12))
        for precision in ("fp32", "bf16")
    )
    for name in ("images", "reports", "patches", "words"):
        assert half[name].dtype == torch.float32
        torch.testing.assert_close(half[name], full[name], rtol=0.05, atol=0.02)
    assert not torch.equal(half["images"], full["images"])


def test_only_matrices_decay():
    settings = TrainingSettings(weight_decay=0.3)
    groups = make_optimizer(ToyEncoder(), Global(), settings).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert all(p.ndim > 1 for p in groups[0]["params"])
    assert {p.ndim for p in groups[1]["params"]} == {0, 1}


def test_loaded_weights_learn_at_their_own_rate():
    settings = TrainingSettings(loaded_rate=0.1)
    encoder = ToyEncoder()
    name, module = next((n, m) for n, m in encoder.named_children() if list(m.parameters()))
    groups = make_optimizer(encoder, Global(), settings, (name,)).param_groups
    slow = {p for group in groups if group["share"] == 0.1 for p in group["params"]}
    assert slow == set(module.parameters())
    assert {group["share"] for group in groups} == {0.1, 1.0}
    whole = make_optimizer(encoder, Global(), TrainingSettings(), (name,)).param_groups
    assert [group["share"] for group in whole] == [1.0, 1.0]


def test_the_rate_of_a_step_is_that_share_of_the_schedules(run_toy, tmp_path, monkeypatch):
    """The whole toy was loaded; the objective's scale, the only float64 number, was not."""
    made, taken = torch.optim.AdamW.step, []

    def step(self, closure=None):
        taken.append({g["params"][0].dtype: g["lr"] for g in self.param_groups})
        return made(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    run = run_toy(tmp_path / "out", loaded_rate=0.25)
    with (run.folder / "log.csv").open(encoding="utf-8", newline="") as stream:
        rates = [float(row["learning_rate"]) for row in csv.DictReader(stream)]
    assert len(set(rates)) > 3
    assert [each[torch.float64] for each in taken] == pytest.approx(rates)
    assert [each[torch.float32] for each in taken] == pytest.approx([r / 4 for r in rates])


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_norms_stay_as_they_are_while_the_rest_trains(frozen):
    encoder = ToyEncoder(dropout=0.5, norm=True)
    Towers(encoder, local=False, precision="fp32", frozen_norms=frozen).train()
    assert encoder.dropout.training
    assert encoder.norm.training != frozen


def test_no_gradient_is_longer_than_the_limit_when_the_optimiser_gets_it(
    run_toy, tmp_path, monkeypatch
):
    """The log has the lengths before: without a limit the optimiser gets these."""
    made, taken = torch.optim.AdamW.step, []

    def step(self, closure=None):
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        taken.append(float(torch.cat([g.flatten() for g in grads if g is not None]).norm()))
        return made(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    limit = 0.01
    for clip in (limit, 0.0):
        taken.clear()
        run = run_toy(tmp_path / f"clip-{clip}", clip=clip)
        with (run.folder / "log.csv").open(encoding="utf-8", newline="") as stream:
            before = [float(row["gradient"]) for row in csv.DictReader(stream)]
        assert max(before) > 2 * limit
        expected = [min(length, clip or length) for length in before]
        assert taken == pytest.approx(expected, rel=1e-4)
