"""What is made of a text once, for every metric that needs it.

An artefact is a name and a function from texts to one value each. A new one is a function and one
line. Embeddings, which need images as well, come from the embedder instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vlscore._recent import Recent
from vlscore._registry import Registry

# Distinct texts whose artefacts are kept from batch to batch; references repeat across generators.
_REMEMBERED = 10_000


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


def _chexpert_labels(texts: Sequence[str]) -> list[dict[str, int | None]]:
    from vlscore.findings import chexpert_labels

    return [chexpert_labels(text) for text in texts]


ARTEFACTS.register(Artefact("chexpert-labels", _chexpert_labels))


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
