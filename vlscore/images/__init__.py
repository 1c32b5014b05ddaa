"""Reading radiographs: DICOM, PNG, JPEG, TIFF, arrays."""

from vlscore.images.arrays import too_elongated
from vlscore.images.files import format_name
from vlscore.images.plain import is_plain_file
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Provenance, Radiograph
from vlscore.images.read import as_radiograph, read_image

__all__ = [
    "ImagePolicy",
    "Provenance",
    "Radiograph",
    "as_radiograph",
    "format_name",
    "is_plain_file",
    "read_image",
    "too_elongated",
]
