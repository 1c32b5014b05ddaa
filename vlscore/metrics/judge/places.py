"""Places of findings: sides, and levels by family, such as lobes, bones and valves."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

BOTH_SIDES = frozenset(("left", "right"))
#: The family of levels that say which side has more.
GREATER = "greater"
#: The family of levels of the lungs, and the level that is next to both others.
_LUNGS, _MIDDLE = "level", "middle"


class PlaceConflict(StrEnum):
    """Kind of difference between two places."""

    SIDE = "side"
    PART_OF_SIDES = "part of the sides"
    LEVEL = "level"
    NEXT_LEVEL = "next level"
    GREATER = "side with more"


class Place(NamedTuple):
    """Place of a finding, as a report names it.

    `sides` are "left", "right", both, or none; `levels` are the levels of each family that the
    report names. Two levels of one family are two places.
    """

    sides: frozenset[str] = frozenset()
    levels: Mapping[str, frozenset[str]] = MappingProxyType({})

    def differs_in_levels(self, other: "Place") -> bool:
        """Return whether two places have different levels of one family."""
        return any(
            family in other.levels and own.isdisjoint(other.levels[family])
            for family, own in self.levels.items()
            if family != GREATER
        )

    def conflict(self, other: "Place") -> PlaceConflict | None:
        """Return how two places differ; None if they agree, or if one of them is not named."""
        if self.sides and other.sides and self.sides != other.sides:
            # "Mainly on the right" may be on both sides, or on the right alone.
            mainly = [place.sides == place.levels.get(GREATER) for place in (self, other)]
            if self.sides.isdisjoint(other.sides) and not all(mainly):
                return PlaceConflict.SIDE
            if not any(mainly):
                return PlaceConflict.PART_OF_SIDES
        own, true = (place.levels.get(_LUNGS, frozenset()) for place in (self, other))
        if self.differs_in_levels(other):
            return PlaceConflict.NEXT_LEVEL if _MIDDLE in own | true else PlaceConflict.LEVEL
        # "Upper and middle lobes" for "upper and lower lobes": each report has a lobe of its own.
        if own - true and true - own:
            return PlaceConflict.NEXT_LEVEL
        more, most = self.levels.get(GREATER), other.levels.get(GREATER)
        return PlaceConflict.GREATER if more and most and more != most else None

    def may_be(self, other: "Place") -> bool:
        """Return whether the two may be one place of a report: neither side nor level differs."""
        sides_differ = self.sides and other.sides and self.sides != other.sides
        return not sides_differ and not self.differs_in_levels(other)

    def may_hold(self, other: "Place") -> bool:
        """Return whether one of two places may lie in the other."""
        near = self.conflict(other) not in (PlaceConflict.SIDE, PlaceConflict.NEXT_LEVEL)
        return near and not self.differs_in_levels(other)

    def may_be_near(self, other: "Place") -> bool:
        """Return whether the two may be one place: sides overlap, levels are not far apart."""
        return self.conflict(other) not in (PlaceConflict.SIDE, PlaceConflict.LEVEL)

    def adds_nothing_to(self, other: "Place") -> bool:
        """Return whether another place names all that this one names."""
        return self.sides <= other.sides and all(
            not own.isdisjoint(other.levels.get(family, ())) for family, own in self.levels.items()
        )

    def overlaps(self, other: "Place") -> bool:
        """Return whether both name a side, or a level, in common."""
        return bool(self.sides & other.sides) or any(
            not own.isdisjoint(other.levels.get(family, ())) for family, own in self.levels.items()
        )

    def joined(self, other: "Place") -> "Place":
        """Return the place with the levels of both; sides that it does not name are the other's."""
        levels = {
            family: self.levels.get(family, frozenset()) | other.levels.get(family, frozenset())
            for family in (*self.levels, *other.levels)
        }
        return Place(self.sides or other.sides, levels)
