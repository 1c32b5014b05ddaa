"""Policy of which part of a report is scored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.text import ReportSections, split_sections

SECTIONS = ("all", "findings", "impression", "findings+impression", "auto")

Role = Literal["reference", "candidate"]


class ReportPair(Protocol):
    """Candidate and reference; `parts` are the reference's sections where a table has them."""

    @property
    def candidate(self) -> str | None: ...
    @property
    def reference(self) -> str | None: ...
    @property
    def parts(self) -> Mapping[str, str] | None: ...


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


def are_unlike_sections(study: ReportPair, policy: TextPolicy) -> bool:
    """Return whether "auto" takes the impression of one report, and the findings of the other.

    Reports without titles are compared with either.
    """
    if {policy.section_of("reference"), policy.section_of("candidate")} != {"auto"}:
        return False
    sides = [_taken(split_sections(study.candidate or ""))]
    if study.parts is not None:
        sides.append("findings" if study.parts.get("findings") else "impression")
    else:
        sides.append(_taken(split_sections(study.reference or "")))
    return set(sides) == {"findings", "impression"}


def _taken(sections: ReportSections) -> str | None:
    """Return which section "auto" takes; None for a report without both, or with both in one."""
    if sections.get("findings"):
        return "findings"
    return "impression" if sections.get("impression") else None


def unlike_sections_note(count: int, total: int) -> tuple[str, ...]:
    """Return a note if impressions are scored against findings; else nothing."""
    if not count:
        return ()
    have = "has its" if count == 1 else "have their"
    return (
        f"{count} of {total} candidates {have} impression scored against the findings of the "
        "reference, or the reverse, since one of the two reports lacks the other section; "
        "--section findings or --section impression leaves such studies out, as failed rows",
    )


def headings_note(count: int, total: int) -> tuple[str, ...]:
    """Return a note if some references have headings and are scored whole; else nothing."""
    if not count:
        return ()
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {total} references {have} headings, and are scored whole, indication and "
        "headings included; --section reference=findings,candidate=all scores the findings alone",
    )
