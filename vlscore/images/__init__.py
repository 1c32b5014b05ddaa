"""Reading radiographs: DICOM, PNG, JPEG, TIFF, arrays."""

from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Provenance, Radiograph

__all__ = ["ImagePolicy", "Provenance", "Radiograph"]
