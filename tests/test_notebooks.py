"""The notebooks run, and print what is stored in them."""

import importlib.util
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.tolerances import same_print

pytestmark = pytest.mark.slow

FOLDER = REPOSITORY / "docs" / "notebooks"
_SPEC = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
assert _SPEC is not None
assert _SPEC.loader is not None
run = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run)
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_stored(path: Path) -> None:
    stored = [run.stored_output(cell).splitlines() for cell in run.code_cells(path)]
    printed = [text.splitlines() for text in run.printed_cells(path)]
    for number, (found, expected) in enumerate(zip(printed, stored, strict=True), 1):
        assert same_print(found, expected), (path.name, number, found)


def test_there_are_three_and_each_prints() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "design_a_metric",
        "evaluate_and_compare",
        "train_and_calibrate",
    ]
    for path in NOTEBOOKS:
        assert all(
            run.stored_output(cell) or "def " in "".join(cell["source"])
            for cell in run.code_cells(path)
        ), path
