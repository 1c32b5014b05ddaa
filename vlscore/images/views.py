"""Which view of the chest an image shows, as far as its file or table says."""

import contextlib
from pathlib import Path
from typing import Any

_LATERAL = {"LL", "RL", "LATERAL", "LLD", "LAT", "LEFT LATERAL", "RIGHT LATERAL"}


def is_lateral(view: str | None) -> bool:
    """Whether a view position names a lateral view; unknown views count as frontal.

    >>> is_lateral("LL"), is_lateral("PA"), is_lateral(None)
    (True, False, False)
    """
    return view is not None and view.strip().upper() in _LATERAL


def stored_view(image: Any) -> str | None:
    """The view position in a DICOM header, read without its pixels; None where there is none."""
    provenance = getattr(image, "provenance", None)
    if provenance is not None:
        return provenance.view
    if not isinstance(image, str | Path):
        return None
    from pydicom import dcmread
    from pydicom.errors import InvalidDicomError

    with contextlib.suppress(InvalidDicomError, OSError, ValueError, AttributeError):
        header = dcmread(image, stop_before_pixels=True, specific_tags=["ViewPosition"])
        return str(header.get("ViewPosition", "") or "") or None
    return None
