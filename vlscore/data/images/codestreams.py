"""Heads of compressed pictures: what they are and how large, without decoding them.

A decompression bomb may have a small size in the DICOM header and a huge compressed picture; and
files exist whose header names another compression than their picture has.
"""

import struct
from typing import NamedTuple

# Start of frame of every JPEG process; C4, C8 and CC are other markers, F7 is JPEG-LS.
_START_OF_FRAME = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_J2K_START = b"\xff\x4f\xff\x51"


# Kinds of codestreams.
JPEG, JPEG_LOSSLESS, JPEG_LS, JPEG_2000, RLE = (
    "JPEG",
    "JPEG lossless",
    "JPEG-LS",
    "JPEG 2000",
    "RLE",
)
_LOSSLESS_FRAMES = {0xC3, 0xC7, 0xCB, 0xCF}
_MOST_SEGMENTS, _RLE_HEADER = 15, 64


class Codestream(NamedTuple):
    """What a compressed picture states of itself; samples are the numbers of one pixel."""

    kind: str
    rows: int
    columns: int
    samples: int
    bits: int


def codestream(data: bytes) -> Codestream | None:
    """Read the head of a JPEG, JPEG-LS or JPEG 2000 picture; None for other and damaged ones."""
    try:
        if data[:2] != b"\xff\xd8":
            start = data.index(_J2K_START)
            right, bottom, left, top = struct.unpack_from(">IIII", data, start + 8)
            count, depth = struct.unpack_from(">HB", data, start + 40)
            return Codestream(JPEG_2000, bottom - top, right - left, count, (depth & 0x7F) + 1)
        position = 2
        while data[position] == 0xFF:
            marker = data[position + 1]
            if marker in _START_OF_FRAME:
                bits, rows, columns, samples = struct.unpack_from(">BHHB", data, position + 4)
                kind = JPEG_LOSSLESS if marker in _LOSSLESS_FRAMES else JPEG
                return Codestream(JPEG_LS if marker == 0xF7 else kind, rows, columns, samples, bits)
            is_fill = marker == 0xFF
            position += 1 if is_fill else 2 + struct.unpack_from(">H", data, position + 2)[0]
    except (struct.error, IndexError, ValueError):
        pass
    return None


def rle_segments(data: bytes) -> int:
    """Return the number of segments that the head of an RLE frame states (PS3.5 G.5); 0 for others.

    A frame has one for each byte of a pixel.
    """
    if len(data) < _RLE_HEADER:
        return 0
    count, *starts = struct.unpack_from("<16I", data)
    is_rle = 1 <= count <= _MOST_SEGMENTS and starts[0] == _RLE_HEADER and not any(starts[count:])
    return int(count) if is_rle else 0
