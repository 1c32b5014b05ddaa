"""`vlscore methods`: the paragraph of a methods section."""

from pathlib import Path
from typing import Literal

from vlscore.cli.output import echo


def methods(folder: Path, /, *, format: Literal["md", "tex", "bib"] = "md") -> None:
    """Print a paragraph for a methods section, with its BibTeX entries.

    It names metrics, encoder, intervals, tests and versions. Read it before you paste it.

    Example: vlscore methods compared --format tex

    Args:
        folder: Folder of a finished evaluate, compare or align run.
        format: md: Markdown with citations for pandoc; tex: LaTeX; bib: the BibTeX entries.
    """
    from vlscore.evaluation import methods as run

    found = run(folder)
    texts = {"md": found.markdown, "tex": found.latex, "bib": found.bibtex}
    echo(texts[format], end="")
