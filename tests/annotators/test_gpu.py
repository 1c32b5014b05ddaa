"""The annotators' networks on a GPU read what they read on the CPU."""

import pytest

from tests.annotators.constructed import REPORTS
from tests.pretended_gpu import pretended_gpu
from vlscore.annotators import CheXbert, RadGraph

SOME = ["", *REPORTS[:3]]


def read(chexbert_weights, radgraph_weights, device):
    labels = [x.labels for x in CheXbert(chexbert_weights, device=device).annotate(SOME)]
    graphs = [x.to_dict() for x in RadGraph(radgraph_weights, device=device).annotate(SOME)]
    return labels, graphs


def test_no_tensor_stays_behind_on_the_cpu(chexbert_weights, radgraph_weights):
    here = read(chexbert_weights, radgraph_weights, "cpu")
    with pretended_gpu():
        assert read(chexbert_weights, radgraph_weights, "cuda") == here


@pytest.mark.gpu
def test_a_gpu_reads_the_same(chexbert_weights, radgraph_weights):
    here, there = (read(chexbert_weights, radgraph_weights, device) for device in ("cpu", "cuda"))
    assert there == here
