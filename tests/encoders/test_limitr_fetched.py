"""`vlscore weights fetch limitr`, from a hub on the loopback address."""

import hashlib
import io
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import forget_foreign_classes, omegaconf_dict, save_lightning
from tests.loopback_hub import hub_environment, loopback_hub

CHECKPOINT = "epoch=8-step=44963.ckpt"
RUN = "import sys; from vlscore.cli import command_line; sys.exit(command_line(sys.argv[1:]))"


def vlscore(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], env=environment, capture_output=True, text=True
    )


class RunsCode:
    """Pickles as a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


@pytest.fixture
def held(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    """Lightning's container with two tensors, and a vocabulary."""
    tensors = {f"limitr.{name}": torch.ones(2) for name in ("a", "b")}
    made = save_lightning(tmp_path / "made.ckpt", tensors, omegaconf_dict())
    forget_foreign_classes()
    return {
        "Gefenda/LIMITR": {CHECKPOINT: made.read_bytes(), "config.yaml": b"model: {}"},
        "emilyalsentzer/Bio_ClinicalBERT": {"vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n"},
    }


def test_the_first_download_is_trusted_and_a_later_one_must_be_the_same(
    tmp_path: Path, held: dict[str, dict[str, bytes]]
) -> None:
    digest = hashlib.sha256(held["Gefenda/LIMITR"][CHECKPOINT]).hexdigest()
    with loopback_hub(held) as (address, asked):
        environment = hub_environment(address, tmp_path)
        listed = vlscore(environment, "weights", "list").stdout.split("\nlimitr\n")[1]
        assert "published; not found on this machine" in listed
        assert "huggingface.co/Gefenda/LIMITR" in listed
        assert not asked
        first = vlscore(environment, "weights", "fetch", "limitr")
        assert first.returncode == 0, first.stderr
        assert f"sha256 {digest}; no digest is published" in first.stdout
        again = vlscore(environment, "weights", "fetch", "limitr")
        assert f"sha256 {digest}, as in the first download" in again.stdout
        listed = vlscore(environment, "weights", "list").stdout.split("\nlimitr\n")[1]
        assert "published; found on this machine" in listed
        read = vlscore(environment, "weights", "verify", str(_cached(tmp_path)))
        assert "tensors    2 (4 numbers)" in read.stdout
        # The cache is deleted, and the hub has another file.
        link = _cached(tmp_path)
        link.resolve().unlink()
        link.unlink()
        held["Gefenda/LIMITR"][CHECKPOINT] = b"another"
        changed = vlscore(environment, "weights", "fetch", "limitr")
    assert changed.returncode != 0
    assert "the first download of" in " ".join(changed.stderr.split())
    listed = vlscore(environment, "weights", "list").stdout.split("\nlimitr\n")[1]
    assert "published; not found on this machine" in listed


def test_no_code_of_the_file_runs(tmp_path: Path, held: dict[str, dict[str, bytes]]) -> None:
    stream = io.BytesIO()
    torch.save({"state_dict": {"a": torch.ones(2)}, "x": RunsCode(tmp_path / "ran")}, stream)
    held["Gefenda/LIMITR"][CHECKPOINT] = stream.getvalue()
    with loopback_hub(held) as (address, _):
        environment = hub_environment(address, tmp_path)
        assert vlscore(environment, "weights", "fetch", "limitr").returncode == 0
    refused = vlscore(environment, "weights", "verify", str(_cached(tmp_path)))
    assert refused.returncode != 0
    assert "run" in refused.stderr
    assert not (tmp_path / "ran").exists()


def _cached(folder: Path) -> Path:
    (found,) = (folder / "hub").rglob(f"snapshots/*/{CHECKPOINT}")
    return found
