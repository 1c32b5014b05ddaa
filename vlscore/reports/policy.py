"""Which part of a report is scored."""

from dataclasses import dataclass

from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.reports.sections import ReportSections, split_sections

SECTIONS = ("all", "findings", "impression", "findings+impression", "auto")


@dataclass(frozen=True)
class TextPolicy:
    """Which section of a report is scored.

    Attributes:
        section: "all" (default): the text as it is given. "findings" or "impression": that section;
            a report without it is an error. "findings+impression": both, whichever there are.
            "auto": MIMIC-CXR's order, the findings, else the impression, else the last paragraph.
    """

    section: str = "all"

    def __post_init__(self) -> None:
        if self.section not in SECTIONS:
            raise InvalidSetting(f"section is one of {', '.join(SECTIONS)}, not {self.section!r}")

    @classmethod
    def named(cls, policy: "TextPolicy | str | None") -> "TextPolicy":
        """A TextPolicy from the name of its section; None is the default, the whole text.

        Raises: InvalidSetting where no section has that name.
        """
        if policy is None:
            return cls()
        return policy if isinstance(policy, cls) else cls(str(policy))

    def signature(self) -> str:
        """Short text for a score's signature."""
        return self.section


def select(report: str, policy: TextPolicy) -> str:
    """The part of a report that the policy scores.

    Raises: InvalidReport where that part is absent, or the report is no text.

    >>> select("FINDINGS: Clear lungs. IMPRESSION: Normal.", TextPolicy("impression"))
    'Normal.'
    """
    if not isinstance(report, str):
        raise InvalidReport(f"a report is a text, not a {type(report).__name__}")
    if policy.section == "all":
        return report
    chosen = _choose(split_sections(report), policy.section)
    if chosen is None:
        raise InvalidReport(
            f"the report has no section for {policy.section!r}; headers end in a colon, as in "
            '"FINDINGS:". Choose section="all" for reports without headers'
        )
    return chosen


def _choose(sections: ReportSections, section: str) -> str | None:
    findings, impression = sections.findings, sections.impression
    if section == "findings":
        return findings
    if section == "impression":
        return impression
    if section == "findings+impression":
        # A combined section is both; dict.fromkeys keeps it from being said twice.
        return " ".join(dict.fromkeys(part for part in (findings, impression) if part)) or None
    return findings or impression or sections.last_paragraph
