"""Which files are safe to decode in the process that must not end."""

import os
from pathlib import Path
from typing import BinaryIO

from vlscore.errors import UnreadableImage
from vlscore.images.effort import require_bounded_effort
from vlscore.images.files import JPEG, PNG, head, is_dicom, opened
from vlscore.images.policy import ImagePolicy
from vlscore.images.quiet import hushed

# Implicit little endian, explicit little endian and explicit big endian (PS3.5 section 10).
_UNCOMPRESSED = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")


def is_plain_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is of a format whose decoders no damage is known to crash, or keep busy.

    These are PNG, JPEG of few scans, and DICOM without compression; and what is no file at all,
    which costs nothing to refuse. Never raises.
    """
    name = str(path)
    try:
        with opened(Path(path)) as stream:
            first = head(stream, name)
            return _is_plain(stream, first, name)
    except UnreadableImage:
        return True


def _is_plain(stream: BinaryIO, first: bytes, name: str) -> bool:
    try:
        if is_dicom(first):
            from vlscore.images.dicom_header import read_header

            with hushed():
                header = read_header(
                    stream, ImagePolicy(), name, stop_before_pixels=True, specific_tags=["Rows"]
                )
            return header.file_meta.get("TransferSyntaxUID", "") in _UNCOMPRESSED
        require_bounded_effort(stream, first, name)
        return first.startswith((PNG, JPEG))
    except Exception:  # a header is untrusted bytes: pydicom raises whatever it likes
        return False
