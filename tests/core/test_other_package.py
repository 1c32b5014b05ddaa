"""Our files and those of vlscore-cxr, which is imported as `vlscore`, too, in one folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vlscore
from vlscore.core import name_conflict, other_package

OURS = Path(vlscore.__file__).parent
# Of vlscore-cxr 0.1.2: what its `__init__.py` imports, and from where.
THEIR_INIT = "from .core import VLSCORE_NORM_LIMITR, triangle_vlscore\n__version__ = '0.1.2'\n"
THEIR_CORE = "VLSCORE_NORM_LIMITR = 890.0\ndef triangle_vlscore(): return 'theirs'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all of this package but its `__init__.py`."""
    package = tmp_path / "vlscore"
    package.mkdir()
    for path in OURS.iterdir():
        if path.name not in ("__init__.py", "__pycache__"):
            (package / path.name).symlink_to(path)
    return package


def ran(folder: Path, program: str) -> tuple[str, str]:
    """What a program prints, and says on standard error, that imports from the folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


STATE = "from vlscore.core import name_conflict; print(name_conflict() is None)"


def test_one_package_alone_is_no_conflict(folder: Path) -> None:
    (folder / "__init__.py").write_bytes((OURS / "__init__.py").read_bytes())
    assert ran(folder, STATE) == ("True", "")
    assert name_conflict() is None


def test_ours_over_theirs_warns_once(folder: Path) -> None:
    (folder / "__init__.py").write_bytes((OURS / "__init__.py").read_bytes())
    (folder / "preprocess.py").touch()
    found, said = ran(folder, "import vlscore, vlscore.core, vlscore.data; print(vlscore.Scorer)")
    assert found == "<class 'vlscore.metrics.scorer.Scorer'>"
    assert said.count("UserWarning") == 1
    assert "pip uninstall -y vlscore vlscore-cxr" in said
    assert str(folder) in said


def test_theirs_over_ours_can_be_imported_and_warns_once(folder: Path) -> None:
    (folder / "__init__.py").write_text(THEIR_INIT)
    (folder / "core.py").write_text(THEIR_CORE)
    (folder / "preprocess.py").touch()
    program = "import vlscore; print(vlscore.VLSCORE_NORM_LIMITR, vlscore.triangle_vlscore())"
    found, said = ran(folder, program)
    assert found == "890.0 theirs"
    assert said.count("UserWarning") == 1
    assert ran(folder, STATE)[0] == "False"


def test_what_its_uninstallation_leaves_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_package, "_FOLDER", str(folder))
    with pytest.warns(UserWarning, match="has no __init__.py, which `pip uninstall vlscore-cxr`"):
        other_package.warn_of_conflict()
    (folder / "__init__.py").touch()
    assert name_conflict() is None
