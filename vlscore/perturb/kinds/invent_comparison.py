"""Compare a finding with a prior examination where the report does not."""

import re
from collections.abc import Iterator

from vlscore.findings import Category, Finding, Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import comparisons, denials
from vlscore.perturb.perturbation import Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.reading import ReadReport

_END = re.compile(r"\s*[.]+$")


class InventComparison(Kind):
    """Only plain sentences of one finding, in reports that compare nothing."""

    name = "invent-comparison"
    description = (
        "Say that a finding is new, increased, decreased or unchanged since a prior examination."
    )
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_COMPARISON
    nothing = "the report compares already, or no sentence states one finding and nothing else"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if _compares(source):
            return
        for sentence in chance.shuffled(source.sentences):
            finding = _plain_finding(source, sentence)
            if finding is None:
                continue
            end = _END.search(source.text, *sentence.span)
            place = sentence.span.end if end is None else end.start()
            words = chance.pick(_words_for(finding))
            comma = " , " if source.is_tokenised else ", "
            meaning = Meaning(Effect.COMPARED, (finding.observation,), new=words.split()[0])
            edit = Edit(place, place, comma + words)
            yield Change((edit,), f"compared:{words} {finding.observation}", meaning)


def _compares(source: ReadReport) -> bool:
    return any(
        sentence.changes or sentence.category is Category.COMPARISON
        for sentence in source.sentences
    )


def _words_for(finding: Finding) -> tuple[str, ...]:
    table = comparisons()
    return table.invented_for_lasting if finding.observation in table.lasting else table.invented


def _plain_finding(source: ReadReport, sentence: Sentence) -> Finding | None:
    """The one finding of a sentence that a comparison at its end can only mean."""
    if len(sentence.findings) != 1 or not source.pathologies(sentence):
        return None
    finding = sentence.findings[0]
    rest = source.text[finding.span.end : sentence.span.end].lower()
    words = re.findall(r"[\w']+", rest)
    plain = denials().more.isdisjoint(words) and "," not in rest
    plain = plain and comparisons().old.isdisjoint(source.words_of(sentence).split())
    return finding if plain and not source.is_joined(sentence.index) else None
