"""Leave unmentioned what the report denies."""

from collections.abc import Iterator

from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Effect, Expected, Meaning
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.removal import remove_sentences


class UnmentionNegatives(Kind):
    """Every sentence of denials and normality goes; what the patient has stays."""

    name = "unmention-negatives"
    description = "Remove every sentence that only denies findings or states normality."
    expected = Expected.INSIGNIFICANT
    origin = "Pino's stress test, unmentioned against negative"
    nothing = "the report does not both state and deny findings in sentences of their own"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        denying = [s.index for s in source.sentences if source.merely_denies(s)]
        if source.has_labels or not any(source.pathologies(s) for s in source.sentences):
            return
        edits = remove_sentences(source, denying)
        if edits is not None:
            meaning = Meaning(Effect.NORMALITY_LEFT_OUT)
            yield Change(edits, f"unmentioned:{len(denying)} sentences", meaning)
