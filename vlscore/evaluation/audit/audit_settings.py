"""Alterations of an audit by name, and the settings of its films; it loads nothing heavy."""

from dataclasses import dataclass

from vlscore.core import check_settings
from vlscore.errors import InvalidSetting

ORIGINAL, BLANK, MIRRORED = "original", "blank", "mirrored"
#: The film of another study of the same view, with the same findings or with none of them.
SAME, OTHER = "film-with-same-findings", "film-with-other-findings"
#: The region of a finding, and an equally large one elsewhere, are covered.
HIDDEN, ELSEWHERE = "finding-hidden", "hidden-elsewhere"
#: Nothing that a report speaks of changes.
HARMLESS = ("contrast", "noise", "rotation", "compression")
ALTERATIONS = (ORIGINAL, BLANK, SAME, OTHER, HIDDEN, ELSEWHERE, MIRRORED, *HARMLESS)
# What an alteration measures by the difference to another one.
_MEASURED = {
    HIDDEN: "grounding by region",
    ELSEWHERE: "grounding by region",
    OTHER: "grounding by film",
    MIRRORED: "sides",
}
#: Column of a table with the regions of findings.
BOXES = "boxes"
#: Format of films -> suffix of their files.
FORMATS = {"png": "png", "dicom": "dcm"}


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Settings of the altered films of an audit.

    Attributes:
        alterations: Alterations to make in addition to original, with commas. Default: all.
        regions: Largest number of findings of a study whose region is covered: first those with
            boxes, then those of the candidate, then those of the reference.
        format: png; or dicom, a file with grey levels and nothing about a patient.
        seed: Seed of every choice.

    Raises: InvalidSetting that names the first invalid setting.
    """

    alterations: tuple[str, ...] = ()
    regions: int = 3
    format: str = "png"
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, regions=0, seed=0)
        if self.format not in FORMATS:
            raise InvalidSetting(f"films are written as {' or '.join(FORMATS)}, not {self.format}")
        if unknown := sorted(set(self.alterations) - set(ALTERATIONS)):
            raise InvalidSetting(
                f"no alteration is called {unknown[0]!r}; there are {', '.join(ALTERATIONS)}"
            )

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the alterations to make, always with the original: it is compared with all."""
        chosen = self.alterations or ALTERATIONS
        return tuple(each for each in ALTERATIONS if each in chosen or each == ORIGINAL)

    @property
    def notes(self) -> list[str]:
        """Return what cannot be measured, because what it is compared with is not made."""
        wanted = set(self.wanted)
        lacking = []
        for alteration, measured in _MEASURED.items():
            others = {HIDDEN: {ELSEWHERE}, ELSEWHERE: {HIDDEN}}.get(alteration, {*HARMLESS})
            if alteration in wanted and not others & wanted:
                names = " or ".join(each for each in ALTERATIONS if each in others)
                lacking.append(f"{alteration} measures {measured} only together with {names}")
        return lacking
