"""Every benchmark takes its date, machine and data from one place, and its result is committed."""

import ast
import hashlib
import re
import sys

import pytest

from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
SHARED = ("machine", "data", "phantom_set", "image_use_numbers", "annotator_pairs")
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem not in SHARED)
# Still to be brought over; none is added.
WITHOUT_MACHINE = {"perturbation_reading"}


@pytest.fixture
def data(monkeypatch):
    """The module benchmarks/data.py, imported as the scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "data", raising=False)
    import data

    yield data
    sys.modules.pop("data", None)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_says_what_it_measures_where_and_when(script):
    source = script.read_text(encoding="utf-8")
    protocol = ast.get_docstring(ast.parse(source))
    assert protocol is not None
    assert "rotocol" in protocol
    assert f"python benchmarks/{script.name}" in protocol
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"`{script.name}` | [{script.stem}.md](results/{script.stem}.md)" in listed
    assert (FOLDER / "results" / f"{script.stem}.md").is_file()
    if script.stem not in WITHOUT_MACHINE:
        assert "describe_machine()" in source
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b", source)


def test_an_absent_file_is_answered_with_where_to_get_it(data, tmp_path):
    with pytest.raises(SystemExit) as ended:
        data.NEGEX_TEST_SET.check(tmp_path / "absent.txt")
    assert "absent.txt is no file" in str(ended.value)
    assert data.NEGEX_TEST_SET.url in str(ended.value)
    with pytest.raises(SystemExit, match="is no file"):
        data.describe_file(tmp_path)


def test_another_file_than_the_recorded_one_is_told_apart(data, tmp_path):
    path = tmp_path / "reports.jsonl"
    path.write_bytes(b"{}\n")
    digest = hashlib.sha256(b"{}\n").hexdigest()
    ours = data.DataFile("reports", "https://example.org", "CC0-1.0", digest, "Download it.")
    other = data.DataFile("reports", "https://example.org", "CC0-1.0", "0" * 64, "Download it.")
    line = f"Data: `reports.jsonl` (sha256 {digest[:16]}): reports, https://example.org, CC0-1.0."
    assert ours.check(path) == line
    assert "not the file of the committed result" in other.check(path)


def test_the_recorded_reports_are_those_beside_the_checkout(data, shared):
    line = data.INDIANA_REPORTS.check(shared / "data" / "iu_reports.jsonl")
    assert "not the file" not in line
