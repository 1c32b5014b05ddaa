"""The examples in docstrings print what they say."""

import doctest
import importlib

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "vlscore"
FOLDERS = sorted({p.relative_to(PACKAGE).parts[0] for p in PACKAGE.glob("*/**/*.py")})


@pytest.mark.parametrize("folder", FOLDERS)
def test_examples_of_docstrings(folder):
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        if ">>> " not in path.read_text(encoding="utf-8"):
            continue
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            # Optional libraries, such as torchmetrics, may be absent; a module of ours may not.
            if (error.name or "vlscore").startswith("vlscore"):
                raise
            continue
        found = doctest.testmod(module)
        assert found.failed == 0, name
        assert found.attempted > 0, name
