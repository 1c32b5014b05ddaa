"""The package's face, and the direction of its imports."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vlscore

PACKAGE = Path(vlscore.__file__).parent

# From the bottom up; a room may import the rooms before it in this list, and no others.
ROOMS = [
    "errors",
    "_version",
    "_files",
    "_resources",
    "_registry",
    "_signature",
    "similarity",
    "stats",
    "search",
    "reports",
    "images",
    "studies",
    "phantom",
    "findings",
    "perturb",
    "encoders",
    "embedding",
    "metrics",
    "scorer",
    "evaluation",
    "index",
    "oracle",
    "meta",
    "display",
    "cli",
]
LIFTED_OUT = {
    "similarity": {"errors"},
    "stats": {"errors"},
    "search": {"errors", "_files"},
    "phantom": {"errors", "_files", "images", "reports"},
    "findings": {"errors", "_files", "_resources", "reports"},
    "perturb": {
        "errors",
        "_files",
        "_registry",
        "_resources",
        "_version",
        "reports",
        "studies",
        "findings",
    },
}


def _imports_of(room: str) -> dict[str, set[str]]:
    """File -> rooms of ours that it imports."""
    folder = PACKAGE / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{room}.py"]
    found: dict[str, set[str]] = {}
    for file in files:
        rooms = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: imports are absolute"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            rooms |= {name.split(".")[1] for name in names if name.startswith("vlscore.")}
        found[str(file.relative_to(PACKAGE))] = rooms - {room}
    return found


def test_the_list_of_rooms_is_complete():
    present = {
        path.stem
        for path in PACKAGE.iterdir()
        if (path.is_dir() and any(path.glob("*.py"))) or path.suffix == ".py"
    }
    assert present - {"__init__", "__main__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_downwards(room):
    allowed = set(ROOMS[: ROOMS.index(room)]) | {"__version__"}
    if room in LIFTED_OUT:
        allowed = LIFTED_OUT[room]
    upwards = {file: rooms - allowed for file, rooms in _imports_of(room).items()}
    assert not {file: rooms for file, rooms in upwards.items() if rooms}


def _seconds_and_output(*command: str) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def test_import_and_help_do_not_load_torch():
    program = "import sys, vlscore, vlscore.cli; print('torch' in sys.modules)"
    assert _seconds_and_output("-c", program)[1].strip() == "False"


def test_help_lists_the_commands():
    _, shown = _seconds_and_output("-m", "vlscore", "--help")
    for command in (
        "score",
        "evaluate",
        "encoders",
        "weights",
        "index",
        "oracle",
        "retrieval",
        "perturb",
        "sensitivity",
    ):
        assert command in shown


def test_the_face_is_what_it_lists():
    for name in vlscore.__all__:
        assert getattr(vlscore, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = vlscore.nonsense


def test_rooms_are_reachable_without_importing_them():
    program = "import vlscore; print(vlscore.similarity.triangle_area([0.,0.],[0.,1.],[1.,0.]))"
    assert "0.5" in _seconds_and_output("-c", program)[1]
