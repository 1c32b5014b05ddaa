"""From a radiograph to the pixels that an encoder takes.

Nothing here imports PyTorch: a process that decodes images starts in a fraction of its time.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from numpy.typing import NDArray

from vlscore._signature import stable_class
from vlscore.errors import InvalidSetting, UnreadableImage, VLScoreError
from vlscore.images import ImagePolicy, Radiograph, as_radiograph

if TYPE_CHECKING:
    from torch import Tensor

Pixels = TypeVar("Pixels")

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class ImagePipeline(ABC):
    """Turns one radiograph into the pixels one encoder takes.

    Small and picklable: it travels to worker processes, the model does not.

    Attributes:
        stored_type: of the numbers that `load_stored` gives, which are what is kept on disk: the
            float32 pixels themselves, or uint8 levels of which `from_stored` makes the same pixels;
            see `LevelsPipeline`.
        cache_version: tells this code's pixels from those of its other editions. Pipelines outside
            vlscore state one, and change it with their code, so that pixels may be kept on disk.
    """

    stored_type: ClassVar[Literal["uint8", "float32"]] = "float32"
    cache_version: ClassVar[str | None] = None

    @abstractmethod
    def __call__(self, radiograph: Radiograph) -> "Tensor":
        """One radiograph -> float32 (channels, height, width), on the CPU."""

    def as_authors(self, path: Path) -> "Tensor":
        """The same from a file, read exactly as the authors' code reads it.

        Raises InvalidSetting where the authors' reader is not reproduced.
        """
        raise InvalidSetting(
            f"{type(self).__name__} does not reproduce its authors' file reader; "
            'use the default image policy instead of "authors"'
        )

    def load(self, image: Any, policy: ImagePolicy) -> "Tensor":
        """Pixels from anything `as_radiograph` takes, under `policy`."""
        if policy.as_authors:
            return reading_as_authors(self.as_authors, image)
        return self(as_radiograph(image, policy))

    def load_stored(self, image: Any, policy: ImagePolicy) -> NDArray[Any]:
        """What decoding ends with: (channels, height, width), float32 pixels or uint8 levels."""
        pixels: NDArray[Any] = self.load(image, policy).detach().numpy()
        return pixels

    def from_stored(self, stored: "Tensor") -> "Tensor":
        """What `load_stored` gave of n images (n, ...) -> their pixels, on the same device."""
        return stored

    def identity(self) -> str:
        """What tells its pixels from those of other pipelines: its class and settings."""
        settings = [f"{name}={value!r}" for name, value in sorted(vars(self).items())]
        return _ADDRESS.sub("", f"{stable_class(type(self))}({', '.join(settings)})")


def reading_as_authors(read: Callable[[Path], Pixels], image: Any) -> Pixels:
    """What a reader of the authors' makes of a file.

    Raises: InvalidSetting where the image is no path; UnreadableImage.
    """
    if not isinstance(image, str | Path):
        raise InvalidSetting(
            'the image policy "authors" reads files itself: give a path, '
            f"not a {type(image).__name__}"
        )
    path = Path(image)
    try:
        return read(path)
    except (VLScoreError, MemoryError):
        raise
    except Exception as error:  # the readers raise any type on a damaged or enormous picture
        # Only the type: a reader's own words may quote the header, which names its patient.
        raise UnreadableImage(
            f"{path}: the encoder's authors' code cannot use this file ({type(error).__name__}); "
            "use the default image policy"
        ) from None
