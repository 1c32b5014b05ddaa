"""Put the sentences of a report in another order."""

from collections.abc import Iterator
from itertools import pairwise

from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Edit, Effect, Expected, Meaning
from vlscore.perturb.reading import ReadReport

_TRIES = 4


class ShuffleSentences(Kind):
    """Sentences move within their paragraph; one that leans on the one before moves with it."""

    name = "shuffle-sentences"
    description = "Put the sentences of a paragraph in another order."
    expected = Expected.INSIGNIFICANT
    nothing = "no paragraph has two sentences that can change places"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if source.has_labels or any(source.is_joined(s.index) for s in source.sentences):
            return
        regions = [units for units in _regions(source) if len(units) > 1]
        for _ in range(_TRIES):
            edits = [edit for units in regions if (edit := _shuffled(source, units, chance))]
            if edits:
                order = f"order:{sum(map(len, regions))} sentences"
                yield Change(tuple(edits), order, Meaning(Effect.REORDERED))


def _regions(source: ReadReport) -> list[list[list[int]]]:
    """For each paragraph or list item its units: sentences that move together."""
    regions: list[list[list[int]]] = []
    for sentence in source.sentences:
        index = sentence.index
        if source.opens_paragraph(index):
            regions.append([[index]])
        elif source.keeps_its_place(index) or _is_tied(source, index):
            regions[-1][-1].append(index)
        else:
            regions[-1].append([index])
    return regions


def _is_tied(source: ReadReport, index: int) -> bool:
    before = source.sentences[index - 1].span.of(source.text)
    return not before.endswith((".", "!", "?"))


def _shuffled(source: ReadReport, units: list[list[int]], chance: Chance) -> Edit | None:
    spans = [
        (source.sentences[unit[0]].span.start, source.sentences[unit[-1]].span.end)
        for unit in units
    ]
    order = chance.shuffled(range(len(spans)))
    if order == sorted(order):
        return None
    stop = " ." if source.is_tokenised else "."
    texts = [source.text[start:end] for start, end in spans]
    texts = [text if text.endswith((".", "!", "?")) else text + stop for text in texts]
    gaps = [source.text[a[1] : b[0]] for a, b in pairwise(spans)]
    parts = [texts[order[0]]]
    for gap, position in zip(gaps, order[1:], strict=True):
        parts += [gap if gap.isspace() else " ", texts[position]]
    edit = Edit(spans[0][0], spans[-1][1], "".join(parts))
    return None if edit.replacement == source.text[edit.start : edit.end] else edit
