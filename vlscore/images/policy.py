"""How stored pixel values become grey levels: the choices that change a score, by name."""

from dataclasses import dataclass

from vlscore.errors import InvalidSetting

WINDOWS = ("auto", "header", "minmax", "percentile", "full")


@dataclass(frozen=True)
class ImagePolicy:
    """Choices made when a file or array becomes a radiograph.

    Attributes:
        window: how values map to [0, 1]. "auto" (default): the DICOM header's VOI LUT or window
            where there is one; else the full stored range for 8-bit images and the image's own
            minimum to maximum for deeper ones. "header": as "auto", but a DICOM without a window
            is refused. "minmax": the image's minimum to maximum. "percentile": its 0.5th to
            99.5th percentile. "full": the full stored range.
        frame: which frame of a multi-frame file to take, counted from 0; None refuses such files.
            Files of one frame ignore it.
        max_pixels: larger images are refused as decompression bombs.
        other_modalities: "refuse" (default) files that show that they are no chest radiograph:
            by their DICOM header (CT, ultrasound, a hand), by many colours (a photograph), or by
            pixels that are all equal; or "accept" them.
        as_authors: read files exactly as the encoder's authors' code does, quirks included; all
            other fields are then without effect.
    """

    window: str = "auto"
    frame: int | None = None
    max_pixels: int = 100_000_000
    other_modalities: str = "refuse"
    as_authors: bool = False

    def __post_init__(self) -> None:
        if self.window not in WINDOWS:
            raise InvalidSetting(f"window is one of {', '.join(WINDOWS)}, not {self.window!r}")
        if self.other_modalities not in ("refuse", "accept"):
            raise InvalidSetting(
                f'other_modalities is "refuse" or "accept", not {self.other_modalities!r}'
            )

    @classmethod
    def named(cls, policy: "ImagePolicy | str | None") -> "ImagePolicy":
        """An ImagePolicy from its short name: a window's name, or "authors"."""
        if policy is None:
            return cls()
        if isinstance(policy, cls):
            return policy
        if policy == "authors":
            return cls(as_authors=True)
        return cls(window=str(policy))

    def signature(self) -> str:
        """Short text for a score's signature."""
        if self.as_authors:
            return "authors"
        parts = [self.window]
        if self.frame is not None:
            parts.append(f"frame={self.frame}")
        if self.other_modalities != "refuse":
            parts.append(f"other_modalities={self.other_modalities}")
        return ",".join(parts)
