"""RaTEScore: the released package's values, and a worked example."""

import json

import numpy as np
import pytest

from tests.metrics.contract import check_metric
from tests.metrics.networks.constructed import GOLDENS
from tests.metrics.networks.constructed_ratescore import CUT, write_ratescore
from vlscore.core import open_cache
from vlscore.metrics import Batch, Plan, RaTEEntity, compute, find_metric, memo, signature
from vlscore.metrics.library.ratescore import agreement
from vlscore.metrics.networks import ratescore_network as network

GOLDEN = json.loads((GOLDENS / "ratescore.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_ratescore(tmp_path_factory.mktemp("ratescore"))


@pytest.fixture
def chosen(folders):
    ner, synonyms = map(str, folders)
    return lambda **settings: find_metric("ratescore")(ner=ner, synonyms=synonyms, **settings)


@pytest.mark.parametrize("affinity", ["long", "short"])
def test_values_are_those_of_the_released_package(chosen, affinity, released_sentences):
    metric = chosen(affinity=affinity)
    found = compute(metric, [*CUT[1:], CUT[0]], CUT)[str(metric)]
    assert found.tolist() == pytest.approx(GOLDEN[affinity], abs=1e-6)


def test_a_second_run_loads_no_network(chosen, tmp_path, monkeypatch):
    cache = open_cache(tmp_path)
    metric = chosen()
    batch = Batch(CUT[:4], CUT[1:5])
    expected = Plan(metric, cache=cache).values(batch)[metric].columns[0]
    memo.forget()
    monkeypatch.setattr(network, "_loaded", lambda *_: pytest.fail("a network was loaded"))
    found = Plan(metric, cache=cache).values(batch)[metric].columns[0]
    np.testing.assert_array_equal(found, expected)


def test_it_keeps_the_contract(chosen):
    check_metric(chosen())


def test_a_report_without_entities_has_a_half(chosen):
    metric = chosen()
    found = Plan(metric).values(Batch(["", CUT[0], ""], [CUT[0], "", ""]))[metric]
    assert [column.tolist() for column in found.columns] == [[0.5] * 3] * 3


def test_agreement_by_hand():
    import torch

    # The anatomy matches itself; "no effusion" is nearest to "effusion", which states the opposite.
    entities = [RaTEEntity("lung", "ANATOMY"), RaTEEntity("no effusion", "NON-ABNORMALITY")]
    others = [RaTEEntity("lung", "ANATOMY"), RaTEEntity("effusion", "ABNORMALITY")]
    of_entities = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    of_others = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    weights = np.array([0.2856134859160784, 0.16546764653692908])
    expected = (weights * [1.0, 0.8 * 0.8716553966489615]).sum() / weights.sum()
    found = agreement(others, of_others, entities, of_entities, "long")
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_signature_names_both_models_by_digest_and_the_weights(chosen, folders):
    stated = str(signature(chosen(affinity="short")))
    for part in ("|ner:RaTE-NER@", "|synonyms:BioLORD@", "|affinity:short-0.6.0|", "|sentences:"):
        assert part in stated
    assert str(folders[0].parent) not in stated
