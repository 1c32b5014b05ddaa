"""MedCLIP's loss against its formula, and the labels it is given."""

import pytest
import torch

from tests.training.objectives.pairs import drawn_pairs
from vlscore.findings import CHEXPERT_LABELS as LABELS
from vlscore.training.objectives.contrastive import Medclip
from vlscore.training.objectives.finding_labels import finding_labels


def test_the_scale_stays_within_the_authors_bounds():
    objective = Medclip().double()
    for value, kept in ((9.0, 4.6052), (-3.0, 0.0)):
        objective.log_scale.data.fill_(value)
        objective(drawn_pairs())
        assert objective.log_scale.item() == pytest.approx(kept)


def test_labels_are_read_from_reports():
    reports = [
        "Possible pneumonia. No pleural effusion.",
        "Small left effusion.",
        "The lungs are clear.",
        "",
    ]
    labels = finding_labels(reports)
    assert labels.shape == (4, len(LABELS)) == (4, 14)
    assert labels.dtype == torch.float32
    column = {name: labels[:, place].tolist() for place, name in enumerate(LABELS)}
    assert column["Pneumonia"] == [-1, 0, 0, 0]
    assert column["Pleural Effusion"] == [0, 1, 0, 0]
    # An empty report states nothing, not even that there is no finding.
    assert column["No Finding"] == [0, 0, 1, 0]
    assert finding_labels([]).shape == (0, 14)
