"""From a file, an array or a picture in memory to a radiograph."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import radiograph_from_array
from vlscore.images.dicom import is_dicom, read_dicom
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Radiograph
from vlscore.images.raster import radiograph_from_pil, read_raster


def read_image(path: str | Path, policy: ImagePolicy | None = None) -> Radiograph:
    """Read a radiograph from a DICOM, PNG, JPEG or TIFF file, told apart by content.

    Args:
        path: the file.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Returns: a Radiograph; its pixels are float32 (height, width) in [0, 1].
    Raises: UnreadableImage naming the file and the reason.
    """
    policy = policy or ImagePolicy()
    path = Path(path)
    head = _head(path)
    # Decoders warn about damaged headers and may quote their values; nothing of a header may
    # reach a log.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_dicom(head):
            return read_dicom(path, policy)
        return read_raster(path, policy)


def as_radiograph(image: Any, policy: ImagePolicy | None = None) -> Radiograph:
    """A radiograph from a path, PIL image, array, tensor, or from a Radiograph as it is.

    Raises: UnreadableImage naming what was given and the reason.
    """
    policy = policy or ImagePolicy()
    if isinstance(image, Radiograph):
        return image
    if isinstance(image, str | Path):
        return read_image(image, policy)
    kind = type(image)
    if kind.__module__.startswith("PIL."):
        return radiograph_from_pil(image, policy, name="PIL image")
    if hasattr(image, "detach") and hasattr(image, "cpu"):
        return radiograph_from_array(image.detach().cpu().numpy(), policy, name="tensor")
    if isinstance(image, np.ndarray):
        return radiograph_from_array(image, policy, name="array")
    raise UnreadableImage(
        f"a {kind.__name__} is no image: give a path, a PIL image, an array or a tensor"
    )


def _head(path: Path) -> bytes:
    """The first bytes of a file; raises UnreadableImage where there are none."""
    if path.is_dir():
        raise UnreadableImage(f"{path}: is a folder; give the image file in it")
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except FileNotFoundError:
        raise UnreadableImage(
            f"{path}: no such file; check the path and the image root it is relative to"
        ) from None
    except OSError as error:
        raise UnreadableImage(f"{path}: cannot be opened ({error.strerror})") from None
    if not head:
        raise UnreadableImage(f"{path}: the file is empty")
    return head
