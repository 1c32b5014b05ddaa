"""Digests remembered by what the system says of a file, and verified beside the work."""

import os

import pytest
import torch
from safetensors.torch import save_file

from tests.doubles import HashEncoder
from tests.evaluation.samples import make_table
from vlscore.core import confirm
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import checkpoints as known_digests
from vlscore.encoders import fill, load_checkpoint
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.errors import ChecksumMismatch
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer
from vlscore.retrieval import SourceSettings, index_build


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.arange(1000.0)}, path)
    return path


def taken(checkpoint):
    """An encoder whose digest is that of the checkpoint."""
    encoder = HashEncoder()
    encoder.take_digest([checkpoint], load_checkpoint(checkpoint))
    return encoder


def change_unnoticed(path):
    """Another content, of which size, place and time say nothing."""
    before = path.stat()
    with path.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(b"\x00\x00\x80\x3f")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def counted(monkeypatch):
    """How often a digest was computed, and in how many threads."""
    calls = []

    def digest(tensors, *, threads=None, **options):
        calls.append(threads)
        return tensors_digest(tensors, threads=threads, **options)

    monkeypatch.setattr("vlscore.encoders.base.tensors_digest", digest)
    return calls


def test_a_digest_is_taken_once_and_verified_afterwards(checkpoint, cache_folder, monkeypatch):
    calls = counted(monkeypatch)
    first = taken(checkpoint)
    assert first.weights_digest == tensors_digest(load_checkpoint(checkpoint))
    assert calls == [None]
    confirm(first)
    again = taken(checkpoint)
    assert again.weights_digest == first.weights_digest
    confirm(again)
    assert calls == [None, 1]


def test_a_file_that_was_changed_is_digested_anew(checkpoint, cache_folder, monkeypatch):
    first = taken(checkpoint).weights_digest
    save_file({"a": torch.arange(1000.0) + 1}, checkpoint)
    calls = counted(monkeypatch)
    assert taken(checkpoint).weights_digest != first
    assert calls == [None]


def test_a_remembered_digest_that_is_no_digest_is_not_believed(checkpoint, cache_folder):
    digest = taken(checkpoint).weights_digest
    (remembered,) = (cache_folder / "digests-1").iterdir()
    remembered.write_text("anything")
    assert taken(checkpoint).weights_digest == digest
    assert remembered.read_text().strip() == digest


def test_nothing_is_remembered_without_a_cache(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    calls = counted(monkeypatch)
    taken(checkpoint)
    taken(checkpoint)
    assert calls == [None, None]
    assert not (tmp_path / "home").exists()


def test_a_cache_that_cannot_be_written_is_no_hindrance(checkpoint, tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "a file"))
    digest = tensors_digest(load_checkpoint(checkpoint))
    assert [taken(checkpoint).weights_digest for _ in range(2)] == [digest, digest]


def test_a_checkpoint_changed_unnoticed_stops_a_run_before_its_results(
    checkpoint, cache_folder, tmp_path
):
    taken(checkpoint)
    change_unnoticed(checkpoint)
    table, _ = make_table(tmp_path, 3)
    encoder = taken(checkpoint)
    with pytest.raises(ChecksumMismatch, match=r"model\.safetensors does not hold what it held"):
        evaluate(table, tmp_path / "out", Scorer(encoder))
    assert not [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")]
    with pytest.raises(ChecksumMismatch, match="changed in place"):
        Scorer(encoder).score(str(tmp_path / "0.png"), "clear lungs", "effusion")
    with pytest.raises(ChecksumMismatch, match="changed in place"):
        index_build(
            table,
            tmp_path / "index",
            StudyEmbedder(encoder),
            SourceSettings(text_column="reference"),
        )
    # Nobody is asked to believe it twice.
    confirm(taken(checkpoint))


def test_a_change_while_the_file_is_in_use_is_noticed(checkpoint, cache_folder):
    taken(checkpoint)
    encoder = taken(checkpoint)
    confirm(encoder)
    with checkpoint.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(b"\x00\x00\x00\x00")
    os.utime(checkpoint, ns=(1, 1))
    with pytest.raises(ChecksumMismatch, match="changed in place"):
        confirm(encoder)


def test_a_file_that_is_replaced_or_removed_while_in_use_is_no_matter(checkpoint, cache_folder):
    taken(checkpoint)
    encoder = taken(checkpoint)
    other = checkpoint.with_name("other.safetensors")
    save_file({"a": torch.zeros(3)}, other)
    other.replace(checkpoint)
    confirm(encoder)
    checkpoint.unlink()
    confirm(encoder)


def test_a_check_that_breaks_does_not_pass(checkpoint, cache_folder, monkeypatch):
    taken(checkpoint)

    def broken(tensors, *, threads=None):
        raise MemoryError

    monkeypatch.setattr("vlscore.encoders.base.tensors_digest", broken)
    with pytest.raises(ChecksumMismatch, match="could not be verified"):
        confirm(taken(checkpoint))


def test_checks_of_encoders_that_are_gone_are_forgotten(checkpoint, cache_folder):
    taken(checkpoint)
    encoder = taken(checkpoint)
    change_unnoticed(checkpoint)
    checkpoint.touch()
    del encoder
    confirm()


def test_tensors_of_safetensors_are_used_where_they_lie_and_others_are_copied(checkpoint):
    for share in (True, False):
        module = torch.nn.Module()
        module.a = torch.nn.Parameter(torch.zeros(1000))
        tensors = load_checkpoint(checkpoint)
        fill(module, tensors, source=checkpoint, share=share)
        assert (module.a.data_ptr() == tensors["a"].data_ptr()) is share
        # What is written to a model never reaches the file.
        with torch.no_grad():
            module.a.fill_(7)
        assert load_checkpoint(checkpoint)["a"][1] == 1


def test_the_states_of_files_tell_them_apart(checkpoint, cache_folder):
    first, _ = known_digests.digest_of([checkpoint], "x", lambda threads, stopped: "a" * 64)
    other, _ = known_digests.digest_of([checkpoint], "y", lambda threads, stopped: "b" * 64)
    assert other == "b" * 64
    assert first == "a" * 64
    copy = checkpoint.with_name("copy")
    copy.write_bytes(checkpoint.read_bytes())
    assert known_digests.digest_of([copy], "x", lambda threads, stopped: "c" * 64)[0] == "c" * 64
