"""Where checkpoints and vocabularies are looked for."""

from pathlib import Path

import pytest

from vlscore.encoders import checkpoint_in, vocabulary_file
from vlscore.errors import WeightsNotFound

NAMES = ("published.ckpt", "other.bin")
HUB_ID = "nobody/nothing"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test may ask a hub, nor find what its cache holds."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("x")


@pytest.mark.parametrize(
    ("held", "found"),
    [
        (["a.pt", "other.bin", "published.ckpt"], "published.ckpt"),
        (["published.ckpt", "published.safetensors"], "published.safetensors"),
        (["epoch=7.ckpt", "vocab.txt", "config.json"], "epoch=7.ckpt"),
    ],
)
def test_the_checkpoint_of_a_folder(tmp_path: Path, held: list[str], found: str) -> None:
    make(tmp_path, *held)
    assert checkpoint_in(tmp_path, NAMES).name == found
    assert checkpoint_in(tmp_path / held[0], NAMES) == tmp_path / held[0]


def test_several_others_are_refused_by_name(tmp_path: Path) -> None:
    make(tmp_path, "a.pt", "b.pt")
    with pytest.raises(WeightsNotFound, match=r"none of published.ckpt, other.bin but a.pt, b.pt"):
        checkpoint_in(tmp_path, NAMES)


def test_an_only_checkpoint_is_not_guessed_where_there_must_be_two(tmp_path: Path) -> None:
    make(tmp_path, "other.bin")
    with pytest.raises(WeightsNotFound, match=r"none of published\.ckpt"):
        checkpoint_in(tmp_path, NAMES[:1], guess=False)


def test_vocabulary_given_as_file_or_folder(tmp_path: Path) -> None:
    make(tmp_path, "vocab.txt", "weights.pt")
    for given in (tmp_path, tmp_path / "vocab.txt", str(tmp_path)):
        found = vocabulary_file(given, next_to=Path("/nowhere"), hub_id=HUB_ID)
        assert found == tmp_path / "vocab.txt"


def test_no_vocabulary_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(WeightsNotFound, match='tokenizer="nobody/nothing" to download it'):
        vocabulary_file(None, next_to=tmp_path, hub_id=HUB_ID)


@pytest.mark.parametrize("given", ["absent.txt", "/absent/folder", "./a/b"])
def test_a_vocabulary_that_is_not_there(given: str) -> None:
    with pytest.raises(WeightsNotFound, match="is no vocabulary file"):
        vocabulary_file(given, next_to=Path("/nowhere"), hub_id=HUB_ID)
