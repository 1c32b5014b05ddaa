"""Decode one frame of a DICOM file's pixel data.

The size of the compressed picture is read first, without decoding, and compared with the DICOM
header: a decompression bomb may have a small size in the header and a huge compressed picture.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.encaps import get_frame
from pydicom.pixels.decoders.base import get_decoder
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


# Fastest first; they return the same values. A damaged frame may make GDCM end the process, which
# then costs the worker that decodes it: it decodes only what nothing else can.
_PLUGINS = ("pylibjpeg", "pillow", "pyjpegls", "pydicom")
_OF_GDCM = (JPEGLossless, JPEGLosslessSV1)


def decode(dataset: Dataset, frame: int, name: str) -> NDArray[Any]:
    """Decode one frame to (rows, columns) grey or (rows, columns, 3) colour, overlays masked.

    Raises: UnreadableImage if the transfer syntax cannot be decoded; also any error that decoders
    raise on damaged data.
    """
    syntax = _transfer_syntax(dataset, name)
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        known = syntax.name if syntax.name != str(syntax) else "of a private or unknown kind"
        raise UnreadableImage(
            f"{name}: transfer syntax {known} cannot be decoded; convert the file to "
            "Explicit VR Little Endian"
        ) from None
    # Raw pixels need no plug-in, which an empty name means.
    plugins = [""]
    if syntax.is_encapsulated:
        _check_codestream(dataset, frame, syntax, name)
        plugins = [each for each in _PLUGINS if each in decoder.available_plugins]
        is_grey = int(dataset.get("SamplesPerPixel") or 1) == 1
        is_deep = syntax == JPEGExtended12Bit and bits_stored(dataset) > 8
        if is_grey and (is_deep or syntax in _OF_GDCM) and "pylibjpeg" not in plugins:
            # pydicom refuses frames of 12 bits for GDCM, which decodes them as lossless ones.
            _set_transfer_syntax(dataset, JPEGLosslessSV1 if is_deep else syntax)
            decoder, plugins = get_decoder(dataset.file_meta.TransferSyntaxUID), ["gdcm"]
    if not decoder.is_available:
        raise UnreadableImage(
            f"{name}: transfer syntax {syntax.name} needs a decoder that is not installed: "
            "pip install 'vlscore[codecs]'"
        )
    values = _by_plugins(decoder, plugins, dataset, frame)
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
    implicit, little = dataset.original_encoding
    # A data set made in memory was never parsed; its byte order is that of most machines.
    explicit = ExplicitVRBigEndian if little is False else ExplicitVRLittleEndian
    return _set_transfer_syntax(dataset, ImplicitVRLittleEndian if implicit else explicit)


def _set_transfer_syntax(dataset: Dataset, syntax: UID) -> UID:
    """Set the transfer syntax; `file_meta` is replaced, because it may belong to a caller."""
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    return syntax


def _check_codestream(dataset: Dataset, frame: int, syntax: UID, name: str) -> None:
    """Raise UnreadableImage unless the size of a compressed frame agrees with the header."""
    encoded = get_frame(dataset.PixelData, frame, number_of_frames=frames(dataset))
    if syntax == RLELossless:
        return  # uncompressed data fills the size of the header exactly
    stated = (dataset.Rows, dataset.Columns, int(dataset.get("SamplesPerPixel") or 1))
    found = codestream_size(encoded)
    if found != stated:
        raise UnreadableImage(
            f"{name}: the compressed picture is damaged: the DICOM header states {stated} rows, "
            f"columns and samples, the picture itself {found or 'none'}; fetch or export the file "
            "again"
        )


def _by_plugins(decoder: Any, plugins: list[str], dataset: Dataset, frame: int) -> NDArray[Any]:
    """Decode with pydicom, and clear the bits above the stored ones (older files' overlays)."""
    bits, high = bits_stored(dataset), dataset.get("HighBit")
    # Stored values may be shifted up in their words; pydicom does not shift them down.
    shift = int(high) + 1 - bits if high is not None and dataset.BitsAllocated > bits else 0
    failure = ""
    for plugin in plugins or [""]:
        try:
            values: NDArray[Any] = decoder.as_array(
                dataset, index=frame, decoding_plugin=plugin, correct_unused_bits=shift <= 0
            )[0]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # panics of plug-ins in Rust are not Exceptions
            # No plug-in reads every file of its syntaxes; the next one may succeed.
            failure = type(error).__name__
            continue
        if shift <= 0:
            return values
        size = values.dtype.itemsize * 8
        # The last shift extends the sign.
        above = max(0, size - bits - shift)
        aligned: NDArray[Any] = np.right_shift(np.left_shift(values, above), size - bits)
        return aligned
    raise ValueError(f"no plug-in decodes the frame ({failure})")
