"""Add a finding of which the report says nothing."""

from collections.abc import Iterator

from vlscore.findings import Category
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import FalseFinding, discourse, false_findings
from vlscore.perturb.perturbation import Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.reading import ReadReport


class AddFalseFinding(Kind):
    """The finding is neither stated, doubted nor denied by the report, nor is its like."""

    name = "add-false-finding"
    description = "Add a sentence that states a finding the report does not mention."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "the report has no place for another finding, or mentions all of them"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        places = [] if source.has_labels else _places(source)
        if not places:
            return
        for finding in chance.shuffled(false_findings()):
            if _is_mentioned(source, finding):
                continue
            sentence = source.styled(chance.pick(finding.sentences))
            meaning = Meaning(Effect.STATED, (finding.observation,))
            for place in chance.shuffled(places):
                # Where the blank between two sentences was forgotten, ours has one on either side.
                after = " " if source.text[place : place + 1].isalnum() else ""
                edit = Edit(place, place, f" {sentence}{after}")
                yield Change((edit,), f"added:{finding.observation}", meaning)


def _is_mentioned(source: ReadReport, finding: FalseFinding) -> bool:
    related = discourse().families.get(finding.observation, frozenset())
    return any(
        mentioned.observation in finding.unless or mentioned.observation in related
        for mentioned in source.findings
    )


def _places(source: ReadReport) -> list[int]:
    """Ends of clinical sentences after which another may stand; not after a summing up."""
    last = len(source.sentences) - 1
    fit = [
        sentence
        for sentence in source.sentences
        if sentence.category is Category.CLINICAL
        and sentence.span.of(source.text).endswith((".", "!", "?"))
        and not source.is_joined(sentence.index)
        and (sentence.index == last or not source.keeps_its_place(sentence.index + 1))
    ]
    before = [s for s in fit if all(f.observation != "acute_abnormality" for f in s.findings)]
    return [sentence.span.end for sentence in before or fit]
