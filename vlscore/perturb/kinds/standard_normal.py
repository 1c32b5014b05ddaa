"""Exchange a normal report for the standard normal report."""

from collections.abc import Iterator

from vlscore.findings import Category
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import NeedsStandardNormal
from vlscore.perturb.perturbation import Change, Edit, Effect, Expected, Meaning
from vlscore.perturb.reading import ReadReport

_FEWEST = 2
_SILENT = {Category.TECHNIQUE, Category.COMMUNICATION}


class StandardNormal(NeedsStandardNormal):
    """Both say that nothing is wrong, in other words."""

    name = "standard-normal"
    description = "Exchange a normal report for a standard normal report."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 6 (207 of 979)"
    nothing = "the report is not normal throughout, or is the standard normal report"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if source.standard_normal is not None and is_normal(source):
            standard = source.styled(source.standard_normal)
            edit = Edit(0, len(source.text), standard)
            yield Change((edit,), "report:normal", Meaning(Effect.NORMALITY_LEFT_OUT))


def is_normal(source: ReadReport) -> bool:
    """Whether every sentence either states normality or is no statement about the patient."""
    normal = [source.merely_denies(sentence) for sentence in source.sentences]
    return sum(normal) >= _FEWEST and all(
        denies or (sentence.category in _SILENT and source.says_nothing_clinical(sentence))
        for sentence, denies in zip(source.sentences, normal, strict=True)
    )
