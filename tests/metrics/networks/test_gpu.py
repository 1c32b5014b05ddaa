"""The annotators' networks on a GPU read what they read on the CPU."""

import pytest
import torch

from tests.metrics.networks.constructed import REPORTS
from tests.metrics.networks.constructed_green import write_green
from tests.metrics.networks.constructed_ratescore import write_ratescore
from tests.pretended_gpu import pretended_gpu
from vlscore.metrics import CheXbert, GreenJudge, RadGraph, RaTEReader
from vlscore.metrics.networks import green_model as green

SOME = ["", *REPORTS[:3]]


def read(chexbert_weights, radgraph_weights, device):
    chexbert = CheXbert(chexbert_weights, device=device)
    radgraph = RadGraph(radgraph_weights, device=device)
    labels = [x.labels for x in chexbert.annotate(SOME)]
    graphs = [x.to_dict() for x in radgraph.annotate(SOME)]
    return labels, graphs


@pytest.mark.slow
def test_no_tensor_stays_behind_on_the_cpu(chexbert_weights, radgraph_weights):
    here = read(chexbert_weights, radgraph_weights, "cpu")
    with pretended_gpu():
        assert read(chexbert_weights, radgraph_weights, "cuda") == here


@pytest.mark.gpu
def test_a_gpu_reads_the_same(chexbert_weights, radgraph_weights):
    here, there = (read(chexbert_weights, radgraph_weights, device) for device in ("cpu", "cuda"))
    assert there == here


def read_by_transformers(folder, device):
    reader = RaTEReader(*write_ratescore(folder), device=device)
    read = reader.annotate(SOME)
    return read, reader.vectors([entity.text for entity in read[1]])


@pytest.mark.slow
def test_transformers_models_leave_no_tensor_behind_on_the_cpu(tmp_path, monkeypatch):
    entities, vectors = read_by_transformers(tmp_path, "cpu")
    monkeypatch.setattr(green, "LONGEST", 90)
    monkeypatch.setattr(green, "precision_on", lambda device: "fp32")
    pairs = [("the effusion", "no effusion"), ("left", "")]
    answers = GreenJudge(write_green(tmp_path / "green")).answers(pairs)
    assert all(isinstance(answer, str) and answer for answer in answers)
    with pretended_gpu():
        found = read_by_transformers(tmp_path, "cuda")
        assert found[0] == entities
        assert torch.allclose(found[1], vectors, atol=1e-5)
        judge = GreenJudge(tmp_path / "green", device="cuda")
        assert judge.answers(pairs) == answers


@pytest.mark.gpu
def test_a_gpu_runs_transformers_models(tmp_path, monkeypatch):
    entities, vectors = read_by_transformers(tmp_path, "cpu")
    found = read_by_transformers(tmp_path, "cuda")
    assert found[0] == entities
    assert torch.allclose(found[1], vectors, atol=1e-4)
    # In 16 bits, so that its words may be others; it has as much room for them.
    monkeypatch.setattr(green, "LONGEST", 280)
    judge = GreenJudge(write_green(tmp_path / "green"), device="cuda")
    assert judge.precision == "fp16"
    (answer,) = judge.answers([("the effusion", "no effusion")])
    assert isinstance(answer, str)
    assert answer
