"""Digests of downloaded files for which nobody states one: the first download is trusted.

Their sha256 is recorded in a file, and every later download of the same name must have it.
"""

import json
from pathlib import Path

from vlscore.core import file_digest, write_json
from vlscore.errors import ChecksumMismatch

RECORD = "digests.json"


def check_digest(path: Path, name: str, folder: Path, *, is_stated: bool = False) -> str:
    """Return the sha256 of a downloaded file, and against what it was checked, in words.

    Args:
        name: the model's name and the file's, under which the digest is recorded.
        folder: where the record is.
        is_stated: whether the file was already compared with a published digest.

    Raises: ChecksumMismatch if another digest was recorded.
    """
    found = file_digest(path)
    if is_stated:
        return f"sha256 {found}, the published file"
    record = folder / RECORD
    known = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    if name not in known:
        write_json(record, known | {name: found})
        return (
            f"sha256 {found}; no digest is published, so it is recorded in {record}, and later "
            "downloads must have it"
        )
    if known[name] != found:
        raise ChecksumMismatch(
            f"{path} has the sha256 {found}, but the first download of {name} had {known[name]}: "
            "it is damaged, or its source now sends another file. If its authors say that they "
            f"changed it, delete {name} from {record}, and fetch it again"
        )
    return f"sha256 {found}, as in the first download"
