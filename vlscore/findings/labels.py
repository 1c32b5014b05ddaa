"""CheXpert labels of a report from its findings, and the policy for uncertain or absent labels."""

from dataclasses import dataclass

from vlscore.errors import InvalidSetting
from vlscore.findings.extraction import extract
from vlscore.findings.lexicon import CHEXPERT_LABELS
from vlscore.findings.types import Finding, Polarity, ReportFindings, Status

_OUTSIDE_NO_FINDING = frozenset({"No Finding", "Support Devices"})


def chexpert_labels(report: str | ReportFindings) -> dict[str, int | None]:
    """Return CheXpert's 14 labels: 1 affirmed, -1 uncertain, 0 denied, None not mentioned.

    A label takes the strongest of its mentions: affirmed over uncertain over denied (Irvin et al.
    2019, section 3). A borderline finding is uncertain. "No Finding" is 1 if nothing but support
    devices is affirmed or uncertain, else None. Only current findings of this patient count.

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


#: As CheXpert's authors name them (Irvin et al. 2019, section 4): U-Ones, U-Zeros, U-Ignore.
UNCERTAIN = ("keep", "positive", "negative", "ignored")
UNMENTIONED = ("negative", "ignored")


@dataclass(frozen=True)
class LabelPolicy:
    """Policy for writing and comparing labels.

    Attributes:
        uncertain: "keep" writes -1 and compares it as positive; "positive" makes it 1, "negative"
            0; "ignored" leaves it empty, and no report is judged on a label that either side calls
            uncertain.
        unmentioned: in comparisons, whether a label that the given ones leave empty is "negative",
            or "ignored", so that the report is not judged on it.
    """

    uncertain: str = "keep"
    unmentioned: str = "negative"

    def __post_init__(self) -> None:
        """Raise InvalidSetting for another word."""
        for name, allowed in (("uncertain", UNCERTAIN), ("unmentioned", UNMENTIONED)):
            if getattr(self, name) not in allowed:
                raise InvalidSetting(
                    f"{name} is {', '.join(allowed[:-1])} or {allowed[-1]}, "
                    f"not {getattr(self, name)!r}"
                )

    def written(self, value: int | None) -> int | None:
        """Return a label as the policy has it written.

        >>> LabelPolicy("positive").written(-1), LabelPolicy("ignored").written(-1)
        (1, None)
        """
        if value != -1:
            return value
        return {"keep": -1, "positive": 1, "negative": 0, "ignored": None}[self.uncertain]

    def judged(self, given: int | None, found: int | None) -> tuple[bool, bool, bool]:
        """(is the report judged on the label, is it given as present, is it found present).

        >>> LabelPolicy("ignored").judged(-1, 1), LabelPolicy().judged(None, 1)
        ((False, False, True), (True, False, True))
        """
        counts = (1, -1) if self.uncertain in ("keep", "positive") else (1,)
        judged = given is not None or self.unmentioned == "negative"
        if self.uncertain == "ignored" and -1 in (given, found):
            judged = False
        return judged, given in counts, found in counts
