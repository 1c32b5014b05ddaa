"""Sections of a free-text radiology report, and the policy of which one is scored.

The rules are those of the section parser published with MIMIC-CXR (Johnson et al. 2019), whose
counts of headers over 227,835 reports the synonyms come from, with three departures, all so that
no text of a section is lost: a header may be inside a line if it is unmistakable
("FINDINGS: Clear. IMPRESSION: Normal."), main headers may be written in lower case, and a header
of another name inside findings or impression ("LUNGS:", "CHEST:") is part of that section.

Which part of a report is scored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vlscore.errors import InvalidReport, InvalidSetting

_MAIN = (
    "findings and impression|findings ?/ ?impression|findings|impressions?|conclusions?|"
    "indications?|history|clinical history|comparisons?|techniques?|examination|"
    "recommendations?"
)
# A reading before the final one.
_PRELIMINARY = (
    "wet[ -]?read(?:ing)?|preliminary (?:report|read|reading|impression|findings|interpretation)|"
    r"provisional (?:findings )?impression(?: \(pfi\))?|provisional findings"
)
# A phrase in capitals at the beginning of a line, or a main header there or after a full stop. Wet
# reads and final reports have headers without a colon, too.
_HEADER = re.compile(
    r"(?:^|\n)[ \t]*(?P<wet>(?i:wet[ -]?read))\b(?:[ \t]+(?i:version)[ \t]*#?\d+)?[ \t]*:?|"
    r"(?:^|\n)[ \t]*(?P<final>FINAL REPORT)[ \t]*:?(?=[ \t]*(?:\r?\n|$))|"
    r"(?:^|\n)[ \t]*(?P<line>[A-Z][A-Z ()/,&\-]{2,60}?)[ \t]*:(?!\d)|"
    rf"(?:^|\n|(?<=[.!?])[ \t])[ \t]*(?P<main>(?i:{_MAIN}|{_PRELIMINARY}))[ \t]*:"
)

_NAMES = {
    "findings": (
        "findings", "finding", "findins", "findindgs", "findgings", "findngs", "findnings",
        "finidngs", "reference findings", "observations", "report", "chest, two views",
    ),
    "impression": (
        "impression", "impressions", "conclusion", "conclusions", "opinion", "summary",
        "interpretation", "impresson", "imprression", "imoression", "impressoin", "imprssion",
        "impresion", "imperssion", "mpression", "impession",
    ),
    "findings and impression": (
        "findings and impression", "findings/impression", "findings/ impression",
        "findings / impression", "findings & impression", "findings, impression",
        "impression and findings", "impression/findings",
    ),
    "indication": (
        "indication", "indications", "idication", "reason for examination", "reason for exam",
        "reason for study", "clinical indication",
    ),
    "history": (
        "history", "clinical history", "clinical information", "patient history",
        "medical history", "pfi",
    ),
    "comparison": (
        "comparison", "comparisons", "comparison exam", "comparison film", "comparison study",
        "reference exam", "prior study", "comparision", "comparsion", "comparrison",
        "comparisions",
    ),
    "technique": ("technique", "techniques", "procedure", "views", "protocol"),
    "examination": ("examination", "exam", "study", "type of examination"),
    "wet read": ("wet read", "wetread", "preliminary report"),
    "final report": ("final report",),
    "recommendations": ("recommendations", "recommendation", "recommendation(s)"),
    "notification": ("notification", "notifications", "attestation"),
    "addendum": ("addendum",),
    "comment": ("comment", "comments", "note"),
    "date": ("date",),
}  # fmt: skip
_NAME_OF = {header: name for name, headers in _NAMES.items() for header in headers}

_IS_PRELIMINARY = re.compile(r"\b(?:wet ?-?reads?|wet ?-?reading|preliminary|provisional)\b")
# A title that contains one of these words gets that name.
_MAIN_WORDS = ("impression", "findings", "history", "comparison", "addendum")
# A title that names the views ("CHEST, PA AND LATERAL:") is the header of findings.
_VIEWS = re.compile(
    "chest|portable|(?:pa|ap|frontal|lateral) and|two views|one view|"
    "(?:frontal|pa|ap|lateral) view|frontal (?:semi-)?upright|bone window|ribs"
)
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
# Sections that only a report with headings can have.
_KNOWN = frozenset(_NAMES)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


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
        sections: all sections; text before the first header is called "preamble", a section with
            an unknown header is called by that header in lower case.
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
        """Text that replaces findings and impression if neither has a header.

        Everything after the first paragraph of the last section; the first paragraph itself if it
        is the only one and its header is no indication, comparison or the like.
        """
        filled = [each for each in self.sections if each.text and each.name != "wet read"]
        if not filled:
            return None
        first, *others = _BLANK_LINE.split(filled[-1].text, maxsplit=1)
        if others:
            return others[0].strip()
        return None if filled[-1].name in _NOT_READINGS else first


def section_name(title: str) -> str | None:
    """Return the section that a title begins; None for titles inside sections ("HEART", "Lungs").

    In lower case only the main headers begin one.

    >>> section_name("IMPRESSION"), section_name("Findings"), section_name("HEART")
    ('impression', 'findings', None)
    """
    lowered = " ".join(title.lower().split())
    if not title.isupper():
        return _known_name(lowered) if re.fullmatch(f"{_MAIN}|{_PRELIMINARY}", lowered) else None
    return _known_name(lowered) or ("findings" if _VIEWS.search(lowered) else None)


def has_headings(report: str) -> bool:
    """Return True if a report has a section of a known name, such as findings or indication.

    >>> has_headings("INDICATION: Cough. FINDINGS: Clear."), has_headings("Clear lungs.")
    (True, False)
    """
    return any(section.name in _KNOWN for section in split_sections(report).sections)


def split_sections(report: str) -> ReportSections:
    """Divide a report at its headers.

    >>> sections = split_sections("INDICATION: Cough.\\nFINDINGS: Clear. IMPRESSION: Normal.")
    >>> sections.findings, sections.impression, sections.get("comparison")
    ('Clear.', 'Normal.', None)
    """
    starts = [("preamble", 0, 0)]
    for header in _HEADER.finditer(report):
        title = " ".join(next(filter(None, header.groups())).lower().split())
        name = _known_name(title)
        if name is None and starts[-1][0] in _DIVISIBLE:
            continue
        by_views = "findings" if _VIEWS.search(title) else title
        starts.append((name or by_views, header.start(), header.end()))
    ends = [*(start for _, start, _ in starts[1:]), len(report)]
    found = [_section(name, report, a, b) for (name, _, a), b in zip(starts, ends, strict=True)]
    return ReportSections(tuple(s for s in found if s.text or s.name != "preamble"))


def _known_name(title: str) -> str | None:
    if title in _NAME_OF:
        return _NAME_OF[title]
    # Before the main words: a preliminary impression is not the impression.
    if _IS_PRELIMINARY.search(title):
        return "wet read"
    return next((word for word in _MAIN_WORDS if word in title), None)


def _section(name: str, report: str, start: int, end: int) -> Section:
    text = report[start:end]
    start += len(text) - len(text.lstrip())
    end = max(start, end - (len(text) - len(text.rstrip())))
    return Section(name, report[start:end], start, end)


SECTIONS = ("all", "findings", "impression", "findings+impression", "auto")

Role = Literal["reference", "candidate"]


@dataclass(frozen=True)
class TextPolicy:
    """Choice of the section of a report that is scored.

    References mostly have headers, and generated reports mostly have none, so each of them can have
    its own section.

    Attributes:
        section: "all" (default): the whole text. "findings" or "impression": that section;
            a report without it is an error. "findings+impression": both, whichever there are.
            "auto": MIMIC-CXR's order, the findings, else the impression, else the last paragraph.
        candidate_section, reference_section: section of the generated reports, and of the
            references; default: `section`.

    >>> TextPolicy(reference_section="findings").signature()
    'ref=findings,cand=all'
    """

    section: str = "all"
    candidate_section: str | None = None
    reference_section: str | None = None

    def __post_init__(self) -> None:
        names = ("section", "candidate_section", "reference_section")
        for name, value in ((name, getattr(self, name)) for name in names):
            if value not in SECTIONS and not (value is None and name != "section"):
                raise InvalidSetting(f"{name} is one of {', '.join(SECTIONS)}, not {value!r}")

    @classmethod
    def named(cls, policy: "TextPolicy | str | None") -> "TextPolicy":
        """Return the TextPolicy of a section's name; None is the default, the whole text.

        Raises: InvalidSetting if no section has that name.

        >>> TextPolicy.named("reference=findings,candidate=all").signature()
        'ref=findings,cand=all'
        """
        if policy is None:
            return cls()
        if isinstance(policy, TextPolicy):
            return policy
        if "=" not in policy:
            return cls(policy)
        named = dict(each.partition("=")[::2] for each in policy.split(","))
        sections = {f"{role.strip()}_section": name.strip() for role, name in named.items()}
        if unknown := sections.keys() - {"reference_section", "candidate_section"}:
            raise InvalidSetting(
                f"sections are named for reference and candidate, not {', '.join(sorted(unknown))}"
            )
        return cls(**sections)

    @classmethod
    def parse(cls, signature: str) -> "TextPolicy":
        """Return the policy of a text that `signature` returned.

        Raises: InvalidSetting if no section has such a name.

        >>> TextPolicy.parse("ref=findings,cand=all").section_of("reference")
        'findings'
        """
        named = dict(each.split("=", 1) for each in signature.split(",") if "=" in each)
        if not named:
            return cls(signature)
        return cls(candidate_section=named.get("cand"), reference_section=named.get("ref"))

    def section_of(self, role: Role | None) -> str:
        """Return the section of references, of candidates, or of reports that are neither."""
        if role is None:
            return self.section
        own = self.candidate_section if role == "candidate" else self.reference_section
        return self.section if own is None else own

    def signature(self) -> str:
        """Return the short text for a score's signature."""
        reference, candidate = self.section_of("reference"), self.section_of("candidate")
        return reference if reference == candidate else f"ref={reference},cand={candidate}"


def select(report: str, policy: TextPolicy, role: Role | None = None) -> str:
    """Return the part of a report that the policy scores.

    An empty candidate stays empty under every policy: it is an answer without sections.

    Args: role: whether the report is a reference or a candidate, which may have other sections.
    Raises: InvalidReport if that part is absent, or the report is not a text.

    >>> select("FINDINGS: Clear lungs. IMPRESSION: Normal.", TextPolicy("impression"))
    'Normal.'
    """
    if not isinstance(report, str):
        raise InvalidReport(f"a {role or 'report'} is a text, not a {type(report).__name__}")
    section = policy.section_of(role)
    if section == "all" or (role == "candidate" and not report.strip()):
        return report
    found = split_sections(report)
    chosen = _choose(found.findings, found.impression, section)
    if section == "auto":
        chosen = chosen or found.last_paragraph
    if chosen is None:
        advice = (
            '"auto", which takes the findings, else the impression, else the last paragraph, or '
        )
        advice = "" if section == "auto" else advice
        raise InvalidReport(
            f"the {role or 'report'} has no section for {section!r}; headers end in a colon, as in "
            f'"FINDINGS:". Choose {advice}"all" for {role or "report"}s without headers'
        )
    return chosen


def select_from_parts(
    parts: Mapping[str, str], policy: TextPolicy, role: Role | None = None
) -> str:
    """Select, as `select`, from a report whose findings and impression are separate texts.

    Args: parts: "findings" and "impression", or one of them.
    Raises: InvalidReport if the part that is scored is absent.

    >>> select_from_parts({"impression": "Normal."}, TextPolicy("auto"))
    'Normal.'
    """
    section = policy.section_of(role)
    both = [parts[name] for name in ("findings", "impression") if parts.get(name)]
    whole = " ".join(both) if section in ("all", "findings+impression") else None
    chosen = whole or _choose(parts.get("findings"), parts.get("impression"), section)
    if chosen is None:
        raise InvalidReport(
            f"the {role or 'report'} has no {section}: that column is empty. Choose "
            '"auto", which takes the findings, else the impression'
        )
    return chosen


def _choose(findings: str | None, impression: str | None, section: str) -> str | None:
    if section == "findings":
        return findings
    if section == "impression":
        return impression
    if section == "findings+impression":
        # A combined section is both; dict.fromkeys removes the repetition.
        return " ".join(dict.fromkeys(part for part in (findings, impression) if part)) or None
    return findings or impression


def headings_note(count: int, total: int) -> tuple[str, ...]:
    """Return a note if some references have headings and are scored whole; else nothing."""
    if not count:
        return ()
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {total} references {have} headings, and are scored whole, indication and "
        "headings included; --section reference=findings,candidate=all scores the findings alone",
    )
