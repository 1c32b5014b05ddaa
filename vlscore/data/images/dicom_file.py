"""Reading of DICOM files with pydicom, their pixel data still encoded, and what is wrong with them.

pydicom returns an empty data set for a file whose pixel data has no end, and takes the second of
two transfer syntaxes. Here such files are read as dcmtk reads them, or refused with the reason.
"""

import io
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from vlscore.data.images.file_formats import JPEG, PNG, head, is_dicom, opened
from vlscore.data.images.policy import ImagePolicy, how_to_set, hushed
from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset

# Limit in bytes for the elements other than the picture in a deflated data set.
_HEADER_ALLOWANCE = 64 * 1024 * 1024
_META_ALLOWANCE = 64 * 1024
_ITEM, _DELIMITER = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0\0\0\0\0"
_END_OF_CODESTREAM = b"\xff\xd9"
_LONG_LENGTHS = {b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"UC", b"UN", b"UR", b"UT"}
_SYNTAX, _ANOTHER = b"\x02\x00\x10\x00", b"\x02\x00\xfe\x00"


def read_header(stream: BinaryIO, policy: ImagePolicy, name: str, **how: Any) -> "Dataset":
    """Read the data set of a file, its pixel data still encoded.

    Args:
        how: further arguments of `pydicom.dcmread`.
    Raises: UnreadableImage if it would inflate to more than the policy admits, or is cut off; also
        any error of pydicom.
    """
    from pydicom import dcmread  # slow to import, and PNG files need none of it

    bounded = _BoundedStream(stream, policy, name)
    # pydicom accepts any object with these methods as a file.
    dataset = dcmread(cast(BinaryIO, bounded), force=True, **how)
    if how or not bounded.ended_early or "PixelData" in dataset:
        return dataset
    stream.seek(0)
    content = stream.read()
    # A part of the delimiter may be there, or none of it.
    for present in range(len(_DELIMITER) - 1, -1, -1):
        if content.endswith(_DELIMITER[:present]):
            closed = io.BytesIO(content + _DELIMITER[present:])
            dataset = dcmread(cast(BinaryIO, _BoundedStream(closed, policy, name)), force=True)
            if "PixelData" in dataset and _is_whole(dataset.PixelData):
                return dataset
    raise _cut_off(name, len(content))


def _cut_off(name: str, size: int) -> UnreadableImage:
    return UnreadableImage(
        f"{name}: the file is cut off after byte {size}, in the middle of an element; fetch or "
        "export it again"
    )


def _is_whole(encoded: bytes) -> bool:
    """Return True if every fragment of compressed pixel data has its length, and the last its end.

    JPEG, JPEG-LS and JPEG 2000 end with a marker. RLE has none, but must fill the picture, which
    its decoder checks.
    """
    position, fragments = 0, []
    while position < len(encoded):
        if encoded[position : position + 4] != _ITEM or position + 8 > len(encoded):
            return False
        (length,) = struct.unpack_from("<I", encoded, position + 4)
        fragments.append(encoded[position + 8 : position + 8 + length])
        position += 8 + length
    if position > len(encoded) or len(fragments) < 2:
        return False
    # The first item is the table of offsets.
    has_marker = fragments[1].startswith((b"\xff\xd8", b"\xff\x4f", b"\0\0\0\x0cjP"))
    return not has_marker or fragments[-1].rstrip(b"\0").endswith(_END_OF_CODESTREAM)


class _BoundedStream:
    """A DICOM file as pydicom reads it, with what pydicom does not notice itself.

    Its deflated part is measured before pydicom inflates all of it: pydicom calls `read` without a
    size only for data that it will inflate, so the measurement begins at the same byte as pydicom,
    whatever length the header contains. Of several transfer syntaxes in the meta header the first
    one is true; the others get the tag of an element that nobody reads.

    Attributes:
        ended_early: True if the file ended where an element went on.
    """

    def __init__(self, stream: BinaryIO, policy: ImagePolicy, name: str) -> None:
        self._stream, self._name = stream, name
        self._most = 8 * policy.max_pixels + _HEADER_ALLOWANCE
        self.seek, self.tell = stream.seek, stream.tell
        self.ended_early = False
        self._surplus = _surplus_syntaxes(stream)

    def read(self, size: int | None = -1) -> bytes:
        before = self._stream.tell() if self._surplus else 0
        content = self._stream.read(-1 if size is None else size)
        for at in self._surplus:
            start = at - before
            if start >= 0 and start + 4 <= len(content):
                content = content[:start] + _ANOTHER + content[start + 4 :]
        if size is None or size < 0:
            self._measure(content)
        # At the end of the data set pydicom looks for the eight bytes of another element's head.
        elif len(content) < size and (content or size != 8):
            self.ended_early = True
        return content

    def _measure(self, deflated: bytes) -> None:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        inflater.decompress(deflated, self._most)
        if inflater.unconsumed_tail:
            raise UnreadableImage(
                f"{self._name}: inflates to more than {self._most:,} bytes, as a decompression "
                "bomb does; if the image is genuine, raise the limit with "
                + how_to_set("max_pixels", "NUMBER")
            )
        if not inflater.eof:
            raise _cut_off(self._name, self._stream.tell())


def _surplus_syntaxes(stream: BinaryIO) -> list[int]:
    """Return the positions of the transfer syntaxes behind the first one in the meta header."""
    stream.seek(0)
    content = stream.read(_META_ALLOWANCE)
    stream.seek(0)
    position = 132 if content[128:132] == b"DICM" else 0
    found = []
    # The meta header is in Explicit VR Little Endian, whatever follows it.
    while content[position : position + 2] == b"\x02\x00" and position + 12 <= len(content):
        if content[position : position + 4] == _SYNTAX:
            found.append(position)
        if content[position + 4 : position + 6] in _LONG_LENGTHS:
            position += 12 + struct.unpack_from("<I", content, position + 8)[0]
        else:
            position += 8 + struct.unpack_from("<H", content, position + 6)[0]
    return found[1:]


# Implicit little endian, explicit little endian and explicit big endian (PS3.5 section 10).
_UNCOMPRESSED = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")


def is_plain_file(path: str | os.PathLike[str]) -> bool:
    """Return True if a file has a format whose decoders neither crash nor hang on known damage.

    These are PNG, JPEG, and DICOM without compression. True also for a path that is no file, which
    is refused at no cost. Never raises.
    """
    name = str(path)
    try:
        with opened(Path(path)) as stream:
            first = head(stream, name)
            if not is_dicom(first):
                return first.startswith((PNG, JPEG))
            with hushed():
                header = read_header(
                    stream, ImagePolicy(), name, stop_before_pixels=True, specific_tags=[]
                )
            return header.file_meta.TransferSyntaxUID in _UNCOMPRESSED
    except UnreadableImage:
        return True
    except Exception:  # a header is untrusted bytes: pydicom may raise any error
        return False
