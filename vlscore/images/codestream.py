"""What a compressed picture says of itself, read without decoding it."""

import struct
from typing import NamedTuple

# Start of frame of every JPEG process; C4, C8 and CC are other markers, F7 is JPEG-LS.
_START_OF_FRAME = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_J2K_START = b"\xff\x4f\xff\x51"
_JP2_START = b"\x00\x00\x00\x0cjP  "


class Stated(NamedTuple):
    """Size of a compressed picture and number of its components, by its own header."""

    height: int
    width: int
    components: int


def codestream_header(data: bytes) -> Stated | None:
    """What a JPEG, JPEG-LS or JPEG 2000 picture states; None where it is none, or damaged."""
    try:
        if data[:2] == b"\xff\xd8":
            return _of_jpeg(data)
        return _of_j2k(data)
    except (struct.error, IndexError):
        return None


def _of_jpeg(data: bytes) -> Stated | None:
    position = 2
    while data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker in _START_OF_FRAME:
            return Stated(*struct.unpack_from(">HHB", data, position + 5))
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    return None


def _of_j2k(data: bytes) -> Stated | None:
    start = _codestream_of_jp2(data) if data.startswith(_JP2_START) else 0
    if not data.startswith(_J2K_START, start):
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", data, start + 8)
    (components,) = struct.unpack_from(">H", data, start + 40)
    return Stated(bottom - top, right - left, components)


def _codestream_of_jp2(data: bytes) -> int:
    """Where the codestream begins in the boxes of a JP2 file (ISO 15444-1, Annex I)."""
    position = 0
    while True:
        length, kind = struct.unpack_from(">I4s", data, position)
        header = 8
        if length == 1:
            (length,) = struct.unpack_from(">Q", data, position + 8)
            header = 16
        if kind == b"jp2c":
            return position + header
        if length < header:
            raise IndexError("a box without an end")
        position += length
