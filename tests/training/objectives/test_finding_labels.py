"""Findings as a second aim: the formula, what does not count, and a training run with it."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import DIM, drawn_pairs
from vlscore.errors import InvalidSetting
from vlscore.findings import CHEXPERT_LABELS
from vlscore.training.objectives import finding_labels as module
from vlscore.training.objectives.contrastive import Convirt, Medclip
from vlscore.training.objectives.finding_labels import (
    WithFindings,
    common_observations,
    finding_labels,
)

OBSERVATIONS = 3


def pairs_with(labels):
    drawn = drawn_pairs(len(labels))
    return replace(drawn, labels=torch.cat([drawn.labels, labels.double()], 1))


@pytest.fixture
def labels():
    return torch.tensor([[1, 0, -1], [0, 0, 0], [0, 1, 1], [0, -1, 0], [1, 1, 0.0]])


def joint(objective, weight=0.7):
    torch.manual_seed(3)
    found = WithFindings(objective, observations=OBSERVATIONS, dim=DIM, weight=weight).double()
    with torch.no_grad():
        found.biases.normal_()
    return found


def test_the_loss_is_its_formula(labels):
    pairs = pairs_with(labels)
    objective = joint(Convirt())
    parts = objective(pairs)
    w = objective.directions.detach().numpy()
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    # The last direction is of reports that state nothing.
    wanted = np.array([[*row, float(max(row) <= 0)] for row in labels.tolist()])
    for name, vectors, bias in zip(
        ("images", "reports"), (pairs.images, pairs.reports), objective.biases, strict=True
    ):
        v = vectors.numpy()
        cosines = v @ w.T / np.linalg.norm(v, axis=1, keepdims=True)
        p = 1 / (1 + np.exp(-(8.0 * cosines + bias.detach().numpy())))
        cross = -(wanted * np.log(p) + (1 - wanted) * np.log(1 - p))
        expected = 0.7 * np.where(wanted < 0, 0, cross).sum(1).mean()
        assert parts[f"findings_of_{name}"].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("base", [Convirt, Medclip])
def test_the_objective_keeps_its_own_parts_and_labels(labels, base):
    pairs = pairs_with(labels)
    alone = base().double()(replace(pairs, labels=pairs.labels[:, : len(CHEXPERT_LABELS)]))
    parts = joint(base())(pairs)
    assert {name: parts[name].item() for name in alone} == pytest.approx(
        {name: part.item() for name, part in alone.items()}
    )


def test_observations_are_those_that_enough_reports_state():
    reports = ["Left effusion. No edema."] * 15 + ["Scar."] * 14
    assert common_observations(reports) == ["pleural_effusion"]
    found = finding_labels(["Possible effusion.", "Scar.", ""], ["pleural_effusion", "scar"])
    assert found[:, len(CHEXPERT_LABELS) :].tolist() == [[-1, 0], [0, 1], [0, 0]]
    assert finding_labels([]).shape == (0, 14)


def test_a_run_learns_findings_and_names_them(run_toy, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_REPORTS", 3)
    done = run_toy(tmp_path, findings_weight=1.0, epochs=20, validation_share=0.25)
    observations = done.record["observations"]
    assert observations == sorted(observations)
    assert len(observations) > 1
    with (tmp_path / "log.csv").open(encoding="utf-8") as stream:
        losses = [float(row["loss_findings_of_images"]) for row in csv.DictReader(stream)]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_without_a_common_finding_it_says_so(run_toy, tmp_path):
    with pytest.raises(InvalidSetting, match="no observation is stated by 15"):
        run_toy(tmp_path, findings_weight=1.0)
