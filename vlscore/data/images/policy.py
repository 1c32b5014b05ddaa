"""Image policy: how stored pixel values become grey levels, and which images are refused.

`ImagePolicy` names the choices that change a score. `limits` and `full_range` map stored values to
[0, 1].

`known_code` returns a code of a DICOM header only if it is a defined term, because any other value
could be a patient's name in the wrong field, which no message or result may repeat. `hushed`
silences decoders, which warn about damaged headers and quote their values, names among them.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.core import check_settings
from vlscore.errors import InvalidSetting, UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset


# Number of the rules by which files become grey levels. A cache of what was read by older rules is
# not used: raise it whenever a file's pixels or its view change.
READING_RULES = 2


@dataclass(frozen=True)
class ImagePolicy:
    """Choices made when a file or array becomes a radiograph.

    Attributes:
        window: how values map to [0, 1]. "auto" (default): the DICOM header's VOI LUT or window
            if there is one; else the full stored range for 8-bit images and the image's own
            minimum to maximum for deeper ones. "header": as "auto", but a DICOM without a window
            is refused. "minmax": the image's minimum to maximum. "percentile": its 0.5th to
            99.5th percentile. "full": the full stored range.
        frame: which frame of a multi-frame file to take, counted from 0; None refuses such files.
            Files of one frame ignore it.
        max_pixels: larger images are refused as decompression bombs.
        other_modalities: "refuse" (default) images that are evidently no radiograph: by the
            modality of their DICOM header (CT, ultrasound), or because all pixels are equal, in
            files and arrays; or "accept" them.
        as_authors: read files exactly as the encoder's authors' code does, quirks included; all
            other fields then have no effect.
    """

    window: Literal["auto", "header", "minmax", "percentile", "full"] = "auto"
    frame: int | None = None
    max_pixels: int = 100_000_000
    other_modalities: Literal["refuse", "accept"] = "refuse"
    as_authors: bool = False

    def __post_init__(self) -> None:
        check_settings(self, frame=0, max_pixels=1)

    @classmethod
    def named(cls, policy: "ImagePolicy | str | None") -> "ImagePolicy":
        """Read an ImagePolicy from its short text: a window's name or "authors", then fields.

        Raises: InvalidSetting that names the part that is not understood.

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
        if name == "authors" and not rest:
            return cls(as_authors=True)
        if name == "authors":
            raise InvalidSetting(
                f'the image policy "authors" takes no further fields, not {rest[0]!r}: the '
                "authors' code has no such choices"
            )
        found: dict[str, Any] = {}
        for part in rest:
            field, equals, value = (piece.strip() for piece in part.partition("="))
            field = field.replace("-", "_")
            if not equals or field not in ("frame", "max_pixels", "other_modalities"):
                raise InvalidSetting(
                    "an image policy is a window's name, then frame=NUMBER, max_pixels=NUMBER or "
                    f"other_modalities=accept, separated by commas; {part!r} is none of these"
                )
            if field in found:
                raise InvalidSetting(f"the image policy states {field} twice")
            try:
                found[field] = value if field == "other_modalities" else int(value)
            except ValueError:
                raise InvalidSetting(f"{field} is a whole number, not {value!r}") from None
        return cls(**{"window": name, **found})

    def frame_of(self, count: int, noun: str, name: str) -> int:
        """Return which of `count` frames to read.

        Raises: UnreadableImage if the policy must name one, or names one that is absent.
        """
        if count == 1:
            return 0
        if self.frame is None:
            raise UnreadableImage(
                f"{name}: holds {count} {noun}; name one, counted from 0, with "
                + how_to_set("frame", "NUMBER")
            )
        if self.frame >= count:
            raise UnreadableImage(f"{name}: has no frame {self.frame}; it holds {count}")
        return self.frame

    def signature(self) -> str:
        """Return the short text for a score's signature."""
        if self.as_authors:
            return "authors"
        parts: list[str] = [self.window]
        if self.frame is not None:
            parts.append(f"frame={self.frame}")
        if self.other_modalities != "refuse":
            parts.append(f"other_modalities={self.other_modalities}")
        return ",".join(parts)


def how_to_set(field: str, value: str) -> str:
    """Return how a user sets a field, in Python and in a command.

    >>> how_to_set("frame", "NUMBER")
    'ImagePolicy(frame=NUMBER), or --image-policy frame=NUMBER'
    """
    written = value if value == "NUMBER" else f'"{value}"'
    return f"ImagePolicy({field}={written}), or --image-policy {field}={value}"


LEAVE_OR_ACCEPT = "leave it out, or accept it with " + how_to_set("other_modalities", "accept")


def full_range(values: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """Map `low` to 0 and `high` to 1; values beyond are clipped."""
    # float32 holds integers of 24 bits; deeper values lose digits only after the subtraction.
    wide = values.dtype.itemsize > 2 and values.dtype != np.float32
    scaled = np.subtract(values, low, dtype=np.float64 if wide else np.float32)
    np.divide(scaled, high - low, out=scaled)
    pixels: NDArray[np.float32] = np.clip(scaled, 0, 1).astype(np.float32, copy=False)
    return pixels


def limits(
    values: NDArray[Any], window: str, *, stored: tuple[float, float], bits: int
) -> tuple[float, float, str]:
    """Return the values that become 0 and 1 under a policy's window, and how they were found.

    Args:
        values: (height, width) stored values.
        window: "auto", "header", "minmax", "percentile" or "full"; without a header, "auto" and
            "header" take the full range for images of 8 bits and the image's range for deeper ones.
        stored: smallest and largest value the format can hold.
        bits: number of bits of a stored value.

    An image of one value has no range, so it takes the full range.
    """
    if window == "percentile":
        low, high = np.percentile(values, (0.5, 99.5))
        if low < high:
            return float(low), float(high), "0.5th to 99.5th percentile"
    if window in ("minmax", "percentile") or (window in ("auto", "header") and bits > 8):
        low, high = values.min(), values.max()
        if low < high:
            return float(low), float(high), "minimum to maximum"
    return float(stored[0]), float(stored[1]), "full range"


# fmt: off
# Defined terms of Modality, today's and retired (PS3.3 C.7.3.1.1.1); DR and SC are common besides.
MODALITIES = frozenset((
    "ANN", "AR", "AS", "ASMT", "AU", "BDUS", "BI", "BMD", "CD", "CF", "CFM", "CP", "CR", "CS", "CT",
    "CTPROTOCOL", "DD", "DF", "DG", "DM", "DMS", "DOC", "DR", "DS", "DX", "EC", "ECG", "EEG", "EMG",
    "EOG", "EPS", "ES", "FA", "FID", "FS", "GM", "HC", "HD", "IO", "IOL", "IVOCT", "IVUS", "KER",
    "KO", "LEN", "LP", "LS", "M3D", "MA", "MG", "MR", "MS", "NM", "OAM", "OCT", "OP", "OPM", "OPR",
    "OPT", "OPTBSV", "OPTENF", "OPV", "OSS", "OT", "PA", "PLAN", "POS", "PR", "PT", "PX", "REG",
    "RESP", "RF", "RG", "RTDOSE", "RTIMAGE", "RTINTENT", "RTPLAN", "RTRAD", "RTRECORD",
    "RTSEGANN", "RTSTRUCT", "RWV", "SC", "SEG", "SM", "SMR", "SR", "SRF", "ST", "STAIN",
    "TEXTUREMAP", "TG", "US", "VA", "VF", "XA", "XAPROTOCOL", "XC",
))
# Defined terms of View Position (PS3.3 C.8.1.2, C.8.7.5.1.4) and what public archives hold.
VIEWS = frozenset((
    "AP", "AP AXIAL", "AP LLD", "AP LORDOTIC", "AP PORTABLE", "AP RLD", "AP SUPINE", "AP UPRIGHT",
    "FRONTAL", "LAO", "LAT", "LATERAL", "LEFT LATERAL", "LL", "LLD", "LLO", "LORDOTIC", "LPO",
    "PA", "PA LLD", "PA RLD", "PA UPRIGHT", "RAO", "RIGHT LATERAL", "RL", "RLD", "RLO", "RPO",
    "SWIMMERS", "XTABLE LATERAL",
))
# fmt: on


def short_code(dataset: "Dataset", keyword: str) -> str | None:
    """Return a code of the header: at most 16 letters, digits, blanks and underscores.

    It may still be a name, so no message may repeat it.
    """
    value = str(dataset.get(keyword) or "").strip()
    if not value or len(value) > 16:
        return None
    return value if value.replace(" ", "").replace("_", "").isalnum() else None


def known_code(dataset: "Dataset", keyword: str, known: frozenset[str]) -> str | None:
    """Return a code of the header in capital letters if it is a known one, else None."""
    value = " ".join((short_code(dataset, keyword) or "").upper().split())
    return value if value in known else None


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Switch off warnings and the decoders' logging inside the block."""
    # Their child loggers inherit the level.
    loggers = [logging.getLogger(name) for name in ("pydicom", "PIL", "pylibjpeg", "openjpeg")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
