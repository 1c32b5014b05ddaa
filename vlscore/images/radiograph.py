"""One radiograph in memory, and where its pixels come from."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Provenance:
    """What is known of an image's origin. Holds nothing that identifies a patient.

    Attributes:
        format: container: "dicom", "png", "jpeg", "tiff", "array", ...
        bits: stored bits of one pixel, before any window was applied.
        modality: DICOM modality ("CR", "DX", ...), None where it is unknown or no known code.
        view: view position ("PA", "AP", "LL", "LATERAL", ...), None where it is unknown or no
            known code.
        photometric_interpretation: as stored ("MONOCHROME1", "MONOCHROME2", "RGB", ...).
        pixel_spacing: (row, column) in millimetres, None where unknown.
        window: what mapped stored values to [0, 1], in words.
        frame: the frame taken from a multi-frame file, None for a single frame.
    """

    format: str
    bits: int
    modality: str | None = None
    view: str | None = None
    photometric_interpretation: str | None = None
    pixel_spacing: tuple[float, float] | None = None
    window: str = "full range"
    frame: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Radiograph:
    """A greyscale radiograph, bright where the body is dense.

    Attributes:
        pixels: float32 (height, width) in [0, 1].
        provenance: where the pixels come from.
        name: how messages call it: the file's path, or "array 3".
    """

    pixels: NDArray[np.float32]
    provenance: Provenance
    name: str = field(default="image", compare=False)

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.pixels.shape
        return height, width

    def to_uint8(self) -> NDArray[np.uint8]:
        """(height, width) grey levels 0 to 255, rounded; exact for images stored in 8 bits."""
        levels: NDArray[np.uint8] = np.rint(self.pixels * np.float32(255)).astype(np.uint8)
        return levels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pixels, dtype=dtype, copy=True if copy is None else copy)
