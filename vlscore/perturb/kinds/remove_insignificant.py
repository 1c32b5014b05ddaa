"""Remove a sentence that says nothing of the patient's chest."""

from collections.abc import Iterator

from vlscore.findings import Category, Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Expected
from vlscore.perturb.removal import remove_sentences
from vlscore.perturb.source import Source
from vlscore.perturb.tables import discourse

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
            if not _is_insignificant(source, sentence) or source.followers(sentence.index):
                continue
            edits = remove_sentences(source, [sentence.index])
            if edits is not None:
                yield Change(edits, f"sentence:{sentence.category}")


def _is_insignificant(source: Source, sentence: Sentence) -> bool:
    if sentence.category not in _INSIGNIFICANT or sentence.findings or sentence.changes:
        return False
    said = f" {source.words_of(sentence).rstrip('. ')} "
    return not any(f" {phrase} " in said for phrase in discourse().interpreting)
