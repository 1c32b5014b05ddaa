"""Say the same in other words."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from vlscore.findings import Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import Equivalents, equivalents
from vlscore.perturb.perturbation import Change, Expected
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.wording import replaced, with_capital

_LAST_WORDS = re.compile(r"[\w-]+ [\w-]+\s*$|[\w-]+\s*$")
_FUNCTION_WORDS = {"the", "of", "in", "is", "are", "for", "no", "there", "with", "to"}
_NEXT_WORD = re.compile(r"\s*([\w-]+)")


class Paraphrase(Kind):
    """One phrase becomes another of the table `equivalents.toml`."""

    name = "paraphrase"
    description = "Replace a phrase by one that means the same."
    expected = Expected.INSIGNIFICANT
    nothing = "the report holds no phrase of the table of equivalents"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        said = source.text.lower()
        found = [
            (group, match)
            for group in equivalents()
            if any(phrase in said for phrase in group.phrases)
            for match in _pattern(group.phrases).finditer(source.text)
        ]
        for group, match in chance.shuffled(found):
            sentence = _sentence_at(source, match.start())
            if sentence is None or not _fits(source.text, group, match, sentence):
                continue
            old = match.group()
            others = [phrase for phrase in group.phrases if phrase not in group.not_instead]
            options = [p for p in others if _may_stand(source, sentence, old.lower(), p)]
            if options:
                new = chance.pick(options)
                edits = replaced(source.text, *match.span(), with_capital(new, like=old))
                yield Change(tuple(edits), f"equivalent:{old.lower()}->{new}")


def _may_stand(source: ReadReport, sentence: Sentence, old: str, new: str) -> bool:
    """Whether the phrase is another one, and repeats no word of the sentence."""
    brought = set(new.split()) - set(old.split()) - _FUNCTION_WORDS
    rest = source.words_of(sentence).replace(old, " ", 1)
    return new != old and brought.isdisjoint(re.findall(r"[\w-]+", rest))


def _sentence_at(source: ReadReport, place: int) -> Sentence | None:
    """The sentence that holds a character of the report."""
    before = bisect_right(source.sentences, place, key=lambda sentence: sentence.span.start)
    sentence = source.sentences[before - 1] if before else None
    return sentence if sentence and place < sentence.span.end else None


def _fits(text: str, group: Equivalents, match: re.Match[str], sentence: Sentence) -> bool:
    opens = match.start() == sentence.span.start
    closes = not text[match.end() : sentence.span.end].strip(" .")
    if group.at == "start" and not opens:
        return False
    if group.at == "end" and not closes:
        return False
    if group.at == "sentence" and not (opens and closes):
        return False
    if group.before:
        following = _NEXT_WORD.match(text, match.end())
        if following is None or following.group(1).lower() not in group.before:
            return False
    if group.after:
        preceding = _LAST_WORDS.search(text, sentence.span.start, match.start())
        words = preceding.group().lower().split() if preceding else []
        return " ".join(words) in group.after or " ".join(words[-1:]) in group.after
    return True


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    alternatives = "|".join(re.escape(phrase) for phrase in longest_first)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE)
