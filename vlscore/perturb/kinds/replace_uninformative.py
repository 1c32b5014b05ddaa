"""Replace a word that says nothing by [UNK]."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import accumulate

from vlscore.findings import Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import noninformative
from vlscore.perturb.perturbation import Change, Edit, Expected
from vlscore.perturb.reading import ReadReport


class ReplaceUninformative(Kind):
    """Preferably in a sentence that states a finding, where changed words stand as well."""

    name = "replace-uninformative"
    description = "Replace a word without information by [UNK]; the control for changed words."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 5 (133 of 979)"
    nothing = "every word carries information"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        found = [(s.has_positive, word) for s in source.sentences for word in _idle(source, s)]
        for wanted in (True, False):
            for word in chance.shuffled([w for has_positive, w in found if has_positive is wanted]):
                yield Change((Edit(*word.span(), "[UNK]"),), f"word:{word.group().lower()}")


def _idle(source: ReadReport, sentence: Sentence) -> Iterator[re.Match[str]]:
    """Words of the list that stand outside every finding, attribute and rule of the sentence."""
    taken: list[tuple[int, int]] = [finding.cue for finding in sentence.findings]
    taken += [a.span for finding in sentence.findings for a in finding.attributes]
    taken += [rule.span for finding in sentence.findings for rule in finding.rules]
    taken.sort()
    # The furthest end of the spans up to each, so that one look tells whether a word is free.
    ends = list(accumulate((end for _, end in taken), max))
    for word in _words().finditer(source.text, *sentence.span):
        before = bisect_left(taken, (word.end(), -1))
        if not before or ends[before - 1] <= word.start():
            yield word


@cache
def _words() -> re.Pattern[str]:
    words = "|".join(sorted(noninformative(), key=len, reverse=True))
    return re.compile(rf"(?<![^\W\d_])(?:{words})(?!'s|[^\W\d_])", re.IGNORECASE)
