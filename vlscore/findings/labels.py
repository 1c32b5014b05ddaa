"""CheXpert-style labels of a report from its findings."""

from vlscore.findings.extraction import extract
from vlscore.findings.lexicon import CHEXPERT_LABELS
from vlscore.findings.types import Finding, Polarity, ReportFindings, Status

_OUTSIDE_NO_FINDING = frozenset({"No Finding", "Support Devices"})


def chexpert_labels(report: str | ReportFindings) -> dict[str, int | None]:
    """1 stated, -1 uncertain, 0 denied, None not mentioned, for CheXpert's 14 observations.

    A label takes the strongest of its mentions: stated over uncertain over denied (Irvin et al.
    2019, section 3). A borderline finding is uncertain. "No Finding" is 1 where nothing but
    support devices is stated or uncertain, else None. Only findings of this patient now count.

    >>> labels = chexpert_labels("Possible pneumonia. No effusion. PICC line in place.")
    >>> labels["Pneumonia"], labels["Pleural Effusion"], labels["Support Devices"]
    (-1, 0, 1)
    """
    findings = extract(report) if isinstance(report, str) else report
    labels: dict[str, int | None] = dict.fromkeys(CHEXPERT_LABELS)
    for finding in findings:
        if finding.chexpert is None or finding.status is not Status.CURRENT:
            continue
        value = _value(finding)
        known = labels[finding.chexpert]
        if known is None or _STRENGTH[value] > _STRENGTH[known]:
            labels[finding.chexpert] = value
    if all(not labels[name] for name in CHEXPERT_LABELS if name not in _OUTSIDE_NO_FINDING):
        labels["No Finding"] = 1
    return labels


_STRENGTH = {0: 0, -1: 1, 1: 2}


def _value(finding: Finding) -> int:
    if finding.polarity is Polarity.NEGATIVE:
        return 0
    borderline = finding.severity == "borderline"
    return -1 if finding.polarity is Polarity.UNCERTAIN or borderline else 1
