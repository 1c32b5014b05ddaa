"""What a compressed picture says of itself, read without decoding it."""

import struct

# Start of frame of every JPEG process; C4, C8 and CC are other markers, F7 is JPEG-LS.
_START_OF_FRAME = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_J2K_START = b"\xff\x4f\xff\x51"


def codestream_size(data: bytes) -> tuple[int, int] | None:
    """(height, width) of a JPEG, JPEG-LS or JPEG 2000 picture; None where it does not say."""
    try:
        if data[:2] == b"\xff\xd8":
            return _jpeg_size(data)
        return _j2k_size(data)
    except (struct.error, IndexError):
        return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return height, width
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    return None


def _j2k_size(data: bytes) -> tuple[int, int] | None:
    start = data.find(_J2K_START, 0, 4096)
    if start < 0:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", data, start + 8)
    return bottom - top, right - left
