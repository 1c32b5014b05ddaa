"""How much was computed, and how much of it was there already."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass
class Work:
    """Counts of one engine; threads may share it.

    Attributes:
        images_decoded: image files that were decoded, damaged ones included.
        images_embedded, reports_embedded: what went through the encoder.
        pixels_from_cache: images whose pixels lay in the cache.
        images_from_cache, reports_from_cache: those whose embedding lay in the cache.
    """

    images_decoded: int = 0
    images_embedded: int = 0
    reports_embedded: int = 0
    pixels_from_cache: int = 0
    images_from_cache: int = 0
    reports_from_cache: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        """Add to the counts of these names."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def to_dict(self) -> dict[str, int]:
        """Name -> count."""
        names = [each.name for each in fields(self) if not each.name.startswith("_")]
        return {name: getattr(self, name) for name in names}

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """Name -> count, less what `to_dict` gave before."""
        return {name: count - before.get(name, 0) for name, count in self.to_dict().items()}

    def said(self) -> str:
        """What came from the cache, for a line of progress; empty where nothing did.

        >>> Work(images_from_cache=3, images_embedded=1, reports_embedded=4).said()
        'cache: 75% of images, 0% of reports'
        """
        kinds = {
            "images": (self.images_from_cache, self.images_embedded),
            "reports": (self.reports_from_cache, self.reports_embedded),
        }
        shares = [
            f"{known / (known + computed):.0%} of {kind}"
            for kind, (known, computed) in kinds.items()
            if known + computed
        ]
        if not (self.images_from_cache + self.reports_from_cache + self.pixels_from_cache):
            return ""
        return f"cache: {', '.join(shares)}" if shares else ""
