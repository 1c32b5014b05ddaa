"""Every benchmark takes its date, machine and data from one place, and its result is committed."""

import ast
import hashlib
import re
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
SHARED = (
    "radjudge",
    "authors_way",
    "machine",
    "data",
    "phantom_set",
    "ideal_encoder",
    "image_use_numbers",
    "image_use_preferences",
    "image_use_scenes",
    "imperfect_references",
    "judging_stages",
    "paper_verdicts",
    "real_data",
    "real_joined",
    "significant_errors",
    "squeezed_images",
)
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


def test_a_script_says_what_it_measures_where_and_when():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    lacking = {}
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        protocol = ast.get_docstring(ast.parse(source)) or ""
        row = f"`{script.name}` | [{script.stem}.md](results/{script.stem}.md)"
        of_machine = script.stem in WITHOUT_MACHINE or "describe_machine()" in source
        has = {
            "protocol": "rotocol" in protocol,
            "its call": f"python benchmarks/{script.name}" in protocol,
            "row of README.md": row in listed,
            "result": (FOLDER / "results" / f"{script.stem}.md").is_file(),
            "machine": of_machine,
            "no date of its own": script.stem in WITHOUT_MACHINE
            or not re.search(r"\b20\d\d-\d\d-\d\d\b", source),
        }
        if wrong := [name for name, is_so in has.items() if not is_so]:
            lacking[script.stem] = wrong
    assert lacking == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_scripts_use_names_and_arguments_that_the_package_has(tmp_path):
    """Most scripts run in no test, and would break unnoticed where the package changes."""
    settings = ("--config-file", FOLDER / "mypy.ini", "--cache-dir", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


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


def test_the_stages_of_a_gpu_run_through_on_a_processor(monkeypatch, tmp_path):
    """All but CUDA's events; a stage that fails loses no other's rows."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_stages

    from tests.encoders.random_encoders import quick_weights, shorten
    from vlscore.encoders.models.limitr import LimitrEncoder

    page = tmp_path / "page.md"

    def fails(self):
        yield "half of it", "1", "", ""
        raise RuntimeError("no | memory\nat all")

    def quick(pieces):
        with quick_weights():
            encoder = LimitrEncoder(pieces)
        shorten(encoder)
        return encoder

    monkeypatch.setattr(gpu_stages, "LimitrEncoder", quick)
    monkeypatch.setattr(gpu_stages.Stages, "resnet", fails)
    assert gpu_stages.main(["--device", "cpu", "--small", "--out", str(page)]) == 1
    rows = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines()]
    found = [row[0].removeprefix("| ") for row in rows if len(row) > 1][1:]
    assert [row[2] for row in rows if "failed" in row] == ["RuntimeError: no / memory at all"]
    assert "measure nothing" in page.read_text(encoding="utf-8")
    stages = ["64^3", "64^3", "LIMITR", "reports", "BERT", "half", "fails", "from cached"]
    stages += ["exact oracle's", "exact oracle", "images,", "reports,", "T in bf16", "JPEG"]
    stages += ["BERT, compiled", "ResNet-50 at 299, compiled", "64^3", "64^3"]
    assert len(found) == len(stages)
    assert all(map(str.startswith, found, stages))


def test_without_a_gpu_its_stages_are_not_measured(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_stages
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    page = tmp_path / "page.md"
    assert gpu_stages.main(["--out", str(page)]) == 0
    assert "Not measured: no GPU." in page.read_text(encoding="utf-8")
