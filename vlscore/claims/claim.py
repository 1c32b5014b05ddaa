"""Claims of a report, and labels of findings for probes: both as `vlscore.findings` reads them.

A finding has one name in both: the observation in plain words ("pleural effusion"); with a side
("pleural effusion, left") or a change ("pleural effusion, worse"); or the name of a group, a
CheXpert label in lower case ("lung opacity").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vlscore.findings import (
    CHEXPERT_LABELS,
    Finding,
    Polarity,
    ReportFindings,
    Span,
    Status,
    TemporalChange,
    chexpert_labels,
    extract,
    load_lexicon,
)

#: Changes that an image can show with an earlier one.
CHANGES = (TemporalChange.WORSE, TemporalChange.IMPROVED, TemporalChange.NEW)
#: Parts of a finding: sides and changes, as in "pleural effusion, left".
PARTS = ("left", "right", *CHANGES)
NO_GROUP = ("No Finding",)


@dataclass(frozen=True)
class Claim:
    """One finding that a report states or denies.

    Attributes:
        finding: its name.
        stated: False where the report denies it.
        span: characters of the mention in the report.
        group: the finding's group (`group_of`), if it has one.
        needs_prior: whether only two images can show it.
        of_group: whether the claim is about the group, which follows from another claim.
    """

    finding: str
    stated: bool
    span: Span
    group: str | None = None
    needs_prior: bool = False
    of_group: bool = False


def claims_of(report: str | ReportFindings) -> list[Claim]:
    """Return the claims of a report, each once, in the order of the text.

    A finding counts that is current and of this patient; a finding that the report calls
    uncertain is no claim, unless it is probable. A finding with a side is two claims: that it is
    there, and that it is on this side. A finding of another name than its CheXpert label claims
    this label, too: "nodule" claims "lung lesion".

    >>> [(c.finding, c.stated) for c in claims_of("Left pleural effusion. No pneumothorax.")]
    [('pleural effusion', True), ('pleural effusion, left', True), ('pneumothorax', False)]
    """
    findings = extract(report) if isinstance(report, str) else report
    found: dict[tuple[str, bool], Claim] = {}
    for finding in findings:
        for claim in _claims(finding):
            found.setdefault((claim.finding, claim.stated), claim)
    return list(found.values())


def _claims(finding: Finding) -> Iterator[Claim]:
    name = plain_name(finding.observation)
    group = group_of(name)
    if finding.polarity is Polarity.NEGATIVE and finding.status is Status.CURRENT:
        yield Claim(name, False, finding.span, group)
    if not finding.is_likely:
        return
    yield Claim(name, True, finding.span, group)
    if group is not None:
        yield Claim(group, True, finding.span, of_group=True)
    for side in finding.sides:
        yield Claim(f"{name}, {side}", True, finding.span)
    if finding.change in CHANGES:
        yield Claim(f"{name}, {finding.change}", True, finding.span, needs_prior=True)


def plain_name(observation: str) -> str:
    """Return an observation in plain words."""
    return observation.replace("_", " ")


def group_of(finding: str) -> str | None:
    """Return the group of a finding: its CheXpert label, in lower case, where that differs.

    >>> group_of("nodule"), group_of("lung lesion"), group_of("nodule, left")
    ('lung lesion', None, None)
    """
    known = load_lexicon().observations.get(finding.replace(" ", "_"))
    label = None if known is None or known.chexpert is None else known.chexpert.lower()
    return None if label == finding else label


def whole_of(finding: str) -> str | None:
    """Return the finding of which a name is a part: its side or its change.

    >>> whole_of("pleural effusion, left"), whole_of("edema, worse"), whole_of("edema")
    ('pleural effusion', 'edema', None)
    """
    whole, _, part = finding.rpartition(", ")
    return whole if whole and part in PARTS else None


def is_finding(name: str) -> bool:
    """Return whether reports or tables of labels have a finding of this name.

    >>> is_finding("pleural effusion, left"), is_finding("pleural other"), is_finding("rash")
    (True, True, False)
    """
    return (whole_of(name) or name) in _names()


@cache
def _names() -> frozenset[str]:
    """Return the names of all findings, without their parts."""
    observations = load_lexicon().observations
    of_tables = (*CHEXPERT_LABELS, *NIH_LABELS)
    return frozenset(map(plain_name, observations)) | {finding_of_label(n) for n in of_tables}


def labels_of(report: str | ReportFindings) -> dict[str, int | None]:
    """Return finding -> 1 for a report that states it, None where it is unknown; else it is 0.

    A finding that is neither stated nor denied counts as absent. Unknown are uncertain findings,
    the side of a finding without a side, and the change of a finding without a comparison; they
    are not 0, and every finding that a report does not name is.
    """
    findings = extract(report) if isinstance(report, str) else report
    labels: dict[str, int | None] = {
        name.lower(): None if value == -1 else 1
        for name, value in chexpert_labels(findings).items()
        if value and name not in NO_GROUP
    }
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status is Status.CURRENT and finding.polarity is not Polarity.NEGATIVE:
            by_name.setdefault(plain_name(finding.observation), []).append(finding)
    for name, mentions in by_name.items():
        present = [each for each in mentions if each.is_present]
        labels[name] = 1 if present else None
        labels |= dict.fromkeys(f"{name}, {part}" for part in PARTS)
        sides = {side for each in present for side in each.sides}
        if sides:
            labels |= {f"{name}, {side}": int(side in sides) for side in ("left", "right")}
        changes = {each.change for each in present if each.change is not None}
        if changes:
            labels |= {f"{name}, {change}": int(change in changes) for change in CHANGES}
    return {finding: value for finding, value in labels.items() if value != 0}


#: Labels of tables -> findings, where the words differ; NIH's are of Wang et al. 2017.
ALIASES = {
    "effusion": "pleural effusion",
    "infiltration": "lung opacity",
    "pleural thickening": "pleural other",
    "mass": "lung lesion",
    "nodule": "lung lesion",
    "airspace opacity": "lung opacity",
}
NIH_LABELS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis",
    "Hernia", "Infiltration", "Mass", "Nodule", "Pleural_Thickening", "Pneumonia", "Pneumothorax",
)  # fmt: skip


def finding_of_label(label: str) -> str:
    """Return the finding that a label of a table names.

    >>> finding_of_label("Pleural_Thickening"), finding_of_label("Edema")
    ('pleural other', 'edema')
    """
    plain = label.replace("_", " ").strip().lower()
    return ALIASES.get(plain, plain)
