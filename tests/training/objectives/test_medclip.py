"""MedCLIP's loss against its formula, and the labels it is given."""

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import array, cosine, drawn_pairs, softmax, total
from vlscore.findings import CHEXPERT_LABELS as LABELS
from vlscore.training.objectives.contrastive import Medclip
from vlscore.training.objectives.finding_labels import finding_labels


def expected(pairs, scale):
    images, reports, labels, same = (
        array(x) for x in (pairs.images, pairs.reports, pairs.labels, pairs.same)
    )
    count, total = len(images), 0.0
    for i in range(count):
        others = [k for k in range(count) if k == i or not same[i, k]]
        targets = softmax(np.array([labels[i] @ labels[k] for k in others]))
        for scores in (
            np.array([scale * cosine(images[i], reports[k]) for k in others]),
            np.array([scale * cosine(images[k], reports[i]) for k in others]),
        ):
            total -= 0.5 * (targets * np.log(softmax(scores))).sum()
    return total / count


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_equals_the_formula(same, temperature):
    pairs = drawn_pairs(same=same)
    found = Medclip(temperature=temperature).double()(pairs)
    assert total(found) == pytest.approx(expected(pairs, 1 / temperature))


def test_equals_what_the_authors_code_printed():
    # _soft_clip_loss of RyanWangZf/MedCLIP at 9c3396f, with the model's starting scale.
    found = Medclip().double()(drawn_pairs(9, seed=11))
    assert total(found) == pytest.approx(8.94391008918649, rel=1e-6)


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
