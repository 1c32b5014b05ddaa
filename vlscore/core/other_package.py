"""Conflict with vlscore-cxr, the package of VLScore's authors, which is imported as `vlscore`, too.

Where both are installed, pip writes them into one folder, and the later one overwrites files of the
earlier. This file is imported with every `import vlscore`, whichever of the two `__init__.py` is
there: that of vlscore-cxr imports two names from `vlscore.core`.
"""

import os
import warnings
from typing import Any

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files of vlscore-cxr: one that vlscore does not have, and one that this sub-package hides.
_THEIRS, _HIDDEN = "preprocess.py", "core.py"
_REPAIR = "pip uninstall -y vlscore vlscore-cxr; then install one of them"
THEIR_NAMES = ("VLSCORE_NORM_LIMITR", "triangle_vlscore")


def name_conflict() -> tuple[str, str] | None:
    """Return what is wrong with the installed package, and how to repair it; None if nothing is."""
    if os.path.exists(os.path.join(_FOLDER, _THEIRS)):
        fact = f"vlscore and vlscore-cxr are both installed in {_FOLDER}, and overwrite each other"
    elif not os.path.exists(os.path.join(_FOLDER, "__init__.py")):
        fact = f"{_FOLDER} has no __init__.py, which `pip uninstall vlscore-cxr` removes"
    else:
        return None
    return fact, _REPAIR


def warn_of_conflict() -> None:
    """Warn of a conflict; it costs two look-ups of a file."""
    if (found := name_conflict()) is not None:
        fact, repair = found
        warnings.warn(f"{fact}: {repair} (`python -m vlscore doctor`)", stacklevel=2)


def their_name(name: str) -> Any:
    """Return a name of vlscore-cxr's core.py, so that its `__init__.py` can be imported.

    Raises: AttributeError if the file is not there.
    """
    import importlib.util

    path = os.path.join(_FOLDER, _HIDDEN)
    spec = importlib.util.spec_from_file_location("vlscore._other_core", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise AttributeError(f"No vlscore.core attribute {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
