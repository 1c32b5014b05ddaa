"""Remove the sentence that states a pathology."""

from collections.abc import Iterator

from vlscore.findings import Category, Finding
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, ErrorCategory, Expected
from vlscore.perturb.removal import remove_sentences
from vlscore.perturb.source import Source, topic_of

# A report that says it again and again has no sentence whose loss leaves the finding out.
_MOST_SENTENCES = 3


class RemovePathology(Kind):
    """Where other sentences state the same finding again, or refer back to it, they go with it."""

    name = "remove-pathology"
    description = "Remove the sentence that states a positive finding."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    origin = "VLScore paper, section 4.2, kind 1 (238 of 979)"
    nothing = "no sentence states a positive finding that can be left out"

    def changes(self, source: Source, chance: Chance) -> Iterator[Change]:
        tried = set()
        for sentence in chance.shuffled(source.sentences):
            pathologies = source.pathologies(sentence)
            topics = frozenset(map(topic_of, pathologies))
            if not pathologies or topics in tried:
                continue
            tried.add(topics)
            gone = _all_that_tell(source, pathologies)
            edits = remove_sentences(source, gone) if len(gone) <= _MOST_SENTENCES else None
            if edits is not None:
                names = "+".join(dict.fromkeys(finding.observation for finding in pathologies))
                yield Change(edits, f"sentence:{names}")


def _all_that_tell(source: Source, findings: list[Finding]) -> set[int]:
    """The sentences that state the findings, speak of them, or recommend what to do about them."""
    stating = set[int]().union(*(source.sentences_stating(finding) for finding in findings))
    gone = stating.union(*(source.followers(index) for index in stating))
    return gone | {index + 1 for index in gone if _recommends(source, index + 1)}


def _recommends(source: Source, index: int) -> bool:
    if index == len(source.sentences) or source.opens_paragraph(index):
        return False
    return source.sentences[index].category is Category.RECOMMENDATION
