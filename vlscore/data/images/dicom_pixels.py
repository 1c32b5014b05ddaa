"""Decode one frame of a DICOM file's pixel data.

Kind and size of the compressed picture are read first, without decoding, and compared with the
DICOM header.
"""

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
    JPEG2000TransferSyntaxes,
    JPEGLossless,
    JPEGLosslessSV1,
    JPEGLSTransferSyntaxes,
    JPEGTransferSyntaxes,
    RLELossless,
)

from vlscore.data.images.codestreams import (
    JPEG,
    JPEG_2000,
    JPEG_LOSSLESS,
    JPEG_LS,
    RLE,
    Codestream,
    codestream,
    rle_segments,
)
from vlscore.data.images.dicom_header import bits_stored, frames, photometric, samples
from vlscore.errors import UnreadableImage

_ITEM = b"\xfe\xff\x00\xe0"
_ANY_JPEG = (JPEG, JPEG_LOSSLESS)
# The kinds of pictures that belong to each transfer syntax. The processes of JPEG are not told
# apart, because their decoders read all of them.
_KINDS: dict[str, tuple[str, ...]] = {
    RLELossless: (RLE,),
    **dict.fromkeys(JPEGTransferSyntaxes, _ANY_JPEG),
    **dict.fromkeys(JPEGLSTransferSyntaxes, (JPEG_LS,)),
    **dict.fromkeys(JPEG2000TransferSyntaxes, (JPEG_2000,)),
}

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
    plugins, found = [""], None
    if not syntax.is_encapsulated:
        _check_length(dataset, syntax, name)
    else:
        found = _check_codestream(dataset, frame, syntax, name)
        plugins = [each for each in _PLUGINS if each in decoder.available_plugins]
        # GDCM reads every process of JPEG, whichever of them the transfer syntax names.
        is_hard = found is not None and (
            found.kind == JPEG_LOSSLESS or (found.kind == JPEG and found.bits > 8)
        )
        is_grey = samples(dataset) == 1
        if is_grey and (is_hard or syntax in _OF_GDCM) and "pylibjpeg" not in plugins:
            # pydicom refuses frames of 12 bits for GDCM, which decodes them as lossless ones.
            _set_transfer_syntax(dataset, syntax if syntax in _OF_GDCM else JPEGLosslessSV1)
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


def _check_codestream(dataset: Dataset, frame: int, syntax: UID, name: str) -> Codestream | None:
    """Return the head of a compressed frame, None for RLE.

    Raises: UnreadableImage unless the pixel data is compressed, by the kind of method that the
        transfer syntax names, to a picture of the size in the header.
    """
    content = dataset.PixelData
    if not content.startswith(_ITEM):
        raise UnreadableImage(
            f"{name}: the header's transfer syntax is {syntax.name}, but its pixel data is not "
            "compressed; correct the transfer syntax, or export the file again"
        )
    encoded = get_frame(content, frame, number_of_frames=frames(dataset))
    found = codestream(encoded)
    kind = found.kind if found else RLE if rle_segments(encoded) else None
    wanted = _KINDS.get(syntax, ())
    if kind is not None and wanted and kind not in wanted:
        raise UnreadableImage(
            f"{name}: the header's transfer syntax is {syntax.name}, but its pixel data is {kind}; "
            "correct the transfer syntax, or export the file again"
        )
    if syntax == RLELossless:
        segments, needed = rle_segments(encoded), samples(dataset) * dataset.BitsAllocated // 8
        if segments and segments != needed:
            raise UnreadableImage(
                f"{name}: the RLE picture has {segments} bytes a pixel, and the DICOM header "
                f"states {needed}; correct the header, or export the file again"
            )
        return None  # uncompressed data fills the size of the header exactly
    stated = (dataset.Rows, dataset.Columns, samples(dataset))
    size = found[1:4] if found else None
    if size != stated:
        raise UnreadableImage(
            f"{name}: the compressed picture is damaged: the DICOM header states {stated} rows, "
            f"columns and samples, the picture itself {size or 'none'}; fetch or export the file "
            "again"
        )
    if found is not None and found.bits > dataset.BitsAllocated:
        raise UnreadableImage(
            f"{name}: the compressed picture has {found.bits} bits a number, and the DICOM header "
            f"allocates {dataset.BitsAllocated}; correct the header, or export the file again"
        )
    if found is not None and found.kind == JPEG and found.bits == 8 < dataset.BitsAllocated:
        # Decoders give bytes, whatever the header says.
        for keyword, value in (("BitsAllocated", 8), ("BitsStored", 8), ("HighBit", 7)):
            dataset.add_new(keyword, "US", value)
    return found


def _check_length(dataset: Dataset, syntax: UID, name: str) -> None:
    """Raise UnreadableImage if uncompressed pixel data is compressed, or too short."""
    if dataset["PixelData"].is_undefined_length:
        raise UnreadableImage(
            f"{name}: the header's transfer syntax is {syntax.name}, but its pixel data has no "
            "stated length, as only compressed pixel data has; correct the transfer syntax, or "
            "export the file again"
        )
    numbers = dataset.Rows * dataset.Columns * samples(dataset) * frames(dataset)
    if photometric(dataset) == "YBR_FULL_422":
        numbers = numbers * 2 // 3
    needed, found = -(-numbers * int(dataset.BitsAllocated) // 8), len(dataset.PixelData)
    if found < needed:
        raise UnreadableImage(
            f"{name}: its pixel data is truncated: it has {found} bytes, and the DICOM header "
            f"states a picture of {needed}; fetch or export the file again"
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
