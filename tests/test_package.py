"""The public names of the package, and the direction of its imports."""

import ast
import importlib.util
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import vlscore

PACKAGE = Path(vlscore.__file__).parent
_SPEC = importlib.util.spec_from_file_location(
    "import_graph", PACKAGE.parent / "docs" / "import_graph.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
import_graph = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(import_graph)
PACKAGES = import_graph.PACKAGES

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


@pytest.fixture(scope="module")
def graph():
    return import_graph.ImportGraph()


def test_the_list_of_sub_packages_is_complete():
    present = {
        path.stem
        for path in PACKAGE.iterdir()
        if (path.is_dir() and any(path.glob("*.py"))) or path.suffix == ".py"
    }
    assert present - {"__init__", "__main__"} == set(PACKAGES)


def test_imports_point_downwards(graph):
    upwards = {
        package: graph.packages()[package] - set(PACKAGES[:place])
        for place, package in enumerate(PACKAGES)
    }
    assert {package: names for package, names in upwards.items() if names} == {}


def test_no_package_imports_private_names_of_another(graph):
    # vlscore's own `__init__` loads one file of core by itself, so that it is imported quickly.
    assert [pair for pair in graph.private_imports if pair[0] != "vlscore"] == []


def test_no_files_import_each_other(graph):
    assert graph.circles() == []


def test_a_chain_of_imports_is_short(graph):
    chain = graph.longest_chain()
    assert len(chain) <= 24, " > ".join(chain)


def test_a_circle_and_an_import_of_a_private_name_are_noticed(tmp_path):
    """The graph of a made-up package with both faults."""
    package = tmp_path / "vlscore"
    for name, text in {
        "__init__": "",
        "data/__init__": "",
        "data/one": "from vlscore.data.two import b\na = 1",
        "data/two": "def b():\n    from vlscore.data.one import a\n    return a",
        "cli/__init__": "from vlscore.data.one import a",
    }.items():
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    made = import_graph.ImportGraph(package)
    assert made.circles() == [["vlscore.data.one", "vlscore.data.two"]]
    assert made.private_imports == [("vlscore.cli", "vlscore.data.one")]
    assert made.packages()["cli"] == {"data"}


def test_the_page_lists_the_sub_packages_and_their_imports(graph):
    page = import_graph.PAGE.read_text(encoding="utf-8")
    assert page == import_graph.page_with(graph.drawing(), page), (
        "run: python docs/import_graph.py --write"
    )


def test_class_names_have_one_meaning():
    # A private class does not take the name of a public one either.
    files: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    twice = {name: places for name, places in files.items() if len(places) > 1}
    assert twice == {}, f"rename one of the classes of each name: {twice}"


def _output(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return done.stdout


# Sub-package -> the heavy libraries that it may load: a run over PNG files needs no more of these,
# and torch takes longer than all the rest.
ALLOWED = {
    "vlscore": "",
    "vlscore.cli": "",
    "vlscore.cli.train": "",
    "vlscore.data.reports": "",
    "vlscore.data.study_tables": "",
    "vlscore.findings.extraction": "",
    "vlscore.perturb.generate": "",
    "vlscore.core.cache": "numpy",
    "vlscore.data.phantom.phantom_pairs": "numpy scipy",
    "vlscore.stats.hypothesis_tests": "numpy scipy",
    "vlscore.data.images.read": "numpy PIL",
    "vlscore.metrics.similarity": "numpy torch",
    "vlscore.metrics.registry": "numpy torch",
    "vlscore.retrieval.vector_oracle": "numpy torch",
    "vlscore.metrics.scorer": "numpy torch PIL",
    "vlscore.encoders.models.limitr": "numpy torch PIL",
    "vlscore.evaluation.scoring.evaluate": "numpy torch PIL pyarrow scipy",
}


@pytest.fixture(scope="module")
def loaded():
    """Module -> the heavy libraries that are loaded then.

    Modules share a process where each may load all that those before it may.
    """
    processes: list[list[str]] = []
    for allowed in dict.fromkeys(reversed(ALLOWED.values())):
        for process in processes:
            if set(allowed.split()) <= set(process[0].split()):
                process.insert(0, allowed)
                break
        else:
            processes.append([allowed])
    found = {}
    for process in processes:
        modules = [m for allowed in process for m, each in ALLOWED.items() if each == allowed]
        lines = [f"import {each}; print(*{HEAVY!r} & set(sys.modules))" for each in modules]
        shown = _output("-c", "\n".join(["import sys", *lines])).splitlines()
        found |= zip(modules, map(str.split, shown), strict=True)
    return found


def test_a_package_loads_no_heavy_library_that_it_can_do_without(loaded):
    more = {module: set(loaded[module]) - set(ALLOWED[module].split()) for module in ALLOWED}
    assert {module: names for module, names in more.items() if names} == {}


def test_statistics_load_scipy_when_they_are_asked_for():
    package = "vlscore.evaluation.scoring.evaluate"
    program = f"import sys, {package}; print(*[m for m in sys.modules if 'scipy.' in m])"
    assert not {"scipy.stats", "scipy.optimize"} & set(_output("-c", program).split())


def test_every_listed_name_exists():
    for name in vlscore.__all__:
        assert getattr(vlscore, name) is not None
    with pytest.raises(AttributeError, match="No vlscore attribute nonsense"):
        _ = vlscore.nonsense


def test_sub_packages_are_reachable_without_an_import():
    program = "import vlscore; print(vlscore.metrics.triangle_area([0.,0.],[0.,1.],[1.,0.]))"
    assert _output("-c", program).startswith("tensor([0.5000]")


def test_the_citation_is_of_this_version():
    citation = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {vlscore.__version__}\n" in citation
