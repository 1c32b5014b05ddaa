"""Taking sentences out of a report so that what stays reads as if they had never been there."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from vlscore.perturb.perturbation import Edit
from vlscore.perturb.reading import ReadReport

_DIGITS = re.compile(r"\d{1,2}")


def remove_sentences(source: ReadReport, indices: Collection[int]) -> tuple[Edit, ...] | None:
    """Edits that remove the sentences with the numbers given.

    List numbers go with an item that goes whole, and the items after it are numbered anew. None
    where no sentence of a section, or of the report, would be left, or half of one, or where the
    sentence after one of them speaks of it.
    """
    gone = sorted(set(indices))
    if not gone or len(gone) == len(source.sentences):
        return None
    if any(source.is_joined(index) for index in gone) or _empties_a_section(source, set(gone)):
        return None
    after = {index + 1 for index in gone}.difference(gone, [len(source.sentences)])
    if any(source.goes_on(index) or source.speaks_of_the_one_before(index) for index in after):
        return None
    edits = [_removal(source, first, last) for first, last in _runs(source, gone)]
    edits += _renumbering(source, edits)
    return tuple(sorted(edits))


def _runs(source: ReadReport, gone: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each stretch of neighbours within one section."""
    runs = [[gone[0], gone[0]]]
    for before, index in pairwise(gone):
        if index == before + 1 and not source.opens_section(index):
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return [(first, last) for first, last in runs]


def _empties_a_section(source: ReadReport, gone: set[int]) -> bool:
    opened = [k for k in range(len(source.sentences)) if source.opens_section(k)]
    bounds = pairwise([*opened, len(source.sentences)])
    return any(gone.issuperset(range(first, last)) for first, last in bounds)


def _removal(source: ReadReport, first: int, last: int) -> Edit:
    start, end = source.sentences[first].span.start, source.sentences[last].span.end
    following = last + 1
    goes_on = following < len(source.sentences) and not source.opens_section(following)
    if goes_on and not source.opens_paragraph(following):
        return Edit(start, source.sentences[following].span.start, "")
    if source.opens_section(first) and goes_on:
        number = source.number_start(following)
        there = source.sentences[following].span.start if number is None else number
        here = source.number_start(first)
        return Edit(start if here is None else here, there, "")
    return Edit(source.before(first), end, "")


def _renumbering(source: ReadReport, edits: Sequence[Edit]) -> list[Edit]:
    """New numbers for the items after those that went."""
    found: list[Edit] = []
    lost = 0
    for index in range(len(source.sentences)):
        place = source.number_start(index)
        if place is None:
            lost = 0 if source.opens_section(index) else lost
            continue
        digits = _DIGITS.search(source.text, place, source.sentences[index].span.start)
        if digits is None:
            continue
        number = int(digits.group())
        if number == 1:
            lost = 0
        if any(edit.start <= digits.start() and digits.end() <= edit.end for edit in edits):
            lost += 1
        elif lost and number > lost:
            found.append(Edit(*digits.span(), str(number - lost)))
    return found
