"""Checkpoints of every container are read, and nothing in them is run."""

import os
import pickle
import struct
import subprocess
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.encoders.goldens import forget_foreign_classes, omegaconf_dict, save_lightning
from vlscore.encoders import load_checkpoint
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint, WeightsNotFound

TENSORS = {
    "conv.weight": torch.arange(24, dtype=torch.float32).reshape(2, 3, 4),
    "half": torch.tensor([1.5, -2], dtype=torch.float16),
    "brain": torch.tensor([[3.25]], dtype=torch.bfloat16),
    "ids": torch.arange(5),
    "flag": torch.tensor(True),
    "scalar": torch.tensor(2.5),
    "nothing": torch.zeros(0, 3),
}


class Payload:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._reduced


def lightning(path: Path) -> Path:
    save_lightning(path, TENSORS, omegaconf_dict())
    forget_foreign_classes()
    return path


def plain(path: Path) -> Path:
    torch.save(OrderedDict(TENSORS), path)
    return path


def legacy(path: Path) -> Path:
    torch.save(TENSORS, path, _use_new_zipfile_serialization=False)
    return path


def safetensors(path: Path) -> Path:
    save_file(TENSORS, path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


def parameters(path: Path) -> Path:
    named = {k: torch.nn.Parameter(x, requires_grad=False) for k, x in TENSORS.items()}
    torch.save(named, path)
    return path


@pytest.mark.parametrize("container", [lightning, plain, legacy, safetensors, parameters])
def test_every_container_gives_the_same_tensors(
    container: Callable[[Path], Path], tmp_path: Path
) -> None:
    found = load_checkpoint(container(tmp_path / "model.ckpt"))
    assert found.keys() == TENSORS.keys()
    for key, expected in TENSORS.items():
        assert found[key].dtype == expected.dtype
        assert torch.equal(found[key], expected)
    assert tensors_digest(found) == tensors_digest(TENSORS)


def test_views_of_one_storage_stay_views(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    torch.save({"whole": whole, "part": whole[1:, ::2], "turned": whole.T}, tmp_path / "m.pt")
    found = load_checkpoint(tmp_path / "m.pt")
    assert torch.equal(found["part"], whole[1:, ::2])
    assert torch.equal(found["turned"], whole.T)


@pytest.mark.parametrize("name", ["limitr", "gloria"])
def test_real_lightning_layouts(name: str, shared: Path) -> None:
    path = shared / "encoders" / "container_samples" / f"{name}_lightning_layout.ckpt"
    tensors = load_checkpoint(path)
    assert tensors[f"{name}.img_encoder.global_embedder.bias"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.system, ("touch {}",)),
        (subprocess.check_output, (["touch", "{}"],)),
        (eval, ("open('{}', 'w')",)),
        (exec, ("open('{}', 'w')",)),
        (getattr, (os, "system")),
        (pickle.loads, (b"",)),
        (torch.load, ("{}",)),
    ],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_that_would_run_something_is_refused(
    function: Callable[..., Any], arguments: tuple[Any, ...], zipped: bool, tmp_path: Path
) -> None:
    trace = tmp_path / "ran"
    filled = tuple(
        a.format(trace)
        if isinstance(a, str)
        else [x.format(trace) for x in a]
        if isinstance(a, list)
        else a
        for a in arguments
    )
    filled = tuple("posix" if a is os else a for a in filled)
    content = {"state_dict": TENSORS, "hyper_parameters": Payload(function, *filled)}
    torch.save(content, tmp_path / "m.ckpt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UnsafeCheckpoint, match=r"m\.ckpt"):
        load_checkpoint(tmp_path / "m.ckpt")
    assert not trace.exists()


def test_the_refusal_names_what_would_have_been_called(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1), "x": Payload(os.system, "true")}, tmp_path / "m.pt")
    with pytest.raises(UnsafeCheckpoint, match=r"would call (posix|nt)\.system on loading"):
        load_checkpoint(tmp_path / "m.pt")


def rewrite(path: Path, change: Callable[[str, bytes], bytes], compression: int = 0) -> Path:
    """The same archive with some records changed."""
    changed = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return changed


def test_a_storage_shorter_than_said_is_refused(tmp_path: Path) -> None:
    path = plain(tmp_path / "model.pt")
    shorter = rewrite(path, lambda n, data: data[:40] if n.endswith("data/0") else data)
    with pytest.raises(UnsafeCheckpoint, match="data/0 should have 24 numbers"):
        load_checkpoint(shorter)


@pytest.mark.parametrize(
    ("true", "lie"), [((2, 3, 4), (2, 3, 5)), ((2, 3, 4), (90, 90, 90))], ids=str
)
def test_a_tensor_larger_than_its_storage_is_refused(
    true: tuple[int, ...], lie: tuple[int, ...], tmp_path: Path
) -> None:
    path = plain(tmp_path / "model.pt")
    sizes = [b"".join(b"K" + struct.pack("B", n) for n in size) for size in (true, lie)]

    def enlarge(name: str, data: bytes) -> bytes:
        if not name.endswith("data.pkl"):
            return data
        assert data.count(sizes[0]) == 1
        return data.replace(sizes[0], sizes[1])

    with pytest.raises(UnsafeCheckpoint, match="lies in a storage of 24 numbers"):
        load_checkpoint(rewrite(path, enlarge))


def test_a_small_storage_shown_a_million_times_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1).expand(1000, 1000)}, tmp_path / "m.pt")
    with pytest.raises(UnsafeCheckpoint, match=r"size \(1000, 1000\)"):
        load_checkpoint(tmp_path / "m.pt")


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    bomb = rewrite(plain(tmp_path / "model.pt"), lambda _, data: data, zipfile.ZIP_DEFLATED)
    with pytest.raises(UnsafeCheckpoint, match="compressed"):
        load_checkpoint(bomb)


@pytest.mark.parametrize("kept", [0, 3, 200, 2000])
@pytest.mark.parametrize("container", [plain, safetensors, legacy])
def test_half_a_download_is_refused(
    container: Callable[[Path], Path], kept: int, tmp_path: Path
) -> None:
    path = container(tmp_path / "model.pt")
    content = path.read_bytes()
    path.write_bytes(content[: min(kept, len(content) - 1)])
    with pytest.raises(UnsafeCheckpoint, match="model"):
        load_checkpoint(path)


def test_safetensors_with_a_lying_header_is_refused(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "model")
    content = path.read_bytes()
    assert b'"shape":[2,3,4]' in content
    path.write_bytes(content.replace(b'"shape":[2,3,4]', b'"shape":[9,9,9]'))
    with pytest.raises(UnsafeCheckpoint, match="damaged"):
        load_checkpoint(path)


def test_a_torchscript_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", pickle.dumps({}))
        archive.writestr("model/code/__torch__.py", "def forward(): ...")
    with pytest.raises(UnsafeCheckpoint, match="TorchScript"):
        load_checkpoint(tmp_path / "model.pt")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsNotFound, match="no such checkpoint"):
        load_checkpoint(tmp_path / "absent.pt")


@pytest.mark.parametrize("content", [[torch.zeros(1)], {"epoch": 3}, torch.zeros(2)], ids=str)
def test_no_named_tensors(content: Any, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "m.pt")
    with pytest.raises(IncompatibleCheckpoint, match="tensors"):
        load_checkpoint(tmp_path / "m.pt")


def test_the_digest_sees_key_type_shape_and_value() -> None:
    digests = {
        tensors_digest(tensors)
        for tensors in (
            {"a": torch.zeros(4)},
            {"b": torch.zeros(4)},
            {"a": torch.zeros(2, 2)},
            {"a": torch.zeros(4, dtype=torch.int32)},
            {"a": torch.tensor([0.0, 0, 0, 1])},
            {"a": torch.zeros(4), "b": torch.zeros(0)},
        )
    }
    assert len(digests) == 6
    ordered = {"a": torch.zeros(4), "b": torch.ones(1)}
    assert tensors_digest(ordered) == tensors_digest(dict(reversed(ordered.items())))
