"""Attacks on the checkpoint reader, written as bytes: none runs anything or takes the memory."""

import io
import pickle
import resource
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from vlscore.encoders import convert, load_checkpoint, load_encoder
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, UnsafeCheckpoint

GIBIBYTE = 1 << 30


def text(value: str) -> bytes:
    content = value.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def stack_name(module: str, attribute: str) -> bytes:
    return text(module) + text(attribute) + b"\x93"


def in_state_dict(payload: bytes) -> bytes:
    """A pickle of {"state_dict": {"w": payload}}."""
    return b"\x80\x04}" + text("state_dict") + b"}" + text("w") + payload + b"ss."


def archive(path: Path, description: bytes, **records: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model/data.pkl", description)
        file.writestr("model/version", b"3\n")
        for key, content in records.items():
            file.writestr(f"model/data/{key.removeprefix('s')}", content)
    return path


def legacy(path: Path, description: bytes, rest: bytes = b"") -> Path:
    torch.save({}, path, _use_new_zipfile_serialization=False)
    head = io.BytesIO(path.read_bytes())
    for _ in range(3):
        pickle.load(head)
    path.write_bytes(head.getvalue()[: head.tell()] + description + (rest or pickle.dumps([], 2)))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Path]:
    """A file that every payload would make if it ran."""
    path = tmp_path / "ran"
    yield path
    assert not path.exists()


def payloads(trace: Path) -> dict[str, bytes]:
    command = text(f"touch {trace}")
    code = text(f"open({str(trace)!r}, 'w')")
    system = name("posix", "system")
    return {
        "REDUCE": system + command + b"\x85R",
        "REDUCE os": name("os", "system") + command + b"\x85R",
        "REDUCE of STACK_GLOBAL": stack_name("os", "system") + command + b"\x85R",
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
        "through a harmless module": stack_name("pathlib", "os.system") + command + b"\x85R",
        "through a settings library": stack_name("omegaconf.base", "os.system")
        + command
        + b"\x85R",
        "a settings library's function": name("pytorch_lightning.utilities", "load")
        + command
        + b"\x85R",
        "evaluating types": name("typing", "get_type_hints") + code + b"\x85R",
        "torch.load": name("torch", "load") + text("other.pt") + b"\x85R",
        "unknown function": name("mypackage", "Callback") + command + b"\x85R",
        "changing a name": name("torch._utils", "_rebuild_tensor_v2") + b"}b",
        "items into a name": name("os", "environ") + text("PATH") + text("x") + b"s",
        "extension": b"\x82\x01",
    }


CASES = sorted(payloads(Path("x")))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("write", [archive, legacy])
def test_code_is_refused_and_does_not_run(case, write, tmp_path, trace):
    path = write(tmp_path / "model.ckpt", in_state_dict(payloads(trace)[case]))
    with pytest.raises(UnsafeCheckpoint, match=r"model\.ckpt would|model\.ckpt uses"):
        load_checkpoint(path)


def test_code_at_the_top_of_the_pickle(tmp_path, trace):
    for payload in payloads(trace).values():
        with pytest.raises(UnsafeCheckpoint):
            load_checkpoint(archive(tmp_path / "model.pt", b"\x80\x04" + payload + b"."))


def test_a_bare_pickle_is_refused(tmp_path, trace):
    (tmp_path / "m.pt").write_bytes(b"\x80\x04" + payloads(trace)["REDUCE"] + b".")
    with pytest.raises(UnsafeCheckpoint, match=r"would call posix\.system"):
        load_checkpoint(tmp_path / "m.pt")


def test_plain_descriptions_are_passed_over(tmp_path):
    """Settings of every usual kind beside the tensors do not keep them from being read."""
    import argparse
    import datetime
    import functools
    import pathlib
    from collections import Counter, defaultdict, deque

    import numpy as np

    settings = {
        "hparams": argparse.Namespace(lr=1e-4, betas=(0.9, 0.99)),
        "when": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        "where": pathlib.Path("/data"),
        "optimizer": functools.partial(torch.optim.Adam, lr=1e-3),
        "seen": {1, 2, (3, 4)},
        "frozen": frozenset((1,)),
        "counts": [Counter("aab"), deque([1]), defaultdict(list, a=[1])],
        "numbers": [np.float64(0.5), np.arange(3), np.dtype("f4"), 1j, b"x", bytearray(b"y")],
        "device": torch.device("cuda", 1),
        "type": torch.float16,
        "size": torch.zeros(2, 3).shape,
        "sparse": torch.eye(2).to_sparse(),
        "function": print,
        "slice": slice(1, 2),
    }
    weight = torch.arange(6.0).reshape(2, 3)
    for zipped in (True, False):
        path = tmp_path / f"model{zipped}.ckpt"
        content = {"state_dict": {"w": weight}, **settings}
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
        assert torch.equal(load_checkpoint(path)["w"], weight)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda x: {"model": x, "epoch": 3},
        lambda x: {"model": {"state_dict": x}, "args": None},
        lambda x: {"model_state_dict": x, "optimizer_state_dict": {"state": {}}},
    ],
)
def test_nested_state_dicts_are_found(wrapped, tmp_path):
    torch.save(wrapped({"a.weight": torch.ones(2)}), tmp_path / "m.pt")
    assert load_checkpoint(tmp_path / "m.pt").keys() == {"a.weight"}


def test_a_pickled_model_is_no_state_dict(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "m.pt")
    with pytest.raises(IncompatibleCheckpoint, match="not a pickled model"):
        load_checkpoint(tmp_path / "m.pt")


def tensor(offset: int, size: str, stride: str, *, count: int = 4) -> bytes:
    """A float32 tensor in storage 0, of any description."""
    storage = (
        b"("
        + text("storage")
        + name("torch", "FloatStorage")
        + text("0")
        + text("cpu")
        + f"I{count}\n".encode()
        + b"tQ"
    )
    rest = f"I{offset}\n".encode() + pickle.dumps(eval(size), 2)[2:-1].replace(b"q\x00", b"")
    rest += pickle.dumps(eval(stride), 2)[2:-1].replace(b"q\x00", b"")
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + storage
        + rest
        + b"\x89"
        + name("collections", "OrderedDict")
        + b")RtR"
    )


FOUR = struct.pack("<4f", 1, 2, 3, 4)


def with_storage(kind: str, path: Path, description: bytes) -> Path:
    if kind == "archive":
        return archive(path, description, s0=FOUR)
    return legacy(path, description, pickle.dumps(["0"], 2) + struct.pack("<q", 4) + FOUR)


@pytest.mark.parametrize("kind", ["archive", "legacy"])
def test_an_honest_tensor_is_read(kind, tmp_path):
    path = with_storage(kind, tmp_path / "m.pt", in_state_dict(tensor(1, "(3,)", "(1,)")))
    assert load_checkpoint(path)["w"].tolist() == [2, 3, 4]


LIES = {
    "too long": (0, "(5,)", "(1,)"),
    "too far": (2, "(3,)", "(1,)"),
    "before the start": (-1, "(2,)", "(1,)"),
    "backwards": (3, "(2,)", "(-1,)"),
    "stride beyond": (0, "(2, 2)", "(3, 1)"),
    "product overflows": (0, "(4294967296, 4294967296)", "(0, 0)"),
    "one number a billion times": (0, "(1000000000,)", "(0,)"),
    "negative size": (0, "(-1,)", "(1,)"),
    "sizes without strides": (0, "(2, 2)", "(1,)"),
    "sizes that are no numbers": (0, "('a',)", "(1,)"),
    "a hundred dimensions": (0, str((1,) * 100), str((1,) * 100)),
    "enormous stride of nothing": (0, "(0, 9223372036854775807)", "(1, 9223372036854775807)"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", ["archive", "legacy"])
def test_a_tensor_that_lies_about_its_place_is_refused(kind, lie, tmp_path):
    path = with_storage(kind, tmp_path / "m.pt", in_state_dict(tensor(*LIES[lie])))
    with pytest.raises(UnsafeCheckpoint, match=r"m\.pt (says|describes) "):
        load_checkpoint(path)


@pytest.mark.parametrize("count", [5, 3, -4, 10**15, 10**30])
@pytest.mark.parametrize("kind", ["archive", "legacy"])
def test_a_storage_that_lies_about_its_length_is_refused(kind, count, tmp_path):
    description = in_state_dict(tensor(0, "(1,)", "(1,)", count=count))
    with pytest.raises(UnsafeCheckpoint, match=r"should have|is described as"):
        load_checkpoint(with_storage(kind, tmp_path / "m.pt", description))


def test_a_storage_that_is_not_there(tmp_path):
    path = archive(tmp_path / "m.pt", in_state_dict(tensor(0, "(1,)", "(1,)")))
    with pytest.raises(UnsafeCheckpoint, match="refers to data/0, which it does not hold"):
        load_checkpoint(path)


def doubled(depth: int) -> bytes:
    """A tuple of a tuple of a tuple..., each twice the one inside: 2^depth to hash."""
    return b"K\x01" + b"2\x86" * depth


BOMBS = {
    "memo": b"K\x01r" + struct.pack("<I", 0xFFFFFFFF),
    "bytearray": b"\x96" + struct.pack("<Q", 200 * GIBIBYTE),
    "bytes": b"\x8e" + struct.pack("<Q", 200 * GIBIBYTE),
    "frame": b"\x95" + struct.pack("<Q", 200 * GIBIBYTE),
    "bytes of a number": name("builtins", "bytes") + b"I100000000000\n\x85R",
    "hash": b"}" + doubled(60) + b"K\x01s",
    "hash in a set": b"\x8f(" + doubled(60) + b"\x90",
    "nesting": b"]" * 20_000 + b"a" * 19_999,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("write", [archive, legacy])
def test_a_small_file_takes_little_time_and_memory(write, bomb, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path = write(tmp_path / "m.pt", in_state_dict(BOMBS[bomb]))
    with pytest.raises((UnsafeCheckpoint, IncompatibleCheckpoint), match=r"m\.pt"):
        load_checkpoint(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_records_that_overlap_are_refused(tmp_path):
    """A zip bomb without compression: many names for the same bytes."""
    path = archive(tmp_path / "m.pt", in_state_dict(b"N"), s0=b"\0" * 4096)
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    central = content[start:end]
    last = central[central.rindex(b"PK\x01\x02") :]
    copies = b"".join(last.replace(b"data/0", b"data/%c" % (65 + n)) for n in range(9))
    tail = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 12, 12, len(central) + len(copies), start, 0
    )
    path.write_bytes(content[:end] + copies + tail)
    with pytest.raises(UnsafeCheckpoint, match="more bytes than it has"):
        load_checkpoint(path)


def test_two_records_of_one_name_are_refused(tmp_path):
    path = archive(tmp_path / "m.pt", in_state_dict(b"N"))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as file:
        file.writestr("model/version", b"4\n")
    with pytest.raises(UnsafeCheckpoint, match="two records of one name"):
        load_checkpoint(path)


def test_nothing_is_written_outside(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    path = archive(folder / "m.pt", in_state_dict(b"N"))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("../../escaped", b"x")
        file.writestr("/tmp/vlscore-escaped", b"x")
    with pytest.raises(IncompatibleCheckpoint):
        load_checkpoint(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inside", "m.pt"]
    assert not Path("/tmp/vlscore-escaped").exists()


def test_conversion_keeps_every_value_and_separates_shared_tensors(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    tensors = {"whole": whole, "tied": whole, "part": whole[1:, ::2], "half": whole.half()}
    torch.save({"state_dict": tensors, "epoch": 1}, tmp_path / "m.ckpt")
    digest = convert(tmp_path / "m.ckpt", tmp_path / "m.safetensors")
    found = load_checkpoint(tmp_path / "m.safetensors")
    assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in tensors.items()}
    assert digest == tensors_digest(found) == tensors_digest(tensors)


def test_conversion_does_not_overwrite_unasked(tmp_path):
    torch.save({"w": torch.ones(1)}, tmp_path / "m.pt")
    (tmp_path / "m.safetensors").write_text("mine")
    with pytest.raises(InvalidSetting, match="exists already"):
        convert(tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").read_text() == "mine"
    convert(tmp_path / "m.pt", tmp_path / "m.safetensors", overwrite=True)
    assert load_checkpoint(tmp_path / "m.safetensors")["w"].tolist() == [1]
    with pytest.raises(InvalidSetting, match=r"must end in \.safetensors"):
        convert(tmp_path / "m.pt", tmp_path / "m.bin")


def test_a_refused_checkpoint_leaves_no_converted_file(tmp_path, trace):
    path = archive(tmp_path / "m.pt", in_state_dict(payloads(trace)["REDUCE"]))
    with pytest.raises(UnsafeCheckpoint):
        convert(path, tmp_path / "m.safetensors")
    assert not (tmp_path / "m.safetensors").exists()


def pickled(content: object) -> bytes:
    return pickle.dumps(content, 4)


def shared_dicts(levels: int) -> bytes:
    """One dictionary under all three names of the next: 3^levels ways lead to the innermost."""
    inner: dict[str, object] = {}
    for _ in range(levels):
        inner = {"state_dict": inner, "model_state_dict": inner, "model": inner}
    return pickled(inner)


def deep_dicts(levels: int) -> bytes:
    start = b"\x80\x04" + (b"}" + text("model")) * levels
    return start + b"}" + b"s" * levels + b"."


NESTED = {
    "shared": shared_dicts(40),
    "within itself": b"\x80\x04}q\x00" + text("model") + b"h\x00s.",
    "deep": deep_dicts(3000),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("write", [archive, legacy])
def test_dictionaries_in_dictionaries_end(write, nested, tmp_path):
    path = write(tmp_path / "m.pt", NESTED[nested])
    with pytest.raises((UnsafeCheckpoint, IncompatibleCheckpoint), match=r"m\.pt"):
        load_checkpoint(path)


@pytest.mark.timeout(20)
def test_the_same_numbers_named_again_and_again_are_refused(tmp_path):
    """A few megabytes that would take a hundred gigabytes to hash or to write."""
    big = torch.zeros(1 << 18)
    torch.save({f"name{n}": big for n in range(2000)}, tmp_path / "m.pt")
    for use in (load_checkpoint, lambda path: convert(path, tmp_path / "m.safetensors")):
        with pytest.raises(UnsafeCheckpoint, match="naming the same numbers again and again"):
            use(tmp_path / "m.pt")
    torch.save({f"name{n}": big for n in range(8)}, tmp_path / "tied.pt")
    assert len(load_checkpoint(tmp_path / "tied.pt")) == 8


def test_a_name_that_is_no_text_is_refused(tmp_path):
    """Half a surrogate pair, which pickle can hold and no file name can."""
    path = tmp_path / "m.pt"
    torch.save({"a\ud800b": torch.ones(1)}, path)
    with pytest.raises(UnsafeCheckpoint, match=r"whose name is no text: 'a\\ud800b'"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning", "a web page"),
        (b"\xef\xbb\xbf\n <HTML><body>Log in", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS"),
    ],
)
@pytest.mark.parametrize("name", ["model.ckpt", "model.safetensors"])
def test_a_download_gone_wrong_is_called_so(name, content, found, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IncompatibleCheckpoint, match=found):
        load_checkpoint(tmp_path / name)
    # Before anything that is missing beside it.
    with pytest.raises(IncompatibleCheckpoint, match=found):
        load_encoder("gloria", weights=tmp_path / name)
