"""What every kind of perturbation is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from vlscore.perturb.chance import Chance
from vlscore.perturb.perturbation import Change, ErrorCategory, Expected
from vlscore.perturb.reading import ReadReport


class Kind(ABC):
    """A kind of perturbation: derive from it, and hand the object, or its place, to `perturb`.

    Attributes:
        name: as users type it.
        description: one sentence for `--help` and the data set card.
        expected: whether a good metric should notice.
        category: ReXVal's error category, or None.
        origin: where the kind comes from.
        nothing: why a report may allow no such change, in words for the user.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    expected: ClassVar[Expected]
    category: ClassVar[ErrorCategory | None] = None
    origin: ClassVar[str] = "vlscore"
    nothing: ClassVar[str]

    @abstractmethod
    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        """Changes that the report allows, in an order that `chance` alone decides."""


class NeedsStandardNormal(Kind):
    """A kind that needs `ReadReport.standard_normal`; generators know it by this class."""
