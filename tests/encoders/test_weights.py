"""The manifest, and where checkpoints are looked for by name."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.command import run_command
from vlscore.encoders import (
    encoder_cards,
    fetch,
    is_here,
    published_weights,
    verify,
    weights_folder,
    weights_of,
)
from vlscore.encoders import weight_files as module
from vlscore.encoders.cards import PublishedFile
from vlscore.encoders.weight_files import Fetched, find_weights
from vlscore.errors import ChecksumMismatch, UnknownName, WeightsNotFound

NAMES = ("chexpert_resnet50.ckpt",)
BIOVIL_IMAGE = "biovil_image_resnet50_proj_size_128.pt"


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VLSCORE_WEIGHTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def write(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_every_encoder_says_where_its_weights_come_from():
    assert list(published_weights()) == [card.name for card in encoder_cards()]
    for name, entry in published_weights().items():
        assert entry.status in ("bundled", "published", "unpublished")
        assert entry.obtain
        assert entry.status == "bundled" or entry.source != "-", name
        assert entry.files or entry.status == "bundled" or name in ("openclip", "ensemble")


def test_a_missing_file_says_what_to_do():
    with pytest.raises(WeightsNotFound) as caught:
        find_weights("gloria", None, NAMES)
    message = str(caught.value)
    for part in (
        "chexpert_resnet50.ckpt",
        "stanfordmedicine.box.com",
        "weights=PATH",
        str(weights_folder() / "gloria"),
        "VLSCORE_WEIGHTS",
    ):
        assert part in message


def test_places_in_their_order(monkeypatch, tmp_path):
    cached = write(weights_folder() / "gloria" / "any name.ckpt")
    assert find_weights("gloria", None, NAMES) == cached
    home = tmp_path / "home"
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(home))
    flat = write(home / NAMES[0])
    assert find_weights("gloria", None, NAMES) == flat
    own = write(home / "gloria" / NAMES[0])
    assert find_weights("gloria", None, NAMES) == own
    assert is_here("gloria")
    assert not is_here("chexzero")
    given = write(tmp_path / "given.ckpt")
    assert find_weights("gloria", given, NAMES) == given
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(given))
    assert find_weights("gloria", None, NAMES) == given
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(tmp_path / "absent"))
    with pytest.raises(WeightsNotFound, match=r"VLSCORE_WEIGHTS is .*absent, which does not exist"):
        find_weights("gloria", None, NAMES)


def test_a_found_file_must_have_the_published_checksum(monkeypatch, tmp_path):
    path = write(weights_folder() / "biovil" / BIOVIL_IMAGE, b"damaged")
    found = hashlib.md5(b"damaged").hexdigest()
    with pytest.raises(ChecksumMismatch, match=f"{found}.*02ce6ee460f72efd599295f440dbb453"):
        find_weights("biovil", None, (BIOVIL_IMAGE,), guess=False)
    assert find_weights("biovil", path, (BIOVIL_IMAGE,)) == path
    entry = weights_of("biovil")
    changed = replace(entry, files=(PublishedFile(BIOVIL_IMAGE, md5=found),))
    monkeypatch.setitem(published_weights(), "biovil", changed)
    assert find_weights("biovil", None, (BIOVIL_IMAGE,)) == path


def test_fetch_says_what_is_left_and_downloads_nothing_unasked(monkeypatch, tmp_path):
    asked = []
    words = write(tmp_path / "vocab.txt")
    monkeypatch.setattr(module, "download_vocabulary", lambda hub: asked.append(hub) or words)
    fetched = fetch("gloria")
    assert fetched.paths == (words,)
    assert "stanfordmedicine.box.com" in fetched.left_to_do
    assert asked == ["emilyalsentzer/Bio_ClinicalBERT"]
    with pytest.raises(WeightsNotFound, match="could not be downloaded from huggingface"):
        fetch("biovil")
    with pytest.raises(UnknownName, match="no encoder is called 'nonsense'"):
        fetch("nonsense")
    assert fetch("phantom") == Fetched((), "")


@pytest.mark.parametrize("links", [True, False])
def test_fetch_asks_again_after_a_wrong_checksum(links, monkeypatch, tmp_path):
    """A hub that sends a damaged file first, and its cache with and without links."""
    entry = weights_of("biovil")
    file = PublishedFile("x.pt", md5=hashlib.md5(b"whole").hexdigest())
    entry = replace(entry, hub="a/b", revision=None, files=(file,), vocabulary=None)
    monkeypatch.setattr(module, "published_weights", lambda: {"biovil": entry})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("vlscore.encoders.hub._is_reachable", lambda endpoint: True)
    sent = []

    def hub(hub_id, name, revision):
        content = b"damaged" if len(sent) < 2 else b"whole"
        sent.append(content)
        folder = tmp_path / "hub" / "models--a--b"
        write(folder / "refs" / "main", b"0")
        path = folder / "snapshots" / "0" / name
        if links:
            write(folder / "blobs" / content.decode(), content)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(folder / "blobs" / content.decode())
        else:
            write(path, content)
        return str(path)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    for count in (1, 2):
        with pytest.raises(ChecksumMismatch, match=r"x\.pt"):
            fetch("biovil")
        assert len(sent) == count
        assert not [path for path in (tmp_path / "hub").rglob("*") if "damaged" in path.name]
    assert fetch("biovil").paths[0].read_bytes() == b"whole"
    assert fetch("biovil").paths[0].read_bytes() == b"whole"
    assert len(sent) == 3
    # A file that was damaged in the cache is asked for in the same call.
    fetch("biovil").paths[0].resolve().write_bytes(b"damaged")
    assert fetch("biovil").paths[0].read_bytes() == b"whole"
    assert len(sent) == 4


def test_verify(tmp_path):
    torch.save({"state_dict": {"w": torch.ones(2, 3)}}, tmp_path / "a.ckpt")
    (checked,) = verify(tmp_path)
    assert (checked.tensors, checked.numbers, checked.published_for) == (1, 6, ())
    assert checked.sha256 == hashlib.sha256((tmp_path / "a.ckpt").read_bytes()).hexdigest()
    torch.save({"w": torch.ones(2)}, tmp_path / BIOVIL_IMAGE)
    with pytest.raises(ChecksumMismatch):
        verify(tmp_path)
    with pytest.raises(WeightsNotFound, match="holds no checkpoint"):
        verify(tmp_path.parent / tmp_path.name / "..")


def test_commands(tmp_path):
    torch.save({"w": torch.ones(2, 3)}, tmp_path / "a.pt")
    shown = run_command("weights", "verify", tmp_path / "a.pt")
    assert shown.exit_code == 0
    convert = ("weights", "convert", tmp_path / "a.pt", tmp_path / "b.safetensors")
    converted = run_command(*convert)
    digest = converted.output.split("digest")[1].strip()
    assert digest in shown.output
    path = run_command("weights", "path", "gloria").output.strip()
    assert path == str(weights_folder() / "gloria")
    listed = run_command("weights", "list").output
    assert all(name in listed for name in published_weights())
    assert "890 (largest triangle area over ReXVal" in listed
    assert "ships with vlscore" in run_command("weights", "fetch", "phantom").output
    assert "--overwrite" in run_command(*convert).stderr
