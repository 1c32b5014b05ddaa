"""Base class of image pipelines: from a radiograph to the pixels that an encoder takes.

PyTorch is not imported here: a process that decodes images starts in a fraction of its time.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from numpy.typing import NDArray

from vlscore.data import ImagePolicy, Radiograph, as_radiograph
from vlscore.errors import InvalidSetting, UnreadableImage, VLScoreError

if TYPE_CHECKING:
    from torch import Tensor


Pixels = TypeVar("Pixels")

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class ImagePipeline(ABC):
    """Conversion of one radiograph to the pixels that one encoder takes.

    Small and picklable, because it is sent to worker processes without the model.

    Attributes:
        cache_version: version of this code's pixels in the cache. A pipeline outside vlscore sets
            it, and changes it with the code; without it, its pixels are not cached.
    """

    cache_version: ClassVar[str | None] = None

    @abstractmethod
    def __call__(self, radiograph: Radiograph) -> "Tensor":
        """Convert one radiograph to float32 (channels, height, width), on the CPU."""

    def as_authors(self, path: Path) -> "Tensor":
        """Convert a file, read exactly as the authors' code reads it.

        Raises: InvalidSetting if the authors' reader is not reproduced.
        """
        raise InvalidSetting(
            f"{type(self).__name__} does not reproduce its authors' file reader; "
            'use the default image policy instead of "authors"'
        )

    def load(self, image: Any, policy: ImagePolicy) -> "Tensor":
        """Return the pixels of anything that `as_radiograph` takes, under `policy`."""
        if policy.as_authors:
            return reading_as_authors(self.as_authors, image)
        return self(as_radiograph(image, policy))

    def load_stored(self, image: Any, policy: ImagePolicy) -> NDArray[Any]:
        """Decode an image to (channels, height, width), float32 pixels or uint8 levels.

        The levels are those from which `from_stored` makes the same pixels; see `Uint8Pipeline`.
        """
        pixels: NDArray[Any] = self.load(image, policy).detach().numpy()
        return pixels

    def from_stored(self, stored: "Tensor") -> "Tensor":
        """Convert the result of `load_stored` for n images (n, ...) to pixels, on its device."""
        return stored

    def identity(self) -> str:
        """Return the text that identifies its pixels: its class and settings."""
        settings = [f"{name}={value!r}" for name, value in sorted(vars(self).items())]
        return _ADDRESS.sub("", f"{type(self).__name__}({', '.join(settings)})")


def reading_as_authors(read: Callable[[Path], Pixels], image: Any) -> Pixels:
    """Read a file with a reader of the authors.

    Raises: InvalidSetting if the image is no path; UnreadableImage.
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
        # Only the type: a reader's message may quote the header, which names the patient.
        raise UnreadableImage(
            f"{path}: the encoder's authors' code cannot use this file ({type(error).__name__}); "
            "use the default image policy"
        ) from None
