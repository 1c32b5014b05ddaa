"""The sections of a free-text radiology report.

The rules follow those published with MIMIC-CXR (Johnson et al. 2019, the data set's section
parser): a header is a phrase in capitals that ends in a colon; synonyms share one name; where
findings and impression have no headers of their own, the last paragraph stands for them.
"""

import re
from dataclasses import dataclass

_HEADER = re.compile(
    r"(?:^|\n)[ \t]*([A-Z][A-Z ()/,&\-]{2,60}?)[ \t]*:|"
    r"(?<=[.\s])(FINDINGS|IMPRESSION|INDICATION|COMPARISON|TECHNIQUE|CONCLUSION)"
    r"[ \t]*:"
)

_NAMES = {
    "findings": (
        "FINDINGS", "FINDING", "REPORT", "CHEST", "FRONTAL AND LATERAL CHEST",
        "AP CHEST", "PA AND LATERAL CHEST", "CHEST FINDINGS", "PORTABLE CHEST", "OBSERVATIONS",
    ),
    "impression": (
        "IMPRESSION", "IMPRESSIONS", "CONCLUSION", "CONCLUSIONS", "OPINION", "SUMMARY",
        "FINAL IMPRESSION", "WET READ", "PRELIMINARY REPORT", "INTERPRETATION",
    ),
    "findings and impression": (
        "FINDINGS AND IMPRESSION", "FINDINGS/IMPRESSION", "IMPRESSION AND FINDINGS",
        "FINDINGS & IMPRESSION", "FINDINGS, IMPRESSION",
    ),
    "indication": (
        "INDICATION", "INDICATIONS", "HISTORY", "CLINICAL HISTORY", "CLINICAL INFORMATION",
        "REASON FOR EXAM", "REASON FOR EXAMINATION", "REASON FOR STUDY", "CLINICAL INDICATION",
        "PATIENT HISTORY", "MEDICAL HISTORY",
    ),
    "comparison": (
        "COMPARISON", "COMPARISONS", "COMPARISON STUDY", "COMPARISON FILM", "PRIOR STUDY",
    ),
    "technique": ("TECHNIQUE", "TECHNIQUES", "PROCEDURE", "VIEWS", "PROTOCOL"),
    "examination": ("EXAMINATION", "EXAM", "STUDY", "TYPE OF EXAMINATION", "FINAL REPORT"),
    "recommendation": ("RECOMMENDATION", "RECOMMENDATIONS"),
    "notification": ("NOTIFICATION", "NOTIFICATIONS", "ADDENDUM", "ATTESTATION"),
}  # fmt: skip
_NAME_OF = {header: name for name, headers in _NAMES.items() for header in headers}

# Paragraphs that begin so carry no findings, and never stand for them.
_PREAMBLE = {"indication", "comparison", "technique", "examination", "notification"}


@dataclass(frozen=True)
class Section:
    """One section; `text` is report[start:end], without its header."""

    name: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ReportSections:
    """The sections of one report, in its order.

    Attributes:
        sections: all of them; text before the first header is called "preamble", sections of
            unknown header bear the header in lower case.
    """

    sections: tuple[Section, ...]

    def get(self, name: str) -> str | None:
        """The text of all sections of that name, joined by a blank; None where there is none."""
        texts = [section.text for section in self.sections if section.name == name]
        return " ".join(text for text in texts if text) or None

    @property
    def findings(self) -> str | None:
        """Findings; a combined section of findings and impression counts as findings."""
        return self.get("findings") or self.get("findings and impression")

    @property
    def impression(self) -> str | None:
        return self.get("impression")

    @property
    def indication(self) -> str | None:
        return self.get("indication")

    @property
    def comparison(self) -> str | None:
        return self.get("comparison")

    @property
    def last_paragraph(self) -> str | None:
        """The last paragraph that is no indication, technique, comparison or the like."""
        for section in reversed(self.sections):
            if section.name in _PREAMBLE:
                continue
            paragraphs = [p.strip() for p in re.split(r"\n\s*\n", section.text) if p.strip()]
            if paragraphs:
                return paragraphs[-1]
        return None


def split_sections(report: str) -> ReportSections:
    """Divide a report at its headers.

    >>> sections = split_sections("INDICATION: Cough.\\nFINDINGS: Clear. IMPRESSION: Normal.")
    >>> sections.findings, sections.impression, sections.comparison
    ('Clear.', 'Normal.', None)
    """
    headers = list(_HEADER.finditer(report))
    found = []
    first = headers[0].start() if headers else len(report)
    found.append(_section("preamble", report, 0, first))
    ends = [*(header.start() for header in headers), len(report)][1:]
    for header, end in zip(headers, ends, strict=True):
        title = re.sub(r"\s+", " ", header.group(1) or header.group(2)).strip()
        found.append(_section(_NAME_OF.get(title, title.lower()), report, header.end(), end))
    return ReportSections(tuple(s for s in found if s.text or s.name != "preamble"))


def _section(name: str, report: str, start: int, end: int) -> Section:
    text = report[start:end]
    start += len(text) - len(text.lstrip())
    end = max(start, end - (len(text) - len(text.rstrip())))
    return Section(name, report[start:end], start, end)
