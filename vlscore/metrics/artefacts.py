"""What is made of a text once, for every metric that needs it.

An artefact is a name and a function from texts to one value each. A new one is a function and one
line. Embeddings, which need images as well, come from the embedder instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vlscore._recent import Recent
from vlscore._registry import Registry

if TYPE_CHECKING:
    from vlscore.findings import ReportFindings

# Distinct texts whose artefacts are kept from batch to batch; references repeat across generators.
_REMEMBERED = 10_000
# Candidates and references of one chunk of an evaluation.
_TEXTS_OF_A_CHUNK = 2048


@dataclass(frozen=True)
class Artefact:
    """What is made of a text.

    Attributes:
        name: as metrics name it.
        make: n texts -> n values, in order; the value of a text does not depend on its neighbours.
    """

    name: str
    make: Callable[[Sequence[str]], Sequence[Any]]


ARTEFACTS: Registry[Artefact] = Registry("artefact", group="vlscore.artefacts")


class Mention(NamedTuple):
    """One mention of a finding: its CheXpert label, or its own name where it has none.

    `denied` is false for what is stated or doubted; `attributes` are side, place, severity, ...
    """

    category: str
    denied: bool
    attributes: tuple[str, ...]


@lru_cache(maxsize=_TEXTS_OF_A_CHUNK)
def _findings(text: str) -> "ReportFindings":
    """What a report says, read once for all artefacts that are made of it."""
    from vlscore.findings import extract

    return extract(text)


def _chexpert_labels(texts: Sequence[str]) -> list[dict[str, int | None]]:
    from vlscore.findings import chexpert_labels

    return [chexpert_labels(_findings(text)) for text in texts]


def _finding_mentions(texts: Sequence[str]) -> list[tuple[Mention, ...]]:
    from vlscore.findings import Polarity, Status

    return [
        tuple(
            Mention(
                finding.chexpert or finding.observation,
                finding.polarity is Polarity.NEGATIVE,
                tuple(dict.fromkeys(attribute.value for attribute in finding.attributes)),
            )
            for finding in _findings(text)
            if finding.status is Status.CURRENT
        )
        for text in texts
    ]


ARTEFACTS.register(Artefact("chexpert-labels", _chexpert_labels))
ARTEFACTS.register(Artefact("finding-mentions", _finding_mentions))


class ArtefactStore:
    """Makes each artefact of each distinct text once, while it is among the latest used.

    Attributes:
        made: how many artefacts were made so far.
    """

    def __init__(self) -> None:
        self._recent: Recent[tuple[str, str], Any] = Recent(_REMEMBERED)
        self.made = 0

    def of(self, name: str, texts: Sequence[str]) -> list[Any]:
        """The artefact of each text, in order."""
        found = self._recent.known(dict.fromkeys((name, text) for text in texts))
        new = [text for text in dict.fromkeys(texts) if (name, text) not in found]
        if new:
            values = ARTEFACTS.find(name).make(new)
            made = {(name, text): value for text, value in zip(new, values, strict=True)}
            self._recent.add(made)
            self.made += len(made)
            found |= made
        return [found[name, text] for text in texts]
