"""What an uncertain label, and one that is not mentioned, count as."""

from dataclasses import dataclass

from vlscore.errors import InvalidSetting

#: As CheXpert's authors name them (Irvin et al. 2019, section 4): U-Ones, U-Zeros, U-Ignore.
UNCERTAIN = ("keep", "positive", "negative", "ignored")
UNMENTIONED = ("negative", "ignored")


@dataclass(frozen=True)
class LabelPolicy:
    """How labels are written and compared.

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
        """Raises InvalidSetting for another word."""
        for name, allowed in (("uncertain", UNCERTAIN), ("unmentioned", UNMENTIONED)):
            if getattr(self, name) not in allowed:
                raise InvalidSetting(
                    f"{name} is {', '.join(allowed[:-1])} or {allowed[-1]}, "
                    f"not {getattr(self, name)!r}"
                )

    def written(self, value: int | None) -> int | None:
        """A label as the policy has it written.

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
