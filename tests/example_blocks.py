"""The documentation's pages as blocks of code, so that a test can run what is printed there."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.conftest import REPOSITORY

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    REPOSITORY / "perturbations" / "README.md",
    REPOSITORY / "weights" / "phantom" / "README.md",
    REPOSITORY / "weights" / "phantom-judging" / "README.md",
]
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_NEEDS = re.compile(r"<!-- needs: (\w+) -->")
_SHELL = {"sh", "bash", "console"}


@dataclass(frozen=True)
class Block:
    """One block of code of a page.

    Attributes:
        line: number of its first line in the page, from 1.
        language: as written behind the fence; "" for a fence without one, "indented" for a block
            of four spaces.
        not_run: why it is not run, as the comment above it says; None where it is.
        needs: module that it needs, as in the comment `<!-- needs: trl -->` above it, if that is
            not installed here; the block is then not run.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None
    needs: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    def commands(self) -> list[list[str]]:
        """The arguments of each `vlscore` command of a block of shell, without the comments."""
        if self.language not in _SHELL | {"indented"}:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        lines = [line.removeprefix("$ ") for line in lines]
        return [
            shlex.split(line, comments=True)[1:] for line in lines if line.startswith("vlscore ")
        ]

    def said(self) -> list[str]:
        """What a block of Python says that it prints: the comments right below each `print`."""
        found: list[str] = []
        below_print = False
        for line in self.text.splitlines():
            if below_print and line.startswith("# "):
                found.append(line.removeprefix("# "))
            else:
                below_print = line.lstrip().startswith("print(")
        return found


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of code of a page, fenced and indented ones, in their order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    above, number = "", 0
    while number < len(lines):
        line = lines[number]
        fence = re.fullmatch(r"```([\w{}-]*)", line)
        end = number + 1
        if fence:
            end = lines.index("```", number + 1)
            language, text, after = fence[1], lines[number + 1 : end], end + 1
        elif line.startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            language, text, after = "indented", [each[4:] for each in lines[number:end]], end
        else:
            above, number = (line if line.strip() else above), end
            continue
        reason = _NOT_RUN.fullmatch(above.strip())
        needed = _NEEDS.fullmatch(above.strip())
        lacks = needed[1] if needed and find_spec(needed[1]) is None else None
        first = number + 2 if fence else number + 1
        code = "\n".join(text).strip("\n")
        yield Block(page, first, language, code, reason and reason[1], lacks)
        above, number = "", after
