"""Sections of a free-text radiology report.

The rules are those of the section parser published with MIMIC-CXR (Johnson et al. 2019), whose
counts of headers over 227,835 reports the synonyms come from, with three departures, all so that
no text of a section is lost: a title may be inside a line if it is unmistakable
("FINDINGS: Clear. IMPRESSION: Normal."), main titles may be written in lower case and in markdown,
and a title of another name inside findings or impression ("LUNGS:", "CHEST:") is part of that
section.
"""

from dataclasses import dataclass

from vlscore.text.line_ends import BLANK_LINE
from vlscore.text.plain import plain_text
from vlscore.text.stand_ins import BLANKS
from vlscore.text.title_names import SECTION_NAMES
from vlscore.text.titles import Title, titles_of

_DIVISIBLE = ("findings", "impression", "findings and impression")
_NOT_READINGS = {
    "indication",
    "history",
    "comparison",
    "technique",
    "examination",
    "notification",
    "date",
}


@dataclass(frozen=True)
class Section:
    """One section; `text` is report[start:end], without its title."""

    name: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ReportSections:
    """The sections of one report, in its order.

    Attributes:
        sections: all sections; text before the first title is called "preamble", a section with
            an unknown title is called by that title in lower case.
    """

    sections: tuple[Section, ...]

    def get(self, name: str) -> str | None:
        """Return the text of the last section of that name that is not empty, else None.

        The last one counts, as in MIMIC-CXR: an earlier one is a title or was superseded.
        """
        texts = [section.text for section in self.sections if section.name == name]
        return next((text for text in reversed(texts) if text), None)

    @property
    def findings(self) -> str | None:
        """Findings; a combined section of findings and impression counts as both."""
        return self.get("findings") or self.get("findings and impression")

    @property
    def impression(self) -> str | None:
        """Impression; a combined section of findings and impression counts as both."""
        return self.get("impression") or self.get("findings and impression")

    @property
    def last_paragraph(self) -> str | None:
        """Text that replaces findings and impression if neither has a title.

        Everything after the first paragraph of the last section; the first paragraph itself if it
        is the only one and its title is no indication, comparison or the like.
        """
        filled = [each for each in self.sections if each.text and each.name != "wet read"]
        if not filled:
            return None
        first, *others = BLANK_LINE.split(filled[-1].text, maxsplit=1)
        if others:
            return others[0].strip()
        return None if filled[-1].name in _NOT_READINGS else first


def has_headings(report: str) -> bool:
    """Return True if a report has a section of a known name, such as findings or indication.

    >>> has_headings("INDICATION: Cough. FINDINGS: Clear."), has_headings("Clear lungs.")
    (True, False)
    """
    return any(name in SECTION_NAMES for name, _, _ in _beginnings(report))


def split_sections(report: str) -> ReportSections:
    """Divide a report at its titles.

    >>> sections = split_sections("INDICATION: Cough.\\n**Findings**\\nClear. IMPRESSION: Normal.")
    >>> sections.findings, sections.impression, sections.get("comparison")
    ('Clear.', 'Normal.', None)
    """
    starts = _beginnings(report)
    ends = [*(start for _, start, _ in starts[1:]), len(report)]
    found = [_section(name, report, a, b) for (name, _, a), b in zip(starts, ends, strict=True)]
    return ReportSections(tuple(s for s in found if s.text or s.name != "preamble"))


def _beginnings(report: str) -> list[tuple[str, int, int]]:
    """Return the name of each section, and the place of its title; first what precedes them all."""
    starts = [("preamble", 0, 0)]
    for title in titles_of(report):
        if _begins_section(title, starts[-1][0]):
            starts.append((title.section or title.words.lower(), title.start, title.end))
    return starts


def _begins_section(title: Title, current: str) -> bool:
    if title.names_views:
        # Views without a colon are the first paragraph of a report without titles.
        return title.has_colon and title.on_line and current not in _DIVISIBLE
    return title.section is not None or (title.on_line and current not in _DIVISIBLE)


def _section(name: str, report: str, start: int, end: int) -> Section:
    """Return the section without blanks and marks around it."""
    text = plain_text(report).text[start:end]
    start += len(text) - len(text.lstrip(BLANKS))
    end = max(start, end - (len(text) - len(text.rstrip(BLANKS))))
    return Section(name, report[start:end], start, end)
