"""Checkpoints of every container are read, and nothing in them is run."""

import argparse
import datetime
import functools
import io
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.encoders.goldens import forget_foreign_classes, omegaconf_dict, save_lightning
from vlscore.encoders import convert, load_checkpoint, load_encoder
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.errors import (
    IncompatibleCheckpoint,
    InvalidSetting,
    UnsafeCheckpoint,
)

TENSORS = {
    "conv.weight": torch.arange(24, dtype=torch.float32).reshape(2, 3, 4),
    "half": torch.tensor([1.5, -2], dtype=torch.float16),
    "brain": torch.tensor([[3.25]], dtype=torch.bfloat16),
    "ids": torch.arange(5),
    "flag": torch.tensor(True),
    "scalar": torch.tensor(2.5),
    "nothing": torch.zeros(0, 3),
}


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


@pytest.mark.parametrize("container", [lightning, plain, legacy, safetensors])
def test_every_container_gives_the_same_tensors(
    container: Callable[[Path], Path], tmp_path: Path
) -> None:
    found = load_checkpoint(container(tmp_path / "model.ckpt"))
    assert found.keys() == TENSORS.keys()
    for key, expected in TENSORS.items():
        assert found[key].dtype == expected.dtype
        assert torch.equal(found[key], expected)
    assert tensors_digest(found) == tensors_digest(TENSORS)


@pytest.mark.parametrize("name", ["limitr", "gloria"])
def test_real_lightning_layouts(name: str, shared: Path) -> None:
    path = shared / "encoders" / "container_samples" / f"{name}_lightning_layout.ckpt"
    tensors = load_checkpoint(path)
    assert tensors[f"{name}.img_encoder.global_embedder.bias"].tolist() == [0, 1, 2, 3]


def text(value: str) -> bytes:
    content = value.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def payloads(trace: Path) -> dict[str, bytes]:
    """Parts of pickles that make the file `trace`, or change something, where pickle loads them."""
    command = text(f"touch {trace}")
    code = text(f"open({str(trace)!r}, 'w')")
    system = name("posix", "system")
    return {
        "REDUCE": system + command + b"\x85R",
        "REDUCE os": name("os", "system") + command + b"\x85R",
        "STACK_GLOBAL": text("os") + text("system") + b"\x93" + command + b"\x85R",
        "INST": b"(" + command + b"iposix\nsystem\n",
        "OBJ": b"(" + system + command + b"o",
        "NEWOBJ": name("subprocess", "Popen") + command + b"\x85\x81",
        "NEWOBJ_EX": name("subprocess", "Popen") + b")}\x92",
        "old builtins": name("__builtin__", "eval") + code + b"\x85R",
        "exec": name("builtins", "exec") + code + b"\x85R",
        "getattr": name("builtins", "getattr") + system + text("x") + b"\x86R",
        "import": name("builtins", "__import__") + text("os") + b"\x85R",
        "apply": name("functools", "reduce") + system + command + b"\x86R",
        "partial called": name("functools", "partial") + system + command + b"\x86R)R",
        "through a harmless module": name("pathlib", "os.system") + command + b"\x85R",
        "through a settings library": name("omegaconf.base", "os.system") + command + b"\x85R",
        "a settings library's function": name("pytorch_lightning.utilities", "load")
        + command
        + b"\x85R",
        "evaluating types": name("typing", "get_type_hints") + code + b"\x85R",
        "torch.load": name("torch", "load") + text("other.pt") + b"\x85R",
        "items into a name": name("os", "environ") + text("PATH") + text("x") + b"s",
        "extension": b"\x82\x01",
    }


CASES = sorted(payloads(Path("x")))


def in_state_dict(payload: bytes) -> bytes:
    """A pickle of {"state_dict": {"w": payload}}."""
    return b"\x80\x02}" + text("state_dict") + b"}" + text("w") + payload + b"ss."


def archive_of(path: Path, description: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model/data.pkl", description)
        file.writestr("model/version", b"3\n")
    return path


def legacy_of(path: Path, description: bytes) -> Path:
    torch.save({}, path, _use_new_zipfile_serialization=False)
    head = io.BytesIO(path.read_bytes())
    for _ in range(3):
        pickle.load(head)
    path.write_bytes(head.getvalue()[: head.tell()] + description + pickle.dumps([], 2))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Path]:
    """A file that every payload would make if it ran."""
    path = tmp_path / "ran"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("write", [archive_of, legacy_of])
def test_code_is_refused_and_does_not_run(
    case: str, write: Callable[[Path, bytes], Path], tmp_path: Path, trace: Path
) -> None:
    path = write(tmp_path / "model.ckpt", in_state_dict(payloads(trace)[case]))
    with pytest.raises(UnsafeCheckpoint, match=r"model\.ckpt (would use|is damaged, or holds)"):
        load_checkpoint(path)


def test_a_class_of_settings_is_never_imported(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that would run something when it is imported or its class is used."""
    (tmp_path / "attacker.py").write_text(f"open({str(trace)!r}, 'w')\nclass Callback: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = name("attacker", "Callback") + text("x") + b"\x85R}b"
    description = b"\x80\x02}" + text("callback") + made + b"s."
    with pytest.raises(IncompatibleCheckpoint, match="no tensors by name"):
        load_checkpoint(archive_of(tmp_path / "m.pt", description))


def test_plain_descriptions_are_passed_over(tmp_path: Path) -> None:
    """Settings of every usual kind beside the tensors do not keep them from being read."""
    settings = {
        "hparams": argparse.Namespace(lr=1e-4, betas=(0.9, 0.99)),
        "when": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        "where": Path("/data"),
        "optimizer": functools.partial(torch.optim.Adam, lr=1e-3),
        "seen": {1, 2, (3, 4)},
        "frozen": frozenset((1,)),
        "counts": [Counter("aab"), deque([1]), defaultdict(list, a=[1])],
        "numbers": [np.float64(0.5), np.arange(3), np.dtype("f4"), 1j, b"x", bytearray(b"y")],
        "device": torch.device("cuda", 1),
        "type": torch.float16,
        "size": torch.zeros(2, 3).shape,
        "slice": slice(1, 2),
    }
    for zipped in (True, False):
        path = tmp_path / f"model{zipped}.ckpt"
        content = {"state_dict": TENSORS, **settings}
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
        assert tensors_digest(load_checkpoint(path)) == tensors_digest(TENSORS)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda x: {"model": x, "epoch": 3},
        lambda x: {"model": {"state_dict": x}, "args": None},
        lambda x: {"model_state_dict": x, "optimizer_state_dict": {"state": {}}},
    ],
)
def test_nested_state_dicts_are_found(wrapped: Callable[[Any], Any], tmp_path: Path) -> None:
    torch.save(wrapped({"a.weight": torch.ones(2)}), tmp_path / "m.pt")
    assert load_checkpoint(tmp_path / "m.pt").keys() == {"a.weight"}


@pytest.mark.timeout(20)
def test_dictionaries_in_dictionaries_end(tmp_path: Path) -> None:
    """One dictionary under all three names of the next, and one within itself."""
    inner: dict[str, object] = {}
    for _ in range(40):
        inner = {"state_dict": inner, "model_state_dict": inner, "model": inner}
    itself: dict[str, object] = {}
    itself["model"] = itself
    for content in (inner, itself):
        torch.save(content, tmp_path / "m.pt")
        with pytest.raises(IncompatibleCheckpoint, match=r"m\.pt"):
            load_checkpoint(tmp_path / "m.pt")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf\n <HTML><body>Log in",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    ],
)
@pytest.mark.parametrize("file", ["model.ckpt", "model.safetensors"])
def test_a_download_gone_wrong_is_called_so(file: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    # Before anything that is missing beside it.
    with pytest.raises(IncompatibleCheckpoint, match="a web page or a pointer of Git LFS"):
        load_encoder("gloria", weights=tmp_path / file)


def test_conversion_keeps_every_value_and_separates_shared_tensors(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    tensors = {"whole": whole, "tied": whole, "part": whole[1:, ::2], "half": whole.half()}
    torch.save({"state_dict": tensors, "epoch": 1}, tmp_path / "m.ckpt")
    digest = convert(tmp_path / "m.ckpt", tmp_path / "m.safetensors")
    found = load_checkpoint(tmp_path / "m.safetensors")
    assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in tensors.items()}
    assert digest == tensors_digest(found) == tensors_digest(tensors)


def test_conversion_does_not_overwrite_unasked(tmp_path: Path, trace: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "m.pt")
    (tmp_path / "m.safetensors").write_text("mine")
    with pytest.raises(InvalidSetting, match="exists already"):
        convert(tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").read_text() == "mine"
    attack = archive_of(tmp_path / "attack.pt", in_state_dict(payloads(trace)["REDUCE"]))
    with pytest.raises(UnsafeCheckpoint):
        convert(attack, tmp_path / "new.safetensors")
    assert not (tmp_path / "new.safetensors").exists()
    convert(tmp_path / "m.pt", tmp_path / "m.safetensors", overwrite=True)
    assert load_checkpoint(tmp_path / "m.safetensors")["w"].tolist() == [1]
    with pytest.raises(InvalidSetting, match=r"must end in \.safetensors"):
        convert(tmp_path / "m.pt", tmp_path / "m.bin")


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
