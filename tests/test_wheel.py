"""The wheel as a user gets it: its contents, its extras, and the demonstration run from it."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.example_blocks import PAGES

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
_SPEC = importlib.util.spec_from_file_location(
    "wheel_contents", REPOSITORY / ".github" / "wheel_contents.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
wheel_contents = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(wheel_contents)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from the checkout."""
    pytest.importorskip("hatchling", reason="pip install hatchling, or pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_is_small_and_has_what_commands_read(wheel: Path) -> None:
    assert wheel.stat().st_size < 17e6
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {"vlscore", f"{wheel.stem[:13]}.dist-info"}
    for needed in (
        "vlscore/py.typed",
        "vlscore/metrics/__init__.pyi",
        "vlscore/_bundled/weights/cards/biovil.toml",
        "vlscore/_bundled/weights/phantom/demo/studies.jsonl",
        "vlscore/_bundled/perturbations/lexicons/observations.toml",
    ):
        assert needed in names
    sources = {f"vlscore/{p.relative_to(REPOSITORY / 'vlscore')}" for p in _package_files()}
    assert sources <= names
    parts = wheel_contents.parts(wheel)
    assert sum(count for count, _ in parts.values()) == len(names)
    assert set(parts) >= {"vlscore", "vlscore/_bundled/weights", "vlscore/_bundled/perturbations"}


def _package_files() -> list[Path]:
    return [p for p in (REPOSITORY / "vlscore").rglob("*.py*") if "__pycache__" not in p.parts]


def test_the_source_archive_builds_the_same_wheel(built: Path) -> None:
    """It has every file that goes into the wheel, and nothing that the build made."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "weights/cards/biovil.toml"} <= names
    assert {str(path.relative_to(REPOSITORY)) for path in _package_files()} <= names
    assert not [name for name in names if name.startswith(("out/", ".venv/", "dist/"))]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_demonstration_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Installed into a folder of its own, with the libraries of these tests. `make wheel` installs
    all of them anew."""
    target, bin = tmp_path / "site-packages", tmp_path / "bin"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
            *("--disable-pip-version-check", "--target", target, wheel),
        ],
        check=True,
    )
    bin.mkdir()
    for name, arguments in (("python", ""), ("vlscore", "-m vlscore")):
        program = bin / name
        program.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{target}"\nexec "{sys.executable}" {arguments} "$@"\n'
        )
        program.chmod(0o755)
    done = subprocess.run(
        [REPOSITORY / ".github" / "smoke.sh", bin], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the wheel works\n")


def test_extras_are_named_and_named_ones_exist() -> None:
    """Every `pip install 'vlscore[extra]'` names an extra, and a reader finds every extra."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*_package_files(), *PAGES]}
    named = {
        extra
        for text in texts.values()
        for group in re.findall(r"vlscore\[([\w,]+)\]", text)
        for extra in group.split(",")
    }
    # Messages and pages write `vlscore[extra]` for any of them.
    assert named - {"extra"} <= set(EXTRAS)
    table = texts[REPOSITORY / "CONTRIBUTING.md"].split("## Dependencies")[1]
    first = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(first))) == set(EXTRAS)


def test_extras_of_metrics_install_what_the_metrics_import() -> None:
    from vlscore.metrics import METRICS

    own = 0
    required = " ".join(PROJECT["dependencies"]).lower()
    for metric in METRICS.values():
        if metric.extra:
            own += 1
            assert metric.library.lower() in " ".join(EXTRAS[metric.extra]).lower()
        elif metric.library not in ("vlscore", "own"):
            assert metric.library.lower() in required
    assert own


def test_every_required_library_says_why_it_is_no_extra():
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    lines = text.split("\ndependencies = [\n")[1].split("\n]\n")[0].splitlines()
    required = [k for k, line in enumerate(lines) if not line.strip().startswith("#")]
    assert [tomllib.loads(f"x = [{lines[k]}]")["x"][0] for k in required] == PROJECT["dependencies"]
    silent = [lines[k].strip() for k in required if k == 0 or lines[k - 1].strip()[:1] != "#"]
    assert not silent
