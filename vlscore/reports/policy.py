"""Which part of a report is scored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.reports.sections import split_sections

SECTIONS = ("all", "findings", "impression", "findings+impression", "auto")

Role = Literal["reference", "candidate"]


@dataclass(frozen=True)
class TextPolicy:
    """Which section of a report is scored.

    References mostly have headers, and generated reports mostly have none, so each side can have a
    section of its own.

    Attributes:
        section: "all" (default): the text as it is given. "findings" or "impression": that section;
            a report without it is an error. "findings+impression": both, whichever there are.
            "auto": MIMIC-CXR's order, the findings, else the impression, else the last paragraph.
        candidate_section, reference_section: that of the generated reports, and of the references;
            default: `section`.

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
        """A TextPolicy from the name of its section; None is the default, the whole text.

        Raises: InvalidSetting where no section has that name.
        """
        if policy is None:
            return cls()
        return policy if isinstance(policy, cls) else cls(str(policy))

    def section_of(self, role: Role | None) -> str:
        """The section of references, of candidates, or of reports that are neither."""
        if role is None:
            return self.section
        own = self.candidate_section if role == "candidate" else self.reference_section
        return self.section if own is None else own

    def signature(self) -> str:
        """Short text for a score's signature."""
        reference, candidate = self.section_of("reference"), self.section_of("candidate")
        return reference if reference == candidate else f"ref={reference},cand={candidate}"


def select(report: str, policy: TextPolicy, role: Role | None = None) -> str:
    """The part of a report that the policy scores.

    An empty candidate stays empty under every policy: it is an answer, and has nothing to select
    from.

    Args: role: whether the report is a reference or a candidate, which may have other sections.
    Raises: InvalidReport where that part is absent, or the report is no text.

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
        advice = "" if section == "auto" else _AUTO
        raise InvalidReport(
            f"the {role or 'report'} has no section for {section!r}; headers end in a colon, as in "
            f'"FINDINGS:". Choose {advice}"all" for {role or "report"}s without headers'
        )
    return chosen


def select_from_parts(
    parts: Mapping[str, str], policy: TextPolicy, role: Role | None = None
) -> str:
    """As `select`, of a report whose findings and impression are given apart.

    Args: parts: "findings" and "impression", whichever there are.
    Raises: InvalidReport where the part that is scored is absent.

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


_AUTO = '"auto", which takes the findings, else the impression, else the last paragraph, or '


def _choose(findings: str | None, impression: str | None, section: str) -> str | None:
    if section == "findings":
        return findings
    if section == "impression":
        return impression
    if section == "findings+impression":
        # A combined section is both; dict.fromkeys keeps it from being said twice.
        return " ".join(dict.fromkeys(part for part in (findings, impression) if part)) or None
    return findings or impression
