"""The package's face, and the direction of its imports."""

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import vlscore

PACKAGE = Path(vlscore.__file__).parent

# From the bottom up; a room may import the rooms before it in this list, and no others.
ROOMS = [
    "errors",
    "_version",
    "_assurance",
    "_background",
    "_interrupts",
    "_memory",
    "_recent",
    "_record",
    "_files",
    "_precision",
    "_frames",
    "_torchrun",
    "_processes",
    "_resumable",
    "_resources",
    "_registry",
    "_signature",
    "cache",
    "similarity",
    "stats",
    "display",
    "search",
    "reports",
    "images",
    "studies",
    "datasets",
    "phantom",
    "findings",
    "perturb",
    "labelling",
    "encoders",
    "annotators",
    "embedding",
    "metrics",
    "scorer",
    "calibration",
    "evaluation",
    "index",
    "oracle",
    "meta",
    "training",
    "alignment",
    "comparison",
    "cli",
]
LIFTED_OUT = {
    "cache": {"errors"},
    "similarity": {"errors"},
    "stats": {"errors"},
    "search": {"errors", "_files", "_precision", "_torchrun", "_registry", "similarity"},
    "phantom": {"errors", "_files", "images", "reports"},
    "findings": {"errors", "_files", "_resources", "reports"},
    "perturb": {
        "errors",
        "_files",
        "_frames",
        "_registry",
        "_resumable",
        "_resources",
        "_version",
        "reports",
        "studies",
        "findings",
    },
}
# What takes long to import, or not everybody has.
HEAVY = {
    "PIL",
    "cv2",
    "faiss",
    "gdcm",
    "huggingface_hub",
    "matplotlib",
    "nltk",
    "numpy",
    "open_clip",
    "pyarrow",
    "pydicom",
    "rouge_score",
    "sacrebleu",
    "scipy",
    "timm",
    "torch",
    "torchvision",
    "transformers",
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


def test_the_architecture_page_names_every_room():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(ROOMS) - named == set()


def _output(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return done.stdout


def _processor_seconds(*command: str) -> float:
    """Of the quickest of three runs, in a process of its own; other work hardly counts."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _output(*command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.parametrize("command", [("-c", "import vlscore"), ("-m", "vlscore", "--help")])
def test_import_and_help_take_less_than_a_second(command):
    assert _processor_seconds(*command) < 1


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("vlscore", HEAVY),
        ("vlscore.cli.app", HEAVY),
        ("vlscore.core", HEAVY),
        ("vlscore.data", HEAVY),
        ("vlscore.data", HEAVY),
        ("vlscore.findings", HEAVY),
        ("vlscore.perturb", HEAVY),
        ("vlscore.data", HEAVY - {"numpy", "scipy"}),
        ("vlscore.stats", HEAVY - {"numpy", "scipy"}),
        ("vlscore.data", HEAVY - {"numpy", "PIL"}),
        ("vlscore.metrics", HEAVY - {"numpy", "torch"}),
        ("vlscore.retrieval", HEAVY - {"numpy", "torch"}),
        ("vlscore.metrics", HEAVY - {"numpy", "torch"}),
        ("vlscore.encoders", HEAVY - {"numpy", "torch", "PIL"}),
        # What a run over PNG files needs of these: torch takes longer than all the rest.
        ("vlscore.encoders.models.limitr", HEAVY - {"numpy", "torch", "PIL"}),
        ("vlscore.evaluation", HEAVY - {"numpy", "torch", "PIL", "pyarrow", "scipy"}),
        ("vlscore.metrics", HEAVY - {"numpy", "torch", "PIL"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_room_loads_no_heavy_library_that_it_can_do_without(module, heavy):
    program = f"import sys, {module}; print(*sorted(set(sys.modules) & {heavy!r}))"
    assert _output("-c", program).split() == []


def test_statistics_load_scipy_when_they_are_asked_for():
    program = "import sys, vlscore.evaluation; print(*[m for m in sys.modules if 'scipy.' in m])"
    assert not {"scipy.stats", "scipy.optimize"} & set(_output("-c", program).split())


def test_help_lists_the_commands():
    shown = _output("-m", "vlscore", "--help")
    # A command stands at the beginning of a line of the list, behind the frame of its panel.
    listed = set(re.findall(r"^\W{1,3}([a-z]+)\s", shown, re.MULTILINE))
    assert listed >= {
        "score",
        "evaluate",
        "encoders",
        "weights",
        "index",
        "oracle",
        "retrieval",
        "perturb",
        "sensitivity",
        "align",
    }


def test_the_face_is_what_it_lists():
    for name in vlscore.__all__:
        assert getattr(vlscore, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = vlscore.nonsense


def test_rooms_are_reachable_without_importing_them():
    program = "import vlscore; print(vlscore.similarity.triangle_area([0.,0.],[0.,1.],[1.,0.]))"
    assert _output("-c", program).startswith("tensor([0.5000]")


def test_the_citation_is_of_this_version():
    citation = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {vlscore.__version__}\n" in citation
