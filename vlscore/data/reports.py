"""Policy of which part of a report is scored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vlscore.core import check_word
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.text import split_sections

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
            if value is not None or name == "section":
                check_word(name, value, SECTIONS)

    @classmethod
    def named(cls, policy: "TextPolicy | str | None") -> "TextPolicy":
        """Return the TextPolicy of a section's name, or of the text that `signature` returned.

        None is the default, the whole text.

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
        short = {"ref": "reference", "cand": "candidate"}
        roles = {role: short.get(role.strip(), role.strip()) for role in named}
        sections = {f"{roles[role]}_section": name.strip() for role, name in named.items()}
        if unknown := sections.keys() - {"reference_section", "candidate_section"}:
            raise InvalidSetting(
                f"sections are named for reference and candidate, not {', '.join(sorted(unknown))}"
            )
        return cls(**sections)

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

    An empty candidate stays empty under every policy: it is an answer without sections. An empty
    reference says nothing about the study.

    Args: role: whether the report is a reference or a candidate, which may have other sections.
    Raises: InvalidReport if that part is absent, the report is not a text, or an empty reference.

    >>> select("FINDINGS: Clear lungs. IMPRESSION: Normal.", TextPolicy("impression"))
    'Normal.'
    """
    if not isinstance(report, str):
        raise InvalidReport(f"a {role or 'report'} is a text, not a {type(report).__name__}")
    if role == "reference" and not report.strip():
        raise InvalidReport("the reference is empty")
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
