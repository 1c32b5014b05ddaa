"""Settings of the documentation's site: `make site` writes it to out/site with Sphinx.

Some pages are made from code when the site is built. Git ignores them:

- `docs/reference/commands.md`: the help of every command;
- `docs/reference/lists.md`: metrics, encoders, data sets, kinds of changes, as commands print them;
- `docs/reference/PACKAGE.md`: the names of a package that some page mentions, documented;
- `docs/notebooks/NAME.md`: text, code and printed output of a notebook.
"""

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

from pygments.lexers import TextLexer
from sphinx.application import Sphinx

from vlscore.core import __version__

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Packages whose names people call from Python.
PACKAGES = {
    "metrics": "Scores and metrics",
    "evaluation": "Commands as functions",
    "data": "Tables, reports, images",
    "findings": "Findings",
    "perturb": "Changed reports",
    "embedding": "Embeddings of studies",
    "encoders": "Encoders",
    "retrieval": "Search",
    "training": "Training",
    "stats": "Statistics",
}

project = "vlscore"
author = "The vlscore authors"
copyright = "The vlscore authors, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/**.md", "perturbations/*.md", "weights/**.md"]
exclude_patterns = ["CODE_OF_CONDUCT.md"]
html_theme = "furo"
html_title = "vlscore"
html_copy_source = False
myst_heading_anchors = 4
# A page of the repository that no list names is found by its links and by the search. A field of
# one class is not linked to the equally named field of another.
suppress_warnings = ["toc.not_included", "ref.python"]

# Docstrings are plain text: a name in backticks is code.
default_role = "literal"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_rtype = False
napoleon_use_ivar = True


def setup(app: Sphinx) -> None:
    """Connect what makes pages from code."""
    # Pygments colours no csv.
    app.add_lexer("csv", TextLexer)
    app.connect("builder-inited", _make_pages)
    app.connect("source-read", _list_further_pages)
    # Before napoleon, which reads the sections of a docstring.
    app.connect("autodoc-process-docstring", _as_sphinx_reads_it, priority=100)


def _make_pages(app: Sphinx) -> None:
    reference = DOCS / "reference"
    reference.mkdir(exist_ok=True)
    _write(reference / "commands.md", _commands())
    _write(reference / "lists.md", _lists())
    mentioned = _mentioned()
    for package, title in PACKAGES.items():
        _write(reference / f"{package}.md", _package(package, title, mentioned))
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        _write(notebook.with_suffix(".md"), _notebook(notebook))


def _write(path: Path, text: str) -> None:
    """Write a page where it changed, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _list_further_pages(app: Sphinx, name: str, content: list[str]) -> None:
    """Add pages that no list of the index names to the how-to guides."""
    if name != root_doc:
        return
    listed = set(re.findall(r"^(?:.*<)?([\w/]+)>?$", content[0], re.MULTILINE))
    further = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in listed | {"index"})
    content[0] = content[0].replace("% further pages", "\n".join(further))


def _as_sphinx_reads_it(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Put a section's text below its heading, and let bars be bars, as in |g - r|."""
    found, is_continued = [], False
    for line in lines:
        section = re.match(r"(Args|Raises|Returns|Yields|Attributes): (.+)$", line)
        is_continued = bool(section) or (is_continued and line.startswith(" "))
        if section:
            found += [f"{section[1]}:", f"    {section[2]}"]
        else:
            found.append(f"    {line}" if is_continued else line)
    lines[:] = [line.replace("|", "\\|") if "`" not in line else line for line in found]


def _printed(*words: str) -> str:
    """Return what a command prints."""
    from vlscore.cli import command_line

    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        command_line(words)
    return f"```text\n{printed.getvalue().rstrip()}\n```"


def _commands() -> str:
    """Return the help of every command."""
    from vlscore.cli import commands

    parts = ["# Commands", _printed("--help")]
    for name in commands():
        parts += [f"## `vlscore {name}`", _printed(*name.split(), "--help")]
    return "\n\n".join(parts) + "\n"


def _lists() -> str:
    """Return what commands print that list the members of a family."""
    from vlscore.encoders import encoder_cards

    commands = {
        "Metrics": [["metrics"]],
        "Encoders": [["encoders", card.name] for card in encoder_cards()],
        "Checkpoints": [["weights", "list"]],
        "Data sets": [["dataset"]],
        "Kinds of changes": [["perturb", "--list-kinds"]],
    }
    parts = ["# Lists\n\nPrinted by the commands that are named above each list."]
    for title, lines in commands.items():
        parts.append(f"## {title}")
        parts += [f"`vlscore {' '.join(line)}`\n\n{_printed(*line)}" for line in lines]
    return "\n\n".join(parts) + "\n"


def _mentioned() -> set[str]:
    """Return the words in code of all pages."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    code = re.findall(r"^```.*?^```|`[^`\n]+`", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"\w+", " ".join(code)))


def _package(package: str, title: str, mentioned: set[str]) -> str:
    stub = (ROOT / "vlscore" / package / "__init__.pyi").read_text(encoding="utf-8")
    names = sorted(
        alias.name
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in mentioned and not alias.name.isupper()
    )
    head = f"# {title}: `vlscore.{package}`\n\nImport these names from `vlscore.{package}`.\n"
    entries = [
        f".. auto{'class' if name[0].isupper() else 'function'}:: vlscore.{package}.{name}\n"
        for name in names
    ]
    return "\n".join([head, "```{eval-rst}", *entries, "```", ""])


def _notebook(path: Path) -> str:
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join("".join(each.get("text", "")) for each in cell["outputs"])
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
