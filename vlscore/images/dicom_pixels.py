"""Decoding one frame of a DICOM file's pixel data."""

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
    RLELossless,
)

from vlscore.errors import UnreadableImage
from vlscore.images.codestream import codestream_header
from vlscore.images.dicom_header import bits_stored, frames, photometric
from vlscore.images.effort import require_few_scans
from vlscore.images.gdcm_frames import decode_with_gdcm, has_gdcm, needs_gdcm

# Fastest first; they return the same values. GDCM comes last, and only where nothing else decodes:
# damaged frames make it end the process.
_PLUGINS = ("pylibjpeg", "pillow", "pyjpegls", "pydicom")


def decode(dataset: Dataset, frame: int, name: str) -> NDArray[Any]:
    """(rows, columns) grey or (rows, columns, 3) colour values of one frame, overlays masked.

    Raises: UnreadableImage where the transfer syntax cannot be decoded; whatever decoders raise on
    damaged data otherwise.
    """
    syntax = _transfer_syntax(dataset, name)
    decoder = _decoder(syntax, name)
    encoded = _encoded_frame(dataset, frame, syntax, name) if syntax.is_encapsulated else b""
    if "pylibjpeg" not in _available(decoder) and needs_gdcm(dataset, syntax):
        if not has_gdcm():
            raise UnreadableImage(
                f"{name}: transfer syntax {syntax.name} needs python-gdcm or pylibjpeg-libjpeg"
            )
        return decode_with_gdcm(encoded, dataset, syntax)
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
    # A data set made in memory was never parsed; its values are those of most machines.
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
    """The compressed frame, where it is of the size that the header states.

    A small header over a huge picture is how a decompression bomb passes the check of the header.
    """
    encoded = get_frame(dataset.PixelData, frame, number_of_frames=frames(dataset))
    if syntax == RLELossless:
        return encoded  # it fills the size of the header and no more
    found = codestream_header(encoded)
    if found is None:
        raise UnreadableImage(
            f"{name}: the compressed picture is damaged or truncated; fetch or export the file "
            "again"
        )
    rows, columns = int(dataset.Rows), int(dataset.Columns)
    samples = int(dataset.get("SamplesPerPixel") or 1)
    if (found.height, found.width) != (rows, columns):
        raise UnreadableImage(
            f"{name}: the DICOM header states {columns} x {rows} pixels, the compressed picture "
            f"{found.width} x {found.height}; the file is damaged"
        )
    if found.components != samples:
        raise UnreadableImage(
            f"{name}: the DICOM header states {samples} samples a pixel, the compressed picture "
            f"{found.components}; the file is damaged"
        )
    require_few_scans(encoded, name)
    return encoded


def _decoded(decoder: Decoder, dataset: Dataset, frame: int) -> NDArray[Any]:
    """pydicom clears bits above those stored (older files keep overlays there)."""
    shifted = _shift(dataset) > 0
    # Raw pixels need no plug-in, which is what an empty name says.
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
        except BaseException as error:  # the panics of plug-ins written in Rust are no Exceptions
            # No plug-in reads every file of its syntaxes: the next one may.
            failure = type(error).__name__
    raise ValueError(f"no plug-in decodes the frame ({failure})")


def _available(decoder: Decoder) -> tuple[str, ...]:
    return decoder.available_plugins if decoder.UID.is_encapsulated else ()


def _shift(dataset: Dataset) -> int:
    """By how many bits stored values are shifted up in their words; 0 for all files of today."""
    bits = bits_stored(dataset)
    high = dataset.get("HighBit")
    return int(high) + 1 - bits if high is not None and dataset.BitsAllocated > bits else 0


def _aligned(values: NDArray[Any], dataset: Dataset) -> NDArray[Any]:
    """Stored bits moved down to bit 0, the sign kept, all others cleared."""
    size, bits = values.dtype.itemsize * 8, bits_stored(dataset)
    above = max(0, size - bits - _shift(dataset))
    aligned: NDArray[Any] = np.right_shift(np.left_shift(values, above), size - bits)
    return aligned
