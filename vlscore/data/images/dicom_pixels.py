"""Decode one frame of a DICOM file's pixel data.

The size of the compressed picture is read first, without decoding, and compared with the DICOM
header: a decompression bomb may have a small size in the header and a huge compressed picture.
JPEG lossless and JPEG of 12 bits are decoded by GDCM alone. pydicom's plug-in refuses 12-bit frames
for GDCM, which can decode them, so GDCM is called directly.
"""

import importlib.util
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.encaps import get_frame
from pydicom.pixels.decoders.base import Decoder, get_decoder
from pydicom.pixels.processing import apply_color_lut
from pydicom.uid import (
    UID,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEGExtended12Bit,
    JPEGLossless,
    JPEGLosslessSV1,
    RLELossless,
)

from vlscore.data.images.dicom_header import bits_stored, frames, photometric
from vlscore.errors import UnreadableImage

# Start of frame of every JPEG process; C4, C8 and CC are other markers, F7 is JPEG-LS.
_START_OF_FRAME = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_J2K_START = b"\xff\x4f\xff\x51"


def codestream_size(data: bytes) -> tuple[int, int, int] | None:
    """Return (rows, columns, samples) that a JPEG, JPEG-LS or JPEG 2000 picture states itself.

    None for other and damaged ones.
    """
    try:
        if data[:2] != b"\xff\xd8":
            start = data.index(_J2K_START)
            right, bottom, left, top = struct.unpack_from(">IIII", data, start + 8)
            return bottom - top, right - left, *struct.unpack_from(">H", data, start + 40)
        position = 2
        while data[position] == 0xFF:
            marker = data[position + 1]
            if marker in _START_OF_FRAME:
                rows, columns, samples = struct.unpack_from(">HHB", data, position + 5)
                return rows, columns, samples
            is_fill = marker == 0xFF
            position += 1 if is_fill else 2 + struct.unpack_from(">H", data, position + 2)[0]
    except (struct.error, IndexError, ValueError):
        pass
    return None


def _needs_gdcm(dataset: Dataset, syntax: UID) -> bool:
    """Return True if GDCM is the only decoder for these grey pixels."""
    if int(dataset.get("SamplesPerPixel") or 1) != 1:
        return False
    if syntax == JPEGExtended12Bit:
        return bits_stored(dataset) > 8
    return syntax in (JPEGLossless, JPEGLosslessSV1)


def _decode_with_gdcm(frame: bytes, dataset: Dataset, syntax: UID) -> NDArray[Any]:
    """Decode one grey frame to stored values (rows, columns), sign-extended.

    A damaged frame may end this process, which then costs the worker that decodes it.
    """
    import gdcm

    rows, columns = int(dataset.Rows), int(dataset.Columns)
    allocated, stored = int(dataset.BitsAllocated), bits_stored(dataset)
    signed = int(dataset.get("PixelRepresentation") or 0)
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
    image.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.GetTSType(str(syntax))))
    image.SetPixelFormat(gdcm.PixelFormat(1, allocated, stored, stored - 1, signed))
    # GDCM's wrapper returns bytes as text.
    decoded = image.GetBuffer().encode("utf-8", "surrogateescape")
    values = np.frombuffer(decoded, f"<{'i' if signed else 'u'}{allocated // 8}")
    spare = allocated - stored
    extended: NDArray[Any] = np.right_shift(np.left_shift(values, spare), spare)
    return extended.reshape(rows, columns)


# Fastest first; they return the same values. GDCM comes last, and only if nothing else decodes,
# because damaged frames make it end the process.
_PLUGINS = ("pylibjpeg", "pillow", "pyjpegls", "pydicom")


def decode(dataset: Dataset, frame: int, name: str) -> NDArray[Any]:
    """Decode one frame to (rows, columns) grey or (rows, columns, 3) colour, overlays masked.

    Raises: UnreadableImage if the transfer syntax cannot be decoded; also any error that decoders
    raise on damaged data.
    """
    syntax = _transfer_syntax(dataset, name)
    decoder = _decoder(syntax, name)
    encoded = _encoded_frame(dataset, frame, syntax, name) if syntax.is_encapsulated else b""
    if "pylibjpeg" not in _available(decoder) and _needs_gdcm(dataset, syntax):
        if importlib.util.find_spec("gdcm") is None:
            raise UnreadableImage(
                f"{name}: transfer syntax {syntax.name} needs python-gdcm or pylibjpeg-libjpeg"
            )
        return _decode_with_gdcm(encoded, dataset, syntax)
    values = _decoded(decoder, dataset, frame)
    if photometric(dataset) == "PALETTE COLOR":
        values = apply_color_lut(values, dataset)
    return values


def _transfer_syntax(dataset: Dataset, name: str) -> UID:
    meta = getattr(dataset, "file_meta", None)
    if meta is not None and meta.get("TransferSyntaxUID"):
        return UID(meta.TransferSyntaxUID)
    if dataset["PixelData"].is_undefined_length:
        raise UnreadableImage(
            f"{name}: the pixel data is compressed, but the DICOM header states no transfer "
            "syntax; write the file anew with one"
        )
    syntax = _syntax_as_parsed(dataset)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    return syntax


def _syntax_as_parsed(dataset: Dataset) -> UID:
    implicit, little = dataset.original_encoding
    if implicit:
        return ImplicitVRLittleEndian
    # A data set made in memory was never parsed; its byte order is that of most machines.
    return ExplicitVRBigEndian if little is False else ExplicitVRLittleEndian


def _decoder(syntax: UID, name: str) -> Decoder:
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        known = syntax.name if syntax.name != str(syntax) else "of a private or unknown kind"
        raise UnreadableImage(
            f"{name}: transfer syntax {known} cannot be decoded; convert the file to "
            "Explicit VR Little Endian"
        ) from None
    if not decoder.is_available:
        raise UnreadableImage(
            f"{name}: transfer syntax {syntax.name} needs one of: "
            f"{'; '.join(decoder.missing_dependencies)}"
        )
    return decoder


def _encoded_frame(dataset: Dataset, frame: int, syntax: UID, name: str) -> bytes:
    """Return the compressed frame if its size agrees with the header."""
    encoded = get_frame(dataset.PixelData, frame, number_of_frames=frames(dataset))
    if syntax == RLELossless:
        return encoded  # uncompressed data fills the size of the header exactly
    stated = (dataset.Rows, dataset.Columns, int(dataset.get("SamplesPerPixel") or 1))
    found = codestream_size(encoded)
    if found != stated:
        raise UnreadableImage(
            f"{name}: the compressed picture is damaged: the DICOM header states {stated} rows, "
            f"columns and samples, the picture itself {found or 'none'}; fetch or export the file "
            "again"
        )
    return encoded


def _decoded(decoder: Decoder, dataset: Dataset, frame: int) -> NDArray[Any]:
    """Decode with pydicom, which clears the bits above the stored ones (older files' overlays)."""
    shifted = _shift(dataset) > 0
    # Raw pixels need no plug-in, which an empty name means.
    plugins = [plugin for plugin in _PLUGINS if plugin in _available(decoder)] or [""]
    for plugin in plugins:
        try:
            values, _ = decoder.as_array(
                dataset,
                index=frame,
                decoding_plugin=plugin,
                correct_unused_bits=not shifted,  # type: ignore[arg-type]  # pydicom's annotation
            )
            return _aligned(values, dataset) if shifted else values
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # panics of plug-ins in Rust are not Exceptions
            # No plug-in reads every file of its syntaxes; the next one may succeed.
            failure = type(error).__name__
    raise ValueError(f"no plug-in decodes the frame ({failure})")


def _available(decoder: Decoder) -> tuple[str, ...]:
    return decoder.available_plugins if decoder.UID.is_encapsulated else ()


def _shift(dataset: Dataset) -> int:
    """Return by how many bits stored values are shifted up in their words; 0 in modern files."""
    bits = bits_stored(dataset)
    high = dataset.get("HighBit")
    return int(high) + 1 - bits if high is not None and dataset.BitsAllocated > bits else 0


def _aligned(values: NDArray[Any], dataset: Dataset) -> NDArray[Any]:
    """Shift the stored bits down to bit 0, extend the sign, and clear all others."""
    size, bits = values.dtype.itemsize * 8, bits_stored(dataset)
    above = max(0, size - bits - _shift(dataset))
    aligned: NDArray[Any] = np.right_shift(np.left_shift(values, above), size - bits)
    return aligned
