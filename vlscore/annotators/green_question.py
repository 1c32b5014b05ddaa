"""The question that GREEN's model is asked about two reports.

Its words are the authors', who give no licence for them: it lies beside the model, not here.
"""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

QUESTION = "green_prompt.txt"
_RELEASED = "62ff3675597dd0994584f5b08cd33076bc5d74c72de27cf0124b0a9dac8aad0f"
# Of each report that the released code reads.
_WORDS = 300


class ReportPair(NamedTuple):
    """A candidate and the reference that it is compared with."""

    candidate: str
    reference: str


class Template(NamedTuple):
    """The question about two reports: what stands before, between and behind them."""

    before: str
    between: str
    behind: str

    def filled(self, pair: ReportPair) -> str:
        """The question about a pair; of each report its first words, as the released code."""
        reference, candidate = (" ".join(text.split()[:_WORDS]) for text in reversed(pair))
        return f"{self.before}{reference}{self.between}{candidate}{self.behind}"


def read_template(model: Path) -> tuple[Template, str]:
    """The question that lies beside a model, and what a signature says of it.

    Raises: WeightsNotFound; IncompatibleCheckpoint where a report has no place in it.
    """
    path = model / QUESTION
    try:
        content = path.read_bytes()
    except OSError:
        raise WeightsNotFound(
            f"{model} holds no {QUESTION}, the question that the model was trained on. A clone of "
            "github.com/Stanford-AIMI/GREEN writes it: from green_score.utils import make_prompt; "
            f"open('{QUESTION}', 'w').write(make_prompt('{{reference}}', '{{candidate}}'))"
        ) from None
    parts = re.split(r"\{reference\}|\{candidate\}", content.decode("utf-8", "replace"))
    if len(parts) != 3 or content.index(b"{reference}") > content.index(b"{candidate}"):
        raise IncompatibleCheckpoint(
            f"{path} must hold {{reference}} once, and {{candidate}} once behind it"
        )
    digest = hashlib.sha256(content).hexdigest()
    return Template(*parts), "green@d72c195" if digest == _RELEASED else digest[:12]
