"""What a chest X-ray report says: observation, polarity, side, place, severity, with spans.

    >>> from vlscore.findings import extract
    >>> report = "There is a small effusion at the left base, unchanged. The heart is not enlarged."
    >>> for finding in extract(report):
    ...     print(finding.observation, finding.polarity, finding.side, finding.zones)
    pleural_effusion positive left ('base',)
    cardiomegaly negative None ()

The words it knows are readable files under `perturbations/lexicons/`, one an axis.
"""

from vlscore.errors import InvalidLexicon
from vlscore.findings.extraction import extract
from vlscore.findings.labels import chexpert_labels
from vlscore.findings.lexicon import (
    CHEXPERT_LABELS,
    Lexicon,
    SeverityLevel,
    load_lexicon,
    severity_level,
)
from vlscore.findings.reading import assert_span
from vlscore.findings.types import (
    Attribute,
    Axis,
    Category,
    Change,
    Denial,
    Finding,
    Layout,
    Polarity,
    ReportFindings,
    Rule,
    Sentence,
    Side,
    Span,
    Status,
)

__all__ = [
    "CHEXPERT_LABELS",
    "Attribute",
    "Axis",
    "Category",
    "Change",
    "Denial",
    "Finding",
    "InvalidLexicon",
    "Layout",
    "Lexicon",
    "Polarity",
    "ReportFindings",
    "Rule",
    "Sentence",
    "SeverityLevel",
    "Side",
    "Span",
    "Status",
    "assert_span",
    "chexpert_labels",
    "extract",
    "load_lexicon",
    "severity_level",
]
