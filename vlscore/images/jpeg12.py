"""JPEG Extended of 12 bits, which GDCM decodes but pydicom does not ask it for."""

from typing import Any

import gdcm
import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.uid import JPEGExtended12Bit


def decode_jpeg12(frame: bytes, dataset: Dataset) -> NDArray[Any]:
    """(rows, columns) uint16 of one grey frame. Raises ValueError where GDCM cannot decode it."""
    rows, columns = int(dataset.Rows), int(dataset.Columns)
    fragment = gdcm.Fragment()
    fragment.SetByteStringValue(frame)
    fragments = gdcm.SequenceOfFragments.New()
    fragments.AddFragment(fragment)
    element = gdcm.DataElement(gdcm.Tag(0x7FE0, 0x0010))
    element.SetValue(fragments.__ref__())

    image = gdcm.Image()
    image.SetNumberOfDimensions(2)
    image.SetDimensions((columns, rows, 1))
    image.SetDataElement(element)
    grey = gdcm.PhotometricInterpretation.GetPIType("MONOCHROME2")
    image.SetPhotometricInterpretation(gdcm.PhotometricInterpretation(grey))
    syntax = gdcm.TransferSyntax.GetTSType(str.__str__(JPEGExtended12Bit))
    image.SetTransferSyntax(gdcm.TransferSyntax(syntax))
    image.SetPixelFormat(gdcm.PixelFormat(1, 16, 12, 11, 0))
    # GDCM's wrapper hands bytes out as text.
    decoded = image.GetBuffer()
    if decoded is None:
        raise ValueError("GDCM could not decode the frame")
    values = np.frombuffer(decoded.encode("utf-8", "surrogateescape"), "<u2")
    return values.reshape(rows, columns)
