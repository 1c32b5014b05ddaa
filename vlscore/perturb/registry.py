"""Base class and registry of kinds of perturbation.

A new kind is one file under `kinds/` and one line here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar

from vlscore.core import Registry, split_names
from vlscore.errors import InvalidSetting
from vlscore.perturb.edits import Chance, Change, ErrorCategory, Expected
from vlscore.perturb.parsed_report import ParsedReport


class Kind(ABC):
    """Base class of a kind of perturbation; `perturb` takes its objects, or "package.module:NAME".

    Attributes:
        name: name in the registry, as in "change-location".
        description: one sentence for `vlscore perturb --list-kinds` and the data set card.
        expected: whether a good metric should notice the change.
        category: ReXVal's error category; None if the change is no error.
        origin: publication that describes the kind; default: "vlscore".
        nothing: reason why a report allows no such change, as skipped.jsonl prints it: "no word is
            spelled otherwise in America". No capital, no period at the end.
        needs_standard_normal: whether it reads `ParsedReport.standard_normal`.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    expected: ClassVar[Expected]
    category: ClassVar[ErrorCategory | None] = None
    origin: ClassVar[str] = "vlscore"
    nothing: ClassVar[str]
    needs_standard_normal: ClassVar[bool] = False

    @abstractmethod
    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        """Yield the changes that the report allows, in an order that `chance` alone decides.

        Args:
            source: the report, with its findings and sentences; it must not be modified.
            chance: source of every random choice, such as `chance.shuffled(places)`.
        """


AnyKind = str | Kind | type[Kind]


def _check(kind: Any) -> None:
    if not issubclass(kind if isinstance(kind, type) else type(kind), Kind):
        raise InvalidSetting(
            f"{kind!r} is not a kind of perturbation: its class must be derived from "
            "vlscore.perturb.Kind"
        )
    if not isinstance(getattr(kind, "name", None), str) or not kind.name:
        raise InvalidSetting(
            f"{kind!r} has no name; a kind of perturbation needs a name that is a text"
        )


@cache
def _made(kind: Any) -> Kind:
    """Return the kind itself; of a class, always the same object."""
    if not isinstance(kind, type):
        found: Kind = kind
        return found
    try:
        made: Kind = kind()
    except TypeError as error:
        raise InvalidSetting(
            f"{kind.__name__} must be callable without arguments: {error}"
        ) from None
    return made


KINDS = Registry[Kind](
    "kind of perturbation",
    group="vlscore.kinds",
    check=_check,
    # Entry points may name classes.
    made=_made,
    listed_by="vlscore perturb --list-kinds",
)

# Imported when first asked for, so that a kind may import what it needs from vlscore.perturb.
for _name, _target in {
    "remove-pathology": "removals:RemovePathology",
    "remove-insignificant": "removals:RemoveInsignificant",
    "change-location": "attribute_changes:ChangeLocation",
    "change-severity": "attribute_changes:ChangeSeverity",
    "replace-uninformative": "rewordings:ReplaceUninformative",
    "standard-normal": "rewordings:StandardNormal",
    "negate-finding": "polarity:NegateFinding",
    "affirm-finding": "polarity:AffirmFinding",
    "add-false-finding": "polarity:AddFalseFinding",
    "drop-comparison": "comparisons:DropComparison",
    "invent-comparison": "comparisons:InventComparison",
    "shuffle-sentences": "rewordings:ShuffleSentences",
    "paraphrase": "rewordings:Paraphrase",
    "unmention-negatives": "rewordings:UnmentionNegatives",
}.items():
    KINDS.register(f"vlscore.perturb.kinds.{_target}", _name)


def kinds_named(kinds: Iterable[AnyKind] | AnyKind | None) -> list[Kind]:
    """Return the kinds with these names, in the order of the registry, each once; all by default.

    Args:
        kinds: names in any spelling, with commas between them or in a list,
            "package.module:MyKind", or kinds themselves. Those that are not registered come last,
            in the order given.

    Raises: UnknownName with what may have been meant; InvalidSetting where something is no kind,
        or two kinds have one name.
    """
    if kinds is None:
        return KINDS.values()
    if isinstance(kinds, str):
        kinds = split_names(kinds) or [kinds]
    if isinstance(kinds, (Kind, type)):
        kinds = [kinds]
    found: dict[str, Kind] = {}
    for kind in map(KINDS.find, kinds):
        others = [found.setdefault(kind.name, kind)]
        others += [KINDS.find(kind.name)] if kind.name in KINDS else []
        if any(type(other) is not type(kind) for other in others):
            raise InvalidSetting(f"two kinds of perturbation are called {kind.name!r}")
    rank = {name: k for k, name in enumerate(KINDS.names())}
    return sorted(found.values(), key=lambda kind: rank.get(kind.name, len(rank)))
