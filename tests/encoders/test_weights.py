"""The manifest, and where checkpoints are looked for by name."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from vlscore.cli import app
from vlscore.encoders import encoder_card, encoder_cards
from vlscore.encoders import weights as module
from vlscore.encoders.weights import (
    cache_folder,
    fetch,
    find_weights,
    is_here,
    published_weights,
    verify,
    weights_of,
)
from vlscore.errors import ChecksumMismatch, UnknownName, UnsafeCheckpoint, WeightsNotFound

NAMES = ("chexpert_resnet50.ckpt",)
BIOVIL_IMAGE = "biovil_image_resnet50_proj_size_128.pt"


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VLSCORE_WEIGHTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("vlscore.encoders.weights.sys.platform", "linux")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def write(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_manifest_and_cards_agree():
    cards = {card.name: card for card in encoder_cards()}
    assert published_weights().keys() == cards.keys()
    for name, entry in published_weights().items():
        assert entry.licence == cards[name].licence, name
        assert entry.status in ("bundled", "published", "unpublished")
        assert entry.obtain
        if entry.status != "bundled":
            assert entry.C == cards[name].C, name
            assert (entry.C is None) == (entry.calibrated_on is None), name
            assert entry.source != "-", name


def test_the_manifest_names_files_that_encoders_look_for():
    from vlscore.encoders.registry import _find

    for name, entry in published_weights().items():
        encoder = _find(name)[0]
        wanted = {
            file_name
            for attribute in ("checkpoint_names", "image_names", "report_names")
            for file_name in getattr(encoder, attribute, ())
        }
        if wanted:
            assert {file.name for file in entry.files} <= wanted, name


def test_limitr_has_no_weights_and_says_so():
    assert weights_of("limitr").status == "unpublished"
    with pytest.raises(WeightsNotFound, match=r"Its authors publish no weights\. Train it"):
        find_weights("limitr", None, ("limitr.ckpt",))


def test_a_missing_file_says_what_to_do():
    with pytest.raises(WeightsNotFound) as caught:
        find_weights("gloria", None, NAMES)
    message = str(caught.value)
    for part in (
        "chexpert_resnet50.ckpt",
        "stanfordmedicine.box.com",
        "weights=PATH",
        str(cache_folder() / "gloria"),
        "VLSCORE_WEIGHTS",
    ):
        assert part in message


def test_places_in_their_order(monkeypatch, tmp_path):
    cached = write(cache_folder() / "gloria" / "any name.ckpt")
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


def test_another_models_file_is_not_taken_from_a_common_folder(monkeypatch, tmp_path):
    write(tmp_path / "home" / "medclip.bin")
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(tmp_path / "home"))
    with pytest.raises(WeightsNotFound):
        find_weights("gloria", None, NAMES)


def test_what_the_hub_cache_holds_is_found(monkeypatch, tmp_path):
    snapshot = write(tmp_path / "hub" / "snapshot" / "pytorch_model.bin")
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache",
        lambda hub, name, revision: str(snapshot) if name == snapshot.name else None,
    )
    found = find_weights("biovil", None, ("pytorch_model.bin",), guess=False)
    assert found == snapshot


def test_a_found_file_must_have_the_published_checksum(monkeypatch, tmp_path):
    path = write(cache_folder() / "biovil" / BIOVIL_IMAGE, b"damaged")
    found = hashlib.md5(b"damaged").hexdigest()
    with pytest.raises(ChecksumMismatch, match=f"{found}.*02ce6ee460f72efd599295f440dbb453"):
        find_weights("biovil", None, (BIOVIL_IMAGE,), guess=False)
    assert find_weights("biovil", path, (BIOVIL_IMAGE,)) == path
    entry = weights_of("biovil")
    right = module.PublishedFile(BIOVIL_IMAGE, md5=found)
    changed = module.PublishedWeights(**(vars(entry) | {"files": (right,)}))
    monkeypatch.setitem(published_weights(), "biovil", changed)
    assert find_weights("biovil", None, (BIOVIL_IMAGE,)) == path


def test_fetch_says_what_is_left_and_downloads_nothing_unasked(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(module, "download_vocabulary", lambda hub: asked.append(hub) or tmp_path)
    fetched = fetch("gloria")
    assert fetched.paths == (tmp_path,)
    assert "stanfordmedicine.box.com" in fetched.left_to_do
    assert asked == ["emilyalsentzer/Bio_ClinicalBERT"]
    with pytest.raises(WeightsNotFound, match="could not be had from huggingface"):
        fetch("biovil")
    with pytest.raises(UnknownName, match="it lists phantom, limitr"):
        fetch("nonsense")


def test_fetch_stops_at_a_wrong_checksum(monkeypatch, tmp_path):
    path = write(tmp_path / BIOVIL_IMAGE)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: str(path))
    with pytest.raises(ChecksumMismatch, match=BIOVIL_IMAGE):
        fetch("biovil")


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
    run = CliRunner().invoke
    shown = run(app, ["weights", "verify", str(tmp_path / "a.pt")])
    assert shown.exit_code == 0
    converted = run(
        app, ["weights", "convert", str(tmp_path / "a.pt"), f"{tmp_path}/b.safetensors"]
    )
    digest = converted.output.split("digest")[1].strip()
    assert digest in shown.output
    assert run(app, ["weights", "path", "gloria"]).output.strip() == str(cache_folder() / "gloria")
    listed = run(app, ["weights", "list"]).output
    assert all(name in listed for name in published_weights())
    assert "890 (ReXVal" in listed
    table = run(app, ["encoders"], env={"COLUMNS": "120"}).output
    assert all(card.name in table for card in encoder_cards())
    assert json.loads(run(app, ["encoders", "gloria", "--json"]).output)["C"] == 1155
    assert "416466a" in run(app, ["encoders", "gloria"], env={"COLUMNS": "120"}).output


def test_commands_refuse(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.")
    result = CliRunner().invoke(app, ["weights", "verify", str(tmp_path / "a.pt")])
    assert isinstance(result.exception, UnsafeCheckpoint)
    assert encoder_card("limitr").C == 890
    with pytest.raises(UnknownName):
        encoder_card("nonsense")
