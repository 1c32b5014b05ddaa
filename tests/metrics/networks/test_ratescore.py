"""RaTEScore's reader against the released package, over the same constructed checkpoints."""

import json

import pytest
import torch

from tests.metrics.networks.constructed import GOLDENS, REPORTS
from tests.metrics.networks.constructed_ratescore import CUT, LABELS, write_ratescore
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.metrics import RaTEReader
from vlscore.metrics.networks.model_files import check_model_folder, load_model
from vlscore.metrics.networks.ratescore_network import _spans

GOLDEN = json.loads((GOLDENS / "ratescore.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_ratescore(tmp_path_factory.mktemp("ratescore"))


@pytest.fixture(scope="module")
def reader(folders):
    return RaTEReader(*folders)


def test_entities_are_those_of_the_released_package(reader, released_sentences):
    found = [[list(entity) for entity in each] for each in reader.annotate(CUT)]
    assert found == GOLDEN["entities"]
    assert len({kind for each in found for _, kind in each}) > 3


def test_an_empty_report_has_no_entities(reader):
    assert reader.annotate(["", REPORTS[0], " \n"])[::2] == [(), ()]


def test_vectors_are_those_of_the_model_and_of_unit_length(reader, folders):
    from transformers import AutoModel, AutoTokenizer

    names = ["small left", "effusion", "small left"]
    found = reader.vectors(names)
    model = AutoModel.from_pretrained(folders[1]).eval()
    encoded = AutoTokenizer.from_pretrained(folders[1])(names, padding=True, return_tensors="pt")
    with torch.no_grad():
        vectors = model(**encoded).last_hidden_state[:, 0]
    assert torch.allclose(found, torch.nn.functional.normalize(vectors, dim=1), atol=1e-5)
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # "_" stands for [CLS] and [SEP], whose labels count only as what comes behind.
        ("_ O Ba Ia O _", [(2, 3, "a")]),
        ("_ Ba Bb O _", [(1, 1, "a"), (2, 2, "b")]),
        ("_ Ba Ib Ia O _", [(1, 3, "a")]),
        ("_ Ia O Ba O _", [(3, 3, "a")]),
        ("_ O Ba Ia _", [(2, 3, "a")]),
        # The same at the end of a sentence whose network calls [SEP] a part of an entity.
        ("_ O Ba Ia I", [(2, 3, "a")]),
        # One that ends directly before it hides it.
        ("_ Ba Bb Ib I", [(1, 1, "a")]),
        ("_ O O _", []),
    ],
)
def test_entities_from_labels(labels, expected):
    marks = labels.split()
    tokens = ["[CLS]", *(f"t{k}" for k in range(len(marks) - 2)), "[SEP]"]
    named = ["O" if mark in "_O" else f"{mark[0]}-{mark[1:]}" for mark in marks]
    assert _spans(tokens, named) == expected


def test_another_models_labels_are_refused(folders, tmp_path):
    place = tmp_path / "ner"
    place.mkdir()
    for path in folders[0].iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    config = json.loads((place / "config.json").read_text())
    config["id2label"] = {row: f"LABEL_{row}" for row in range(len(LABELS))}
    (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(IncompatibleCheckpoint, match="LABEL_0"):
        RaTEReader(place, folders[1])
    (place / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(IncompatibleCheckpoint, match="cannot load"):
        RaTEReader(place, folders[1])


def test_a_model_of_another_kind_is_refused(folders):
    # BioLORD has no head that labels tokens; transformers would make one up.
    with pytest.raises(IncompatibleCheckpoint, match=r"no weights for classifier\."):
        load_model("AutoModelForTokenClassification", folders[1])


@pytest.mark.parametrize(
    ("absent", "said"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "no weights"),
        ("vocab.txt", "no tokenizer"),
    ],
)
def test_what_a_folder_lacks_is_named(folders, tmp_path, absent, said):
    for path in folders[1].iterdir():
        if path.name != absent:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(WeightsNotFound, match=said):
        check_model_folder(tmp_path)
    with pytest.raises(WeightsNotFound, match="no such folder"):
        check_model_folder(tmp_path / "absent")
