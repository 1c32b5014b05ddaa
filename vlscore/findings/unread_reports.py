"""Notice of reports that the rules cannot read, such as reports that are not English.

A text in which nothing is recognised has no finding and no error, so its scores look perfect.
"""

from collections.abc import Iterable, Mapping

from vlscore.findings.extraction import extract

# Distinct texts of a role that are looked at: reading all of a large table would take as long as
# scoring it.
_MOST_TEXTS = 500
# In 1,489 reports of Indiana University 98 % of the sentences are read, and at least half of each
# report's; of 55 German, Spanish and French sentences, 22 %.
_FEW, _NOTED = 0.5, 0.1


def sentences_read(report: str) -> tuple[int, int]:
    """Return in how many sentences the rules recognise anything, and how many there are.

    >>> sentences_read("Small effusion. Derrame pleural izquierdo.")
    (1, 2)
    """
    sentences = extract(report).sentences
    read = [s.findings or s.normal or s.denials or s.changes or s.rule for s in sentences]
    return sum(map(bool, read)), len(read)


def language_notes(texts: Mapping[str, Iterable[str | None]], readers: Iterable[str]) -> list[str]:
    """Return a note where the rules read few sentences of some texts; none without readers.

    Args:
        texts: role, as in "candidates", -> texts; equal ones count once.
        readers: names of the metrics that read by the rules.
    """
    names = ", ".join(readers)
    found = []
    read_all = total_all = 0
    for role, own in texts.items() if names else ():
        distinct = [text for text in dict.fromkeys(own) if text and text.strip()]
        # Every k-th, so that tables sorted by hospital or language are seen as a whole.
        sample = distinct[:: max(len(distinct) // _MOST_TEXTS, 1)][:_MOST_TEXTS]
        counts = [sentences_read(text) for text in sample]
        few = sum(read < _FEW * total for read, total in counts)
        if few > _NOTED * len(sample):
            found.append(f"{few} of {len(sample)} different {role}")
            read_all += sum(read for read, _ in counts)
            total_all += sum(total for _, total in counts)
    if not found:
        return []
    return [
        f"{names}: the rules read few sentences of {' and '.join(found)} "
        f"({read_all / max(total_all, 1):.0%} of their sentences). They read English alone; a text "
        "that is not read has no finding and no error, so that its values mean nothing"
    ]
