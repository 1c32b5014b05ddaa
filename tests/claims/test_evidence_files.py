"""Evidence files of others: a damaged one is refused by one error, whatever the damage."""

import io
import json
import os
import struct
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vlscore.claims import Cases, evidence_digest, fit_evidence, read_evidence
from vlscore.claims.array_file import read_arrays, write_arrays
from vlscore.errors import InvalidSetting

FINDINGS = ("cardiomegaly", "pleural effusion", "pleural effusion, left")
ARRAYS = (
    *("scores", "truth", "fitted"),
    *("mean", "spread", "weights", "bias", "directions", "shift", "scale", "share"),
)


@pytest.fixture(scope="module")
def evidence():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 3)) < 0.4).astype(float)
    vectors = rng.normal(size=(300, 5))
    vectors[:, :3] += 2 * truth
    labels = dict(zip(FINDINGS, truth.T, strict=True))
    cases = Cases(vectors, labels, [str(k) for k in range(300)])
    return fit_evidence(*cases.split(0.5, 0), signature="embeddings|enc:x")


@pytest.fixture
def written(evidence, tmp_path):
    path = tmp_path / "evidence.npz"
    evidence.save(path)
    return path


def refused(path, *words):
    with pytest.raises(InvalidSetting, match="is no evidence") as raised:
        read_evidence(path)
    message = str(raised.value)
    assert str(path) in message
    assert "vlscore claims --fit" in message
    for word in words:
        assert word in message, message


def changed(path, **arrays):
    """Write the file again with other arrays or header texts, and the digest that fits them."""
    header, found = read_arrays(path, ARRAYS)
    for name, value in arrays.items():
        (header if name in header else found)[name] = value
    write_arrays(path, header, found)


def raw(path, members, **options):
    """Write a zip file of these bytes."""
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def test_numpy_reads_what_is_written(evidence, written):
    with np.load(written, allow_pickle=False) as stored:
        assert np.array_equal(stored["weights"], evidence.probes.weights)
        assert json.loads(stored["header"].tobytes())["findings"] == list(FINDINGS)
    again = read_evidence(written)
    assert again.findings == FINDINGS
    assert np.array_equal(again.truth, evidence.truth, equal_nan=True)


@pytest.mark.parametrize("length", [0, 1, 21, 41, 42, 100, 1000, -1, -22, -100])
def test_a_file_that_is_cut_off(written, length):
    content = written.read_bytes()
    written.write_bytes(content[:length])
    refused(written)


def test_every_flipped_byte_is_noticed_or_harmless(evidence, written):
    """Some bytes of a zip archive say nothing, such as the time; then the evidence is the same."""
    content = written.read_bytes()
    rng = np.random.default_rng(0)
    places = {*range(120), *range(len(content) - 1400, len(content))}
    places |= set(rng.integers(0, len(content), 400).tolist())
    same = 0
    for place in sorted(places):
        bits = 1 << int(rng.integers(8)) if place % 2 else 255
        damaged = bytearray(content)
        damaged[place] ^= bits
        written.write_bytes(damaged)
        try:
            found = read_evidence(written)
        except InvalidSetting:
            continue
        same += 1
        assert found.findings == evidence.findings
        for name in ARRAYS:
            owner = evidence if hasattr(evidence, name) else evidence.probes
            own = getattr(found if hasattr(found, name) else found.probes, name)
            assert np.array_equal(own, getattr(owner, name), equal_nan=True), (place, name)
    assert same < len(places) / 2


def test_inserted_removed_and_swapped_parts(written):
    content = written.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        first, last = sorted(rng.integers(0, len(content), 2).tolist())
        for damaged in (
            content[:first] + content[last:],
            content[:first] + bytes(last - first) + content[last:],
            content[:first] + rng.bytes(50) + content[first:],
            content[last:] + content[:last],
        ):
            if damaged == content:
                continue
            written.write_bytes(damaged)
            refused(written)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_were_changed_without_their_digest(written, name):
    with np.load(written) as stored:
        arrays = dict(stored)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] += 0.5
    np.savez(written, **arrays)
    refused(written, "digest")


def of_shape(values, how):
    return {
        "first": values[..., :1],
        "short": values[:-1],
        "long": np.concatenate([values, values]),
        "axis": values[None] if values.ndim == 1 else values.ravel(),
        "empty": values[:0],
        "turned": values.T if values.ndim == 2 else values[:, None],
    }[how]


@pytest.mark.parametrize("how", ["first", "short", "long", "axis", "empty", "turned"])
@pytest.mark.parametrize("name", ARRAYS)
def test_shapes_that_do_not_fit(written, name, how):
    """Also with a digest that fits: a file may have been made like that."""
    _, found = read_arrays(written, ARRAYS)
    other = of_shape(found[name], how)
    if other.shape != found[name].shape:
        changed(written, **{name: other})
        refused(written)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("name", ARRAYS)
def test_values_that_are_no_numbers(written, name, value):
    _, found = read_arrays(written, ARRAYS)
    if name == "truth" and np.isnan(value):
        values = np.full_like(found[name], np.nan)
    else:
        values = found[name].copy()
        values.flat[-1] = value
    changed(written, **{name: values})
    refused(written)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("truth", 1.0),
        ("truth", 0.0),
        ("truth", 7.0),
        ("truth", -1.0),
        ("truth", 0.5),
        ("fitted", -1.0),
        ("fitted", 0.5),
        ("spread", 0.0),
        ("spread", -1.0),
        ("scale", 0.0),
    ],
)
def test_values_out_of_their_range(written, name, values):
    _, found = read_arrays(written, ARRAYS)
    changed(written, **{name: np.full_like(found[name], values)})
    refused(written)


@pytest.mark.parametrize(
    "names",
    [
        [["cardiomegaly"], {}, None],
        ["cardiomegaly", "cardiomegaly", "pleural effusion"],
        ["cardiomegaly", "edema", "pleural effusion, left"],
        ["cardiomegaly", "pleural effusion", "warp core"],
        ["cardiomegaly", "pleural effusion"],
        ["", "pleural effusion", "cardiomegaly"],
        ["\u202e\ud800", "pleural effusion", "cardiomegaly"],
        "cardiomegaly",
        {"cardiomegaly": 1},
        [],
        None,
        7,
    ],
)
def test_names_that_are_no_findings(written, names):
    changed(written, findings=names)
    refused(written)


@pytest.mark.parametrize("field", [{"signature": 7}, {"signature": None}, {"format": "other"}])
def test_other_headers(written, field):
    changed(written, **field)
    refused(written)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"null",
        b"[1]",
        b"\xff\xfe",
        b"{}",
        b"1" * 5000,
    ],
)
def test_headers_that_are_no_json(written, header):
    with np.load(written) as stored:
        arrays = dict(stored) | {"header": np.frombuffer(header, np.uint8)}
    np.savez(written, **arrays)
    refused(written)


DTYPES = (np.complex128, np.float32, np.float16, np.int64, np.bool_, "S8", "U8", ">f8", "O")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["scores", "truth", "weights", "header"])
def test_arrays_of_another_type(written, name, dtype):
    with np.load(written) as stored:
        arrays = dict(stored)
    arrays[name] = arrays[name].astype(dtype)
    np.savez(written, **arrays)
    refused(written)


class Opened:
    """Pickled: would make a file when it is opened."""

    def __reduce__(self):
        return os.mkdir, ("opened",)


def test_no_pickle_is_opened(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.load(written) as stored:
        arrays = dict(stored)
    arrays["scores"] = np.array([Opened()], dtype=object)
    np.savez(written, allow_pickle=True, **arrays)
    refused(written)
    np.save("alone.npy", arrays["scores"], allow_pickle=True)
    written.write_bytes(Path("alone.npy").read_bytes())
    refused(written)
    assert not Path("opened").exists()


NPY_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<f8', 'fortran_order': 'x', 'shape': (1,), }",
    "{'descr': '<f8', 'shape': (1,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 100 + "), }",
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,), }",
    "{" + "(" * 2000,
    "{'descr': '''",
    "",
    "7",
)


@pytest.mark.parametrize("header", NPY_HEADERS, ids=range(len(NPY_HEADERS)))
def test_headers_of_arrays(written, header):
    members = members_of(written)
    raw(written, members | {"scores.npy": npy(header, bytes(8))})
    refused(written)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"\x93NUMPY\x09\x00", b"x" * 99],
)
def test_members_that_are_no_arrays(written, content):
    raw(written, members_of(written) | {"scores.npy": content})
    refused(written)


def test_archives_of_other_members(written):
    members = members_of(written)
    for other in (
        {name: each for name, each in members.items() if name != "share.npy"},
        members | {"more.npy": members["share.npy"]},
        {},
        {f"x/{name}": each for name, each in members.items()},
        {name.replace("share", "../share"): each for name, each in members.items()},
    ):
        raw(written, other)
        refused(written)


def test_a_member_twice(written):
    content = written.read_bytes()
    # Both copies of the name, before the member and in the directory.
    written.write_bytes(content.replace(b"shift.npy", b"share.npy"))
    refused(written)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_archives(written, method):
    raw(written, members_of(written), compression=method)
    refused(written, "compressed")


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (8, 64), (10, 99), (10, 12)])
def test_encrypted_members_and_unknown_methods(written, offset, value):
    """Bits of the directory: flags are at 8, and the method of compression at 10."""
    content = bytearray(written.read_bytes())
    place = content.index(b"PK\1\2")
    content[place + offset] = value
    written.write_bytes(content)
    refused(written)


def test_other_files(tmp_path, written):
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "text.npz").write_text("evidence " * 100)
    (tmp_path / "zeros.npz").write_bytes(bytes(5000))
    np.save(tmp_path / "one.npy", np.ones(30))
    for name in ("folder.npz", "pipe.npz", "text.npz", "zeros.npz", "one.npy", "absent.npz"):
        refused(tmp_path / name)
    # Commands ask for the digest first.
    for name in ("folder.npz", "pipe.npz", "absent.npz"):
        with pytest.raises(InvalidSetting, match="is no evidence"):
            evidence_digest(tmp_path / name)
    refused(Path("/dev/zero"))


def test_memory_is_bounded_by_what_the_file_holds(written):
    """A sparse file of 8 GiB, a directory of many members, arrays that claim petabytes."""
    members = members_of(written)
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for k in range(20_000):
            archive.writestr(str(k), b"")
    tracemalloc.start()
    with written.open("r+b") as stream:
        stream.truncate(8 << 30)
    refused(written, "larger than")
    written.write_bytes(many.getvalue())
    refused(written)
    raw(written, members | {"scores.npy": npy(NPY_HEADERS[0], bytes(8))})
    refused(written)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_evidence_that_could_not_be_read_is_not_written(evidence, tmp_path):
    for other in (
        replace(evidence, findings=("cardiomegaly", "warp core", "edema")),
        replace(evidence, scores=evidence.scores * np.nan),
        replace(evidence, truth=evidence.truth[:-1]),
    ):
        with pytest.raises(InvalidSetting, match="cannot be written"):
            other.save(tmp_path / "no.npz")
    assert not (tmp_path / "no.npz").exists()
