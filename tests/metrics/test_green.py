"""GREEN's values: from a stand-in for its model, and from noise."""

import re

import numpy as np
import pytest

from tests.metrics.contract import check_metric, values_of
from tests.metrics.networks.constructed_green import NONE, answer, errors, write_green
from vlscore.metrics import compute, find_metric, signature
from vlscore.metrics.library.green import Green
from vlscore.metrics.networks import green_model as judges


def _answers(memo, model, pairs):
    """In place of the model: words of both reports match, the candidate's others are wrong."""
    found = []
    for candidate, reference in pairs:
        words, others = ({*text.split()} for text in (candidate, reference))
        counts = errors(min(len(words - others), 8), 0, 0, 0, 0, 0)
        found.append(answer(counts, NONE, f"{len(words & others)}. words"))
    return found


@pytest.fixture
def stand(monkeypatch):
    monkeypatch.setattr("vlscore.metrics.networks.green_model.known_answers", _answers)
    monkeypatch.setattr(Green, "files", lambda *_: (None,))
    monkeypatch.setattr(Green, "facts", lambda *_: {"model": "stand"})


def test_it_keeps_the_contract_whatever_answers(stand):
    check_metric("green")


def test_values_are_those_of_the_models_answers(stand):
    found = compute("green", ["a b c d", "e"], ["a b c", "f"])
    assert found["green"].tolist() == [0.75, 0.0]
    assert found["green.significant-false-finding"].tolist() == [1.0, 1.0]


def test_noise_has_no_score(tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "LONGEST", 80)
    metric = find_metric("green")(model=str(write_green(tmp_path)))
    values = values_of(metric, ["the left effusion"], ["no effusion"])
    assert np.isnan(values.columns[0]).all()
    assert "GREEN's answer cannot be read: it has no section" in str(values.failures[0])
    stated = str(signature(metric))
    assert f"|model:{tmp_path.name}@" in stated
    assert re.search(r"\|prompt:[0-9a-f]{12}\|", stated)
    assert str(tmp_path.parent) not in stated
