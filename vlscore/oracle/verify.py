"""Reading an index in full: are its files whole, and do they agree with each other?"""

from pathlib import Path

from vlscore.errors import InvalidIndex
from vlscore.oracle.check import check_vectors
from vlscore.oracle.faiss_file import check_faiss_file
from vlscore.oracle.parts import KnownTexts
from vlscore.oracle.store import Index, load_index

FAISS_ROLES = ("flat", "approximate")


def verify_index(path: str | Path) -> Index:
    """Open an index and check all of it.

    Every file against its recorded size and sha256; every vector finite; every text once and with
    an id; the counts of the manifest; the FAISS file's rows against the vectors.

    Raises: InvalidIndex at the first thing that is wrong.
    """
    index = load_index(path)
    check_vectors(index)
    _check_table(index)
    for role in FAISS_ROLES:
        if role in index.manifest.files:
            check_faiss_file(index.file(role), index.vectors)
    return index


def _check_table(index: Index) -> None:
    known = KnownTexts()
    for row, text in enumerate(index.iter_texts()):
        if (earlier := known.get(text)) is not None:
            raise InvalidIndex(f"{index.path}: rows {earlier} and {row} hold the same text")
        known.extend([text])
    ids = index.all_ids()
    for row, owners in enumerate(ids):
        if not owners:
            raise InvalidIndex(f"{index.path}: row {row} belongs to no id")
    manifest = index.manifest
    items, bad = sum(map(len, ids)), len(index.bad_rows())
    if (items, bad) != (manifest.items, manifest.bad_rows):
        raise InvalidIndex(
            f"{index.path}: holds {items} ids and {bad} bad rows, its manifest says "
            f"{manifest.items} and {manifest.bad_rows}"
        )
