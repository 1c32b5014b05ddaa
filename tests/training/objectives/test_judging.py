"""The objective for judging reports, against its formulas in plain numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import DIM, array, both_directions, drawn_pairs
from vlscore.training.objectives.judging import Judging
from vlscore.training.registry import find_objective

PLAIN = "significant=1,insignificant=1,preference=1,position=1,retrieval=1"


def parts_of(settings: str, **options):
    pairs = drawn_pairs(**options)
    objective = find_objective(f"judging({settings})", dim=DIM, local_dim=None).double()
    return pairs, {name: part.item() for name, part in objective(pairs).items()}


def test_every_part_is_its_formula():
    pairs, parts = parts_of(f"{PLAIN},gap=0", same=True)
    i, r, c = (array(x) for x in (pairs.images, pairs.reports, pairs.copies))
    changes, visible = array(pairs.copy_changes), array(pairs.copy_visible)
    long, short, preferred = [], [], []
    for n in range(len(r)):
        for k in range(c.shape[1]):
            squared = float(((c[n, k] - r[n]) ** 2).sum())
            if changes[n, k] >= 1:
                long.append((np.sqrt(squared) - np.sqrt(changes[n, k])) ** 2)
                if visible[n, k]:
                    gain = ((i[n] - c[n, k]) ** 2).sum() - ((i[n] - r[n]) ** 2).sum()
                    preferred.append(np.log1p(np.exp(-4 * gain)))
            elif changes[n, k] == 0:
                short.append(squared)
    distances = ((i[:, None] - r[None]) ** 2).sum(-1)
    assert parts == {
        "significant": pytest.approx(np.mean(long), rel=1e-5),
        "insignificant": pytest.approx(np.mean(short)),
        "preference": pytest.approx(np.mean(preferred)),
        "position": pytest.approx(distances.diagonal().mean()),
        "retrieval": pytest.approx(np.mean(both_directions(-2 * distances, array(pairs.same)))),
    }


def test_the_gap_is_the_last_number_and_no_other_part_sees_it():
    pairs, parts = parts_of(f"{PLAIN},gap=3")
    i, r, c = (array(x)[..., -1] for x in (pairs.images, pairs.reports, pairs.copies))
    assert parts.pop("gap") == pytest.approx(((i - 3) ** 2).mean() + (r**2).mean() + (c**2).mean())
    without = replace(
        pairs,
        images=pairs.images[:, :-1],
        reports=pairs.reports[:, :-1],
        copies=pairs.copies[..., :-1],
    )
    alone = find_objective(f"judging({PLAIN},gap=0)", dim=DIM - 1, local_dim=None).double()
    assert parts == {name: pytest.approx(part.item()) for name, part in alone(without).items()}


def test_comparisons_ask_nothing_of_the_image():
    pairs = drawn_pairs()
    unseen = replace(pairs, copy_visible=torch.zeros_like(pairs.copy_visible))
    assert Judging().double()(unseen)["preference"] == 0


def test_images_do_not_move_reports_by_preference():
    pairs = drawn_pairs()
    pairs.reports.requires_grad_()
    parts = Judging(gap=0).double()(pairs)
    (parts["preference"] + parts["position"]).requires_grad_().backward()
    assert pairs.reports.grad is None
