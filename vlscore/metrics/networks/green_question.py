"""The words of the question that GREEN's model is asked; the user's own file, beside the model.

This file imports no torch, so that a list of metrics can say what is missing.
"""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

QUESTION = "green_prompt.txt"
_RELEASED = "62ff3675597dd0994584f5b08cd33076bc5d74c72de27cf0124b0a9dac8aad0f"
# Number of words of each report that the released code reads.
_WORDS = 300


class ReportPair(NamedTuple):
    """Candidate and reference that the model compares."""

    candidate: str
    reference: str


class Template(NamedTuple):
    """Question about two reports: the text before, between and after them."""

    before: str
    between: str
    behind: str

    def filled(self, pair: ReportPair) -> str:
        """Return the question about a pair, with the first words of each report, as released."""
        reference, candidate = (" ".join(text.split()[:_WORDS]) for text in reversed(pair))
        return f"{self.before}{reference}{self.between}{candidate}{self.behind}"


def read_template(model: Path) -> tuple[Template, str]:
    """Read the question from a model's folder; return it and its digest for signatures.

    Raises: WeightsNotFound; IncompatibleCheckpoint if it has no placeholder for a report.
    """
    path = model / QUESTION
    try:
        content = path.read_bytes()
    except OSError:
        raise WeightsNotFound(
            f"{model} has no {QUESTION}, the question that the model was trained on. Write it with "
            "a clone of github.com/Stanford-AIMI/GREEN: from green_score.utils import make_prompt; "
            f"open('{QUESTION}', 'w').write(make_prompt('{{reference}}', '{{candidate}}'))"
        ) from None
    parts = re.split(r"\{reference\}|\{candidate\}", content.decode("utf-8", "replace"))
    if len(parts) != 3 or content.index(b"{reference}") > content.index(b"{candidate}"):
        raise IncompatibleCheckpoint(
            f"{path} must contain {{reference}} once, and after it {{candidate}} once"
        )
    digest = hashlib.sha256(content).hexdigest()
    return Template(*parts), "green@d72c195" if digest == _RELEASED else digest[:12]
