"""Run the notebooks of this folder, and store what their cells print.

    python docs/notebooks/run.py

A notebook's cells run in their order in one namespace, in a folder of their own. They use Python
alone, so no kernel is needed. `tests/test_notebooks.py` compares what they print with what is
stored.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent


def printed_cells(path: Path) -> list[str]:
    """Run the code cells of a notebook; return what each prints."""
    # In a module, as a script is one: what travels to other processes is found by it.
    module = ModuleType(path.stem)
    sys.modules[path.stem] = module
    printed = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for number, cell in enumerate(code_cells(path), 1):
                stream = io.StringIO()
                with contextlib.redirect_stdout(stream):
                    code = compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec")
                    exec(code, vars(module))
                printed.append(stream.getvalue())
        finally:
            os.chdir(before)
            del sys.modules[path.stem]
    return printed


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def stored_output(cell: dict[str, Any]) -> str:
    """Return what a code cell printed when the notebook was stored."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def store(path: Path) -> None:
    """Run a notebook and store what its cells print."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    printed = iter(printed_cells(path))
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            text = next(printed)
            stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(True)}
            cell["outputs"] = [stream] if text else []
            cell["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for notebook_path in sorted(FOLDER.glob("*.ipynb")):
        store(notebook_path)
