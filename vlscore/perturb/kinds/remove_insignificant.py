"""Remove a sentence that says nothing of the patient's chest."""

import re
from collections.abc import Iterator

from vlscore.findings import Category, Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Effect, Expected, Meaning
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.removal import remove_sentences

# What stays must not stand under one of these.
_HEADER = re.compile(r"(?:technique|history|indication|comparison|exam\w*)\b[^:\n]*:\s*$", re.I)
_INSIGNIFICANT = {
    Category.TECHNIQUE,
    Category.COMMUNICATION,
    Category.HISTORY,
    Category.RECOMMENDATION,
}

# That there is nothing to compare with, or with what it was compared, says nothing of the chest.
_NOTHING_COMPARED = re.compile(
    r"(?:no|none)\b(?=.*\b(?:comparison|prior|previous|old)\b)(?!.*\b(?:change|interval)).*"
    r"|comparison:?(?: (?:is|was) made)?(?: (?:to|with))?(?:[\s,./-]|xxxx|_+|[\d]|none|the|a|prior|"
    r"previous|study|studies|radiographs?|films?|chest|x-?xxxx|x-?ray|exam\w*|dated|from|of)*",
)
_ADMINISTRATIVE = re.compile(
    r".*\b(?:message (?:was )?sent|available for (?:my )?interpretation|thanks?)\b.*"
    r"|(?:the |this )?(?:study|exam\w*|film|image) is (?:somewhat |slightly |mildly )?limited"
)


class RemoveInsignificant(Kind):
    """Only sentences without a finding, stated or denied, that no other sentence leans on."""

    name = "remove-insignificant"
    description = "Remove a sentence on technique, communication, history or recommendations."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 2 (119 of 979)"
    nothing = "no sentence is of technique, communication, history or recommendations alone"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if source.followers(sentence.index):
                continue
            if sentence.category not in _INSIGNIFICANT and not _is_administrative(source, sentence):
                continue
            if not source.says_nothing_clinical(sentence):
                continue
            if _HEADER.search(source.lead(sentence.index)):
                continue
            edits = remove_sentences(source, [sentence.index])
            if edits is not None:
                meaning = Meaning(Effect.NO_CONTENT_LEFT_OUT)
                yield Change(edits, f"sentence:{sentence.category}", meaning)


def _is_administrative(source: ReadReport, sentence: Sentence) -> bool:
    """Whether a sentence of no category is on what was compared, how good the film is, or sent."""
    said = source.words_of(sentence).strip(" .")
    if sentence.category is Category.COMPARISON:
        return _NOTHING_COMPARED.fullmatch(said) is not None
    is_other = sentence.category is Category.OTHER
    return is_other and _ADMINISTRATIVE.fullmatch(said) is not None
