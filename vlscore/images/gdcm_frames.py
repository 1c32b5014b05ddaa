"""JPEG lossless and JPEG of 12 bits: GDCM alone decodes them, and is kept at arm's length.

GDCM ends the process it runs in when such a frame is damaged, so it runs in one of its own. Of the
12-bit frames pydicom says that GDCM cannot decode them; it does.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.uid import UID, JPEGExtended12Bit, JPEGLossless, JPEGLosslessSV1

from vlscore.images.dicom_header import bits_stored

_CHILD = Path(__file__).with_name("gdcm_child.py")
# Less than an image may take altogether, so that the message is about the frame.
_TIMEOUT = 90


def needs_gdcm(dataset: Dataset, syntax: UID) -> bool:
    """Whether GDCM is the only decoder for these grey pixels."""
    if int(dataset.get("SamplesPerPixel") or 1) != 1:
        return False
    if syntax == JPEGExtended12Bit:
        return bits_stored(dataset) > 8
    return syntax in (JPEGLossless, JPEGLosslessSV1)


def has_gdcm() -> bool:
    """Whether GDCM is installed."""
    return importlib.util.find_spec("gdcm") is not None


def decode_with_gdcm(frame: bytes, dataset: Dataset, syntax: UID) -> NDArray[Any]:
    """(rows, columns) stored values of one grey frame, sign-extended.

    Raises: ValueError where GDCM cannot decode the frame, however that ends.
    """
    rows, columns = int(dataset.Rows), int(dataset.Columns)
    allocated, signed = int(dataset.BitsAllocated), int(dataset.get("PixelRepresentation") or 0)
    stated = {
        "rows": rows,
        "columns": columns,
        "allocated": allocated,
        "stored": bits_stored(dataset),
        "signed": signed,
        "syntax": str(syntax),
        "seconds": _TIMEOUT,
    }
    try:
        decoded = subprocess.run(
            [sys.executable, "-I", str(_CHILD)],
            input=json.dumps(stated).encode() + b"\n" + frame,
            capture_output=True,
            check=True,
            timeout=_TIMEOUT,
        ).stdout
    except subprocess.SubprocessError:
        raise ValueError("GDCM could not decode the frame") from None
    values = np.frombuffer(decoded, f"<{'i' if signed else 'u'}{allocated // 8}")
    spare = allocated - bits_stored(dataset)
    extended: NDArray[Any] = np.right_shift(np.left_shift(values, spare), spare)
    return extended.reshape(rows, columns)
