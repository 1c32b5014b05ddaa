"""Losses of published objectives against what their authors' code printed, or their formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from open_clip.loss import SigLipLoss

from tests.training.objectives.pairs import (
    DIM,
    LOCAL_DIM,
    array,
    both_directions,
    cosine,
    drawn_pairs,
    total,
    with_known_numbers,
)
from vlscore.training.objectives.contrastive import Biovil, Convirt, Medclip, Siglip
from vlscore.training.objectives.limitr_loss import Limitr
from vlscore.training.objectives.local_losses import Gloria
from vlscore.training.objectives.mgca_loss import Mgca, assign, attended_shares


def drawn(**options):
    """The pairs that the authors' code was given."""
    return drawn_pairs(9, seed=11, places=16, longest=12, **options)


def test_convirt():
    # NTXentLoss of edreisMD/ConVIRT-pytorch at c99ca5f, in float64.
    found = total(Convirt()(drawn_pairs(9, seed=11)))
    assert found == pytest.approx(6.868137248782449, rel=1e-12)


@pytest.mark.parametrize("same", [False, True])
def test_convirt_and_biovil_are_infonce(same):
    pairs = drawn_pairs(same=same)
    scores = np.array([[cosine(a, b) for b in array(pairs.reports)] for a in array(pairs.images)])
    images, reports = both_directions(scores / 0.2, array(pairs.same))
    assert total(Biovil(temperature=0.2)(pairs)) == pytest.approx((images + reports) / 2)
    found = total(Convirt(temperature=0.2, image_weight=0.3)(pairs))
    assert found == pytest.approx(0.3 * images + 0.7 * reports)


def test_medclip():
    # _soft_clip_loss of RyanWangZf/MedCLIP at 9c3396f, with the model's starting scale.
    found = total(Medclip().double()(drawn_pairs(9, seed=11)))
    assert found == pytest.approx(8.94391008918649, rel=1e-6)


def test_gloria():
    # local_loss and global_loss of marshuang80/gloria at 416466a, in float64.
    found = Gloria(local_weight=0.5, global_weight=2.0)(drawn(padding=3))
    assert float(found["global"]) == pytest.approx(2 * 16.620706924586862, rel=1e-12)
    assert float(found["local"]) == pytest.approx(0.5 * 24.89762018218066, rel=1e-12)


def test_limitr():
    # calc_loss of gefend/LIMITR at bd53a77, on reports without padding; the weights of words
    # within a pair are float32 there.
    found = with_known_numbers(Limitr(local_dim=LOCAL_DIM))(drawn(full=True))
    assert found["global"].item() == pytest.approx(16.620706924586862, rel=1e-12)
    assert found["local_external"].item() == pytest.approx(5.247626160921921, rel=1e-12)
    assert found["local_internal"].item() == pytest.approx(0.5021614731792459, rel=1e-7)
    # Between pairs it holds for reports of any length.
    found = with_known_numbers(Limitr(local_dim=LOCAL_DIM))(drawn())
    assert found["local_external"].item() == pytest.approx(4.966398831200522, rel=1e-12)


def test_limitrs_dropout_is_for_training_alone():
    objective, pairs = Limitr(local_dim=LOCAL_DIM).double(), drawn_pairs()
    assert total(objective(pairs)) != total(objective(pairs))
    objective.eval()
    assert total(objective(pairs)) == total(objective(pairs))


@pytest.mark.parametrize("places_are_weighed", [False, True])
def test_mgca(places_are_weighed):
    # The three losses of HKU-MedAI/MGCA at 680fe4a, on reports without padding; theirs rounds the
    # assignment to float32. Places are weighed for ViT, and not for ResNet.
    pairs = drawn(full=True, weights=True)
    if not places_are_weighed:
        pairs = replace(pairs, patch_weights=None)
    found = with_known_numbers(Mgca(dim=DIM, prototypes=20, token_weight=0.5))(pairs)
    assert found["instance"].item() == pytest.approx(23.26397009348048, rel=1e-12)
    token = 1.5530742701818885 if places_are_weighed else 1.5206319881576413
    assert found["token"].item() == pytest.approx(0.5 * token, rel=1e-12)
    assert found["prototype"].item() == pytest.approx(4.1462301779399215, rel=1e-7)


def test_mgcas_prototypes_are_shared_out_and_kept_at_length_1():
    objective = Mgca(dim=DIM, prototypes=4).double()
    objective(drawn_pairs())
    lengths = objective.prototypes.weight.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))
    scores = torch.linspace(-1, 1, 160, dtype=torch.float64).reshape(40, 4).sin()
    codes = assign(scores.requires_grad_(), epsilon=0.5, iterations=50)
    assert not codes.requires_grad
    torch.testing.assert_close(codes.sum(1), torch.ones(40, dtype=torch.float64))
    torch.testing.assert_close(codes.sum(0), torch.full((4,), 10.0, dtype=torch.float64))


def test_mgcas_attention_is_clipped_to_its_middle():
    weights = torch.tensor([[0.0, 1.0, 2.0, 100.0, 0.5]], dtype=torch.float64)
    there = torch.tensor([[True, True, True, True, False]])
    found = attended_shares(weights, there, torch.zeros(1, 5, 2, dtype=torch.float64))
    middle = np.array([0.3, 1.0, 2.0, 70.6])
    np.testing.assert_allclose(found[0], [*middle / middle.sum(), 0])


def test_siglip_equals_open_clips():
    pairs = drawn_pairs(11, seed=4)
    images, reports = (x / x.norm(dim=1, keepdim=True) for x in (pairs.images, pairs.reports))
    expected = SigLipLoss()(images, reports, torch.tensor(10.0), torch.tensor(-10.0))
    objective = Siglip().double()
    assert total(objective(pairs)) == pytest.approx(expected.item())


@pytest.mark.parametrize("name", ["gloria", "limitr"])
def test_reports_without_words_have_no_local_loss(name):
    pairs, objective = drawn_pairs(5), {"gloria": Gloria, "limitr": Limitr}[name]
    made = objective(**{"local_dim": LOCAL_DIM} if name == "limitr" else {}).double()
    found = made(replace(pairs, is_word=torch.zeros_like(pairs.is_word)))
    assert found.pop("global") > 0
    assert all(part.item() == 0 for part in found.values())
