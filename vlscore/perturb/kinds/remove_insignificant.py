"""Remove a sentence that says nothing of the patient's chest."""

import re
from collections.abc import Iterator

from vlscore.findings import Category
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Expected
from vlscore.perturb.reading import Source
from vlscore.perturb.removal import remove_sentences

# What stays must not stand under one of these.
_HEADER = re.compile(r"(?:technique|history|indication|comparison|exam\w*)\b[^:\n]*:\s*$", re.I)
_INSIGNIFICANT = {
    Category.TECHNIQUE,
    Category.COMMUNICATION,
    Category.HISTORY,
    Category.RECOMMENDATION,
}


class RemoveInsignificant(Kind):
    """Only sentences without a finding, stated or denied, that no other sentence leans on."""

    name = "remove-insignificant"
    description = "Remove a sentence on technique, communication, history or recommendations."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 2 (119 of 979)"
    nothing = "no sentence is of technique, communication, history or recommendations alone"

    def changes(self, source: Source, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if sentence.category not in _INSIGNIFICANT or source.followers(sentence.index):
                continue
            if not source.says_nothing_clinical(sentence):
                continue
            if _HEADER.search(source.lead(sentence.index)):
                continue
            edits = remove_sentences(source, [sentence.index])
            if edits is not None:
                yield Change(edits, f"sentence:{sentence.category}")
