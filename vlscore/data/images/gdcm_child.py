"""Decode one grey frame with GDCM in a separate process; run by `dicom_pixels`, never imported.

Reads one line of json (rows, columns, allocated, stored, signed, syntax, seconds) and the frame
from standard input, and writes the decoded values to standard output.
"""

import json
import signal
import sys

import gdcm


def main() -> None:
    """Decode standard input to standard output."""
    facts = json.loads(sys.stdin.buffer.readline())
    if hasattr(signal, "alarm"):
        # The parent process may have ended since.
        signal.alarm(facts["seconds"])
    fragment = gdcm.Fragment()
    fragment.SetByteStringValue(sys.stdin.buffer.read())
    fragments = gdcm.SequenceOfFragments.New()
    fragments.AddFragment(fragment)
    element = gdcm.DataElement(gdcm.Tag(0x7FE0, 0x0010))
    element.SetValue(fragments.__ref__())

    image = gdcm.Image()
    image.SetNumberOfDimensions(2)
    image.SetDimensions((facts["columns"], facts["rows"], 1))
    image.SetDataElement(element)
    grey = gdcm.PhotometricInterpretation.GetPIType("MONOCHROME2")
    image.SetPhotometricInterpretation(gdcm.PhotometricInterpretation(grey))
    syntax = gdcm.TransferSyntax.GetTSType(facts["syntax"])
    image.SetTransferSyntax(gdcm.TransferSyntax(syntax))
    allocated, stored = facts["allocated"], facts["stored"]
    image.SetPixelFormat(gdcm.PixelFormat(1, allocated, stored, stored - 1, facts["signed"]))
    # GDCM's wrapper returns bytes as text.
    sys.stdout.buffer.write(image.GetBuffer().encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main()
