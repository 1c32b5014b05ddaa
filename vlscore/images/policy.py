"""How stored pixel values become grey levels: the choices that change a score, by name."""

from dataclasses import dataclass
from typing import Any

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
        other_modalities: "refuse" (default) images that show that they are no chest radiograph:
            by their DICOM header (CT, ultrasound, a hand), by many colours (a photograph), or by
            pixels that are all equal, be it a file or an array; or "accept" them.
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
            raise InvalidSetting(
                f"an image policy's window is one of {', '.join(WINDOWS)}, not {self.window!r}"
            )
        if self.frame is not None and not _is_count(self.frame):
            raise InvalidSetting(f"frame is a whole number, counted from 0, not {self.frame!r}")
        if not _is_count(self.max_pixels) or self.max_pixels < 1:
            raise InvalidSetting(f"max_pixels is a whole number above 0, not {self.max_pixels!r}")
        if self.other_modalities not in ("refuse", "accept"):
            raise InvalidSetting(
                f'other_modalities is "refuse" or "accept", not {self.other_modalities!r}'
            )

    @classmethod
    def named(cls, policy: "ImagePolicy | str | None") -> "ImagePolicy":
        """An ImagePolicy from its short text: a window's name or "authors", and further fields.

        Raises: InvalidSetting naming what is not understood.

        >>> ImagePolicy.named("percentile,frame=2").frame
        2
        >>> ImagePolicy.named("other_modalities=accept").signature()
        'auto,other_modalities=accept'
        """
        if policy is None:
            return cls()
        if isinstance(policy, cls):
            return policy
        if not isinstance(policy, str):
            raise InvalidSetting(
                f"an image policy is an ImagePolicy or a text, not a {type(policy).__name__}"
            )
        name, *rest = [part.strip() for part in policy.split(",")]
        if "=" in name:
            name, rest = "auto", [name, *rest]
        if name == "authors":
            if rest:
                raise InvalidSetting(
                    f'the image policy "authors" takes no further fields, not {rest[0]!r}: the '
                    "authors' code has no such choices"
                )
            return cls(as_authors=True)
        return cls(window=name, **_fields(rest))

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


def how_to_set(field: str, value: str) -> str:
    """How a user sets a field, in Python and in a command.

    >>> how_to_set("frame", "NUMBER")
    'ImagePolicy(frame=NUMBER), or --image-policy frame=NUMBER'
    """
    written = value if value == "NUMBER" else f'"{value}"'
    return f"ImagePolicy({field}={written}), or --image-policy {field}={value}"


LEAVE_OR_ACCEPT = "leave it out, or accept it with " + how_to_set("other_modalities", "accept")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _fields(parts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        field, equals, value = (piece.strip() for piece in part.partition("="))
        field = field.replace("-", "_")
        if not equals or field not in ("frame", "max_pixels", "other_modalities"):
            raise InvalidSetting(
                "an image policy is a window's name, then frame=NUMBER, max_pixels=NUMBER or "
                f"other_modalities=accept, separated by commas; {part!r} is none of these"
            )
        if field in found:
            raise InvalidSetting(f"the image policy states {field} twice")
        found[field] = value if field == "other_modalities" else _number(field, value)
    return found


def _number(field: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidSetting(f"{field} is a whole number, not {value!r}") from None
