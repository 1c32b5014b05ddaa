"""Image pipelines whose picture has 8 bits until its last step.

What is decoded and resized is then small: one byte a pixel travels between processes, to the disk
and to the device, and the last step (scaling, copying to three channels) is done there for a whole
batch.
"""

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from numpy.typing import NDArray

from vlscore.encoders.blocks.pixels import Grey
from vlscore.encoders.pipeline import ImagePipeline, reading_as_authors
from vlscore.images import ImagePolicy, Radiograph, as_radiograph

if TYPE_CHECKING:
    from torch import Tensor


class LevelsPipeline(ImagePipeline):
    """Grey levels at the encoder's size, then pixels made of them."""

    stable_name = "vlscore.encoders.blocks.levels:LevelsPipeline"
    stored_type: ClassVar[Literal["uint8", "float32"]] = "uint8"

    @abstractmethod
    def levels(self, radiograph: Radiograph) -> Grey:
        """One radiograph -> uint8 (channels, height, width), of one size for all."""

    @abstractmethod
    def levels_as_authors(self, path: Path) -> Grey:
        """The same from a file, read exactly as the authors' code reads it."""

    @abstractmethod
    def from_stored(self, stored: "Tensor") -> "Tensor":
        """uint8 (n, channels, height, width) -> float32 pixels (n, ...), on the same device."""

    def __call__(self, radiograph: Radiograph) -> "Tensor":
        return self._pixels(self.levels(radiograph))

    def as_authors(self, path: Path) -> "Tensor":
        return self._pixels(self.levels_as_authors(path))

    def load_stored(self, image: Any, policy: ImagePolicy) -> NDArray[Any]:
        if policy.as_authors:
            return reading_as_authors(self.levels_as_authors, image)
        return self.levels(as_radiograph(image, policy))

    def _pixels(self, levels: Grey) -> "Tensor":
        import torch

        return self.from_stored(torch.from_numpy(levels)[None])[0]
