"""What is refused of an archive, and that nothing of it is run or unpacked elsewhere."""

import gzip
import json
import shutil

import pytest
import torch

from tests.metrics.networks.constructed import golden, pack, radgraph_tensors
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint, WeightsNotFound
from vlscore.metrics import RadGraph
from vlscore.metrics.networks.radgraph_model import read_radgraph


@pytest.fixture
def folder(radgraph_weights, tmp_path):
    return shutil.copytree(radgraph_weights, tmp_path / "model")


def _change(folder, change):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def test_an_archive_that_is_not_there(tmp_path):
    with pytest.raises(WeightsNotFound, match="no such RadGraph archive"):
        read_radgraph(tmp_path / "model.tar.gz")
    with pytest.raises(WeightsNotFound, match=r"it lacks config\.json, weights\.th, vocabulary"):
        read_radgraph(tmp_path)
    (tmp_path / "weights.th").write_bytes(b"")
    with pytest.raises(WeightsNotFound, match=r"name the \.tar\.gz"):
        read_radgraph(tmp_path / "weights.th")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("model"), "does not describe a RadGraph model"),
        (
            lambda c: c["dataset_reader"].update(max_span_width=0),
            "does not describe a RadGraph model",
        ),
        (
            lambda c: c["dataset_reader"].update(max_span_width=99),
            "do not belong to the same model",
        ),
        (
            lambda c: c["dataset_reader"]["token_indexers"]["bert"].update(
                model_name="answerdotai/ModernBERT-base"
            ),
            "only BERTs that read lower-case text",
        ),
    ],
)
def test_what_is_not_computed_is_refused(folder, change, message):
    _change(folder, change)
    with pytest.raises(IncompatibleCheckpoint, match=message):
        RadGraph(folder)


def test_labels_must_fit_the_weights(folder):
    path = folder / "vocabulary" / "radgraph__ner_labels.txt"
    path.write_text("\nANAT-DP\n")
    with pytest.raises(IncompatibleCheckpoint, match="do not belong to the same model"):
        RadGraph(folder)
    path.write_text("ANAT-DP\n")
    with pytest.raises(IncompatibleCheckpoint, match="the first entity label must be empty"):
        RadGraph(folder)


def test_weights_that_are_missing_are_named(folder):
    tensors = radgraph_tensors(golden("radgraph")["shapes"])
    lost = "_relation._relation_scorers.radgraph__relation_labels.bias"
    del tensors[lost]
    torch.save(tensors, folder / "weights.th")
    with pytest.raises(IncompatibleCheckpoint, match=lost):
        RadGraph(folder)


def test_only_the_wanted_files_leave_an_archive(folder, tmp_path):
    archive = pack(folder, tmp_path / "model.tar.gz", extra={"../../escaped.txt": b"x"})
    files = read_radgraph(archive)
    assert files.dataset == "radgraph"
    assert not list(tmp_path.parent.rglob("escaped.txt"))


@pytest.mark.parametrize("spoil", ["cut", "text"])
def test_a_damaged_archive_is_refused(folder, tmp_path, spoil):
    archive = tmp_path / "model.tar.gz"
    pack(folder, archive)
    if spoil == "cut":
        archive.write_bytes(archive.read_bytes()[: 1 << 14])
    if spoil == "text":
        archive.write_bytes(gzip.compress(b"no archive"))
    with pytest.raises(UnsafeCheckpoint, match=r"model\.tar\.gz"):
        read_radgraph(archive)


def test_a_link_is_no_file_of_an_archive(folder, tmp_path):
    (folder / "weights.th").unlink()
    (folder / "weights.th").symlink_to("/etc/hostname")
    archive = pack(folder, tmp_path / "model.tar.gz")
    with pytest.raises(IncompatibleCheckpoint, match=r"model\.tar\.gz has no RadGraph model"):
        read_radgraph(archive)
