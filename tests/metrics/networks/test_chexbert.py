"""CheXbert against the released package f1chexbert on the same pseudo-random checkpoint."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.metrics.networks.constructed import (
    LONG,
    REPORTS,
    golden,
    tensors_of,
    write_vocabulary,
)
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.metrics import CheXbert

TOLERANCE = 1e-5
TEXTS = [*REPORTS, LONG]


@pytest.fixture(scope="module")
def chexbert(chexbert_weights):
    return CheXbert(chexbert_weights)


def test_logits_and_vectors_are_those_of_the_package(chexbert):
    heads, vectors, _ = chexbert.logits(TEXTS)
    expected = golden("chexbert")
    assert torch.cat(heads, dim=1).numpy() == pytest.approx(
        np.array(expected["logits"]), abs=TOLERANCE
    )
    assert vectors.numpy() == pytest.approx(np.array(expected["cls"]), abs=TOLERANCE)


def test_labels_are_those_of_the_package(chexbert):
    labels = [list(each.labels.values()) for each in chexbert.annotate(TEXTS)]
    # The package writes "" for what is not mentioned.
    expected = [[None if x == "" else x for x in row] for row in golden("chexbert")["labels"]]
    assert labels == expected
    assert {x for row in labels for x in row} == {None, 0, 1, -1}


def test_a_long_report_is_cut_and_says_so(chexbert):
    flags = [each.is_truncated for each in chexbert.annotate(TEXTS)]
    assert flags == [False] * len(REPORTS) + [True]


def test_a_safetensors_conversion_reads_the_same(chexbert, tmp_path):
    tensors = tensors_of(golden("chexbert")["shapes"])
    save_file(tensors, tmp_path / "chexbert.safetensors")
    write_vocabulary(tmp_path)
    converted = CheXbert(tmp_path)
    assert torch.equal(converted.logits(REPORTS)[1], chexbert.logits(REPORTS)[1])


def test_what_does_not_fit_is_refused_with_its_name(chexbert_weights, tmp_path):
    tensors = tensors_of(golden("chexbert")["shapes"])
    write_vocabulary(tmp_path)
    del tensors["linear_heads.3.bias"]
    torch.save({"model_state_dict": tensors}, tmp_path / "chexbert.pth")
    with pytest.raises(IncompatibleCheckpoint, match=r"missing \(linear_heads\.3\.bias\)"):
        CheXbert(tmp_path)
    torch.save({"model_state_dict": {"weight": torch.zeros(2)}}, tmp_path / "chexbert.pth")
    with pytest.raises(IncompatibleCheckpoint, match="has no BERT encoder"):
        CheXbert(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    with pytest.raises(IncompatibleCheckpoint, match="holds 5 word pieces"):
        CheXbert(chexbert_weights, tmp_path)


def test_a_vocabulary_that_is_not_there_is_not_fetched(chexbert_weights):
    with pytest.raises(WeightsNotFound, match="no such vocabulary file or folder"):
        CheXbert(chexbert_weights, "bert-base-uncased")
