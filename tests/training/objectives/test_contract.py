"""What every objective keeps; a new one is in the registry, and so it is here."""

from dataclasses import fields, replace

import pytest
import torch

from tests.training.objectives.pairs import DIM, LOCAL_DIM, drawn_pairs
from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives import local_losses as local
from vlscore.training.registry import OBJECTIVES, find_objective

# Parts through which no whole gradient flows: MGCA's assignments are targets, and images follow
# reports that are held still.
TARGETS = {"mgca": {"prototype"}, "judging": {"preference", "position"}}
LOCAL = [name for name, member in OBJECTIVES.items() if member.local]


@pytest.fixture(params=OBJECTIVES.names())
def objective(request) -> Objective:
    torch.manual_seed(5)
    found = find_objective(request.param, dim=DIM, local_dim=LOCAL_DIM)
    return found.double().eval()


def loss_of(objective: Objective, pairs: PairFeatures) -> torch.Tensor:
    return torch.stack(list(objective(pairs).values())).sum()


def number(objective: Objective, pairs: PairFeatures) -> float:
    return loss_of(objective, pairs).item()


def in_order(pairs: PairFeatures, order: torch.Tensor) -> PairFeatures:
    changed = {
        field.name: value[order]
        for field in fields(pairs)
        if (value := getattr(pairs, field.name)) is not None
    }
    return replace(pairs, **changed | {"same": pairs.same[order][:, order]})


def test_says_what_it_is(objective):
    assert objective.name in OBJECTIVES
    assert "20" in objective.citation
    own = objective.name == "judging"
    assert ("docs/objectives.md" if own else "github.com/") in objective.citation


@pytest.mark.parametrize("options", [{}, {"same": True, "weights": True, "missing_places": True}])
def test_the_order_of_the_batch_does_not_count(objective, options):
    pairs = drawn_pairs(**options)
    shuffled = in_order(pairs, torch.tensor([3, 0, 6, 5, 1, 2, 4]))
    assert number(objective, shuffled) == pytest.approx(number(objective, pairs))


@pytest.mark.parametrize("options", [{}, {"same": True, "weights": True, "missing_places": True}])
def test_padding_does_not_count(objective, options):
    tight, padded = (drawn_pairs(padding=padding, **options) for padding in (0, 4))
    assert number(objective, padded) == pytest.approx(number(objective, tight))


def test_missing_places_do_not_count(objective):
    pairs = drawn_pairs(missing_places=True)
    noise = torch.randn_like(pairs.patches)
    patches = torch.where(pairs.is_patch[..., None], pairs.patches, noise)
    changed = replace(pairs, patches=patches)
    assert number(objective, changed) == pytest.approx(number(objective, pairs))


def test_gradients_are_finite_and_reach_what_is_looked_at(objective):
    pairs = drawn_pairs(same=True, padding=2)
    looked_at = {"images": pairs.images, "reports": pairs.reports}
    if objective.local:
        looked_at |= {"patches": pairs.patches, "words": pairs.words}
    # Vectors of length zero must not give gradients that are no numbers.
    for tensor in looked_at.values():
        tensor[2] = 0
        tensor.requires_grad_()
    loss_of(objective, pairs).backward()
    for name, tensor in looked_at.items():
        assert tensor.grad.isfinite().all(), name
        assert tensor.grad.abs().sum() > 0, name
    for name, parameter in objective.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_gradient_is_that_of_the_loss(objective):
    pairs = drawn_pairs(4, longest=3, places=4)
    names = ["images", "reports"] + ["patches", "words"] * objective.local

    def loss(*tensors: torch.Tensor) -> torch.Tensor:
        parts = objective(replace(pairs, **dict(zip(names, tensors, strict=True))))
        left_out = TARGETS.get(objective.name, set())
        return torch.stack([part for name, part in parts.items() if name not in left_out]).sum()

    given = [getattr(pairs, name).clone().requires_grad_() for name in names]
    # Places and words are many numbers: one random direction through all of them.
    torch.manual_seed(7)
    quick = objective.local
    assert torch.autograd.gradcheck(loss, given, atol=1e-5, rtol=1e-3, fast_mode=quick)


def test_rows_that_are_the_same_are_no_negatives(objective):
    pairs = drawn_pairs()
    # Row 4 repeats row 1, so that as negatives they could not be distinguished.
    repeat = torch.tensor([0, 1, 2, 3, 1, 5, 6])
    doubled = in_order(pairs, repeat)
    same = torch.eye(7, dtype=torch.bool)
    known = same.clone()
    known[1, 4] = known[4, 1] = True
    without, with_them = (number(objective, replace(doubled, same=s)) for s in (same, known))
    assert with_them < without * (1 - 1e-9)


@pytest.mark.parametrize("name", ["gloria", "limitr"])
def test_a_batch_too_large_to_keep_gives_the_same_loss_and_gradient(name, monkeypatch):
    objective = find_objective(name, dim=DIM, local_dim=LOCAL_DIM).double().train()
    found, again = [], []
    checkpoint = local.checkpoint
    monkeypatch.setattr(
        local, "checkpoint", lambda *given, **how: again.append(1) or checkpoint(*given, **how)
    )
    for most in (1 << 26, 0):
        assert not again
        monkeypatch.setattr(local, "_MOST_STORED", most)
        pairs = drawn_pairs(5, padding=1)
        pairs.patches.requires_grad_()
        objective.zero_grad()
        torch.manual_seed(4)
        loss = loss_of(objective, pairs)
        loss.backward()
        gradients = [parameter.grad for parameter in objective.parameters()]
        found.append([loss.detach(), pairs.patches.grad, *gradients])
    assert len(again) == 5
    for kept, computed_again in zip(*found, strict=True):
        assert torch.equal(kept, computed_again)


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_objective_says_what_the_encoder_lacks(name):
    with pytest.raises(InvalidSetting, match="compares places with words"):
        find_objective(name, dim=DIM, local_dim=None)
    objective = find_objective(name, dim=DIM, local_dim=LOCAL_DIM).double()
    with pytest.raises(InvalidSetting, match="compares places with words"):
        objective(replace(drawn_pairs(), words=None, is_word=None))
    pairs = drawn_pairs()
    with pytest.raises(InvalidSetting, match="have 5 numbers and those of words 4"):
        objective(replace(pairs, words=pairs.words[:, :, :4]))
