"""One radiograph in memory, and where its pixels come from."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.images.window import full_range


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


class Radiograph:
    """A greyscale radiograph, bright where the body is dense.

    Attributes:
        pixels: float32 (height, width) in [0, 1].
        provenance: where the pixels come from.
        name: how messages call it: the file's path, or "array 3".
    """

    def __init__(
        self, pixels: NDArray[np.float32], provenance: Provenance, name: str = "image"
    ) -> None:
        self._pixels: NDArray[np.float32] | None = pixels
        self._levels: NDArray[np.uint8] | None = None
        self.provenance = provenance
        self.name = name

    @classmethod
    def of_levels(
        cls, levels: NDArray[np.uint8], provenance: Provenance, name: str = "image"
    ) -> "Radiograph":
        """A radiograph stored in 8 bits, 0 black and 255 white; levels are (height, width).

        Its float pixels are made when they are first asked for: encoders that take levels do
        without them, which is half of the time of reading a large file.
        """
        radiograph = cls.__new__(cls)
        radiograph._pixels, radiograph._levels = None, levels
        radiograph.provenance, radiograph.name = provenance, name
        return radiograph

    @property
    def pixels(self) -> NDArray[np.float32]:
        """float32 (height, width) in [0, 1]."""
        if self._pixels is None:
            assert self._levels is not None
            self._pixels = full_range(self._levels, 0, 255)
        return self._pixels

    @property
    def shape(self) -> tuple[int, int]:
        values = self.pixels if self._levels is None else self._levels
        height, width = values.shape
        return height, width

    @property
    def is_blank(self) -> bool:
        """Whether every pixel has the same value."""
        values = self.pixels if self._levels is None else self._levels
        return bool(values.min() == values.max())

    def to_uint8(self) -> NDArray[np.uint8]:
        """(height, width) grey levels 0 to 255, rounded; exact for images stored in 8 bits."""
        if self._levels is not None:
            return self._levels.copy()
        levels: NDArray[np.uint8] = np.rint(self.pixels * np.float32(255)).astype(np.uint8)
        return levels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pixels, dtype=dtype, copy=True if copy is None else copy)
