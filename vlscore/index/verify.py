"""Reading an index in full: are its files whole, and do they agree with each other?"""

from pathlib import Path

import numpy as np

from vlscore.errors import InvalidIndex
from vlscore.index.parts import KnownTexts
from vlscore.index.store import Index, load_index
from vlscore.search import ApproximateIndex, Corpus, Oracle, recall
from vlscore.search.faiss_file import check_faiss_file

FAISS_ROLES = ("flat", "approximate")

_ROWS = 10_000


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


def check_vectors(index: Index) -> None:
    """Raises InvalidIndex at the first vector that is not finite."""
    for start in range(0, len(index), _ROWS):
        finite = np.isfinite(index.vectors[start : start + _ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            raise InvalidIndex(f"{index.path}: row {row} is not finite; build the index again")


def measure_recall(
    index: Index, sample: int, seed: int, effort: int | None = None
) -> dict[int, float]:
    """recall@1 and @10 of the line search in the approximate index, against exact search.

    Queries are made of the corpus itself: references are sampled rows, images lie half-way between
    the reference and another sampled row.

    Raises: InvalidIndex where the index has no approximate part.
    """
    path = index.file("approximate")
    corpus = Corpus(index.vectors)
    rng = np.random.default_rng(seed)
    references = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    others = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    approximate = ApproximateIndex(path, corpus, effort=effort)
    oracle = Oracle(corpus, C=1.0, approximate=approximate)
    images = (references + others) / 2 + 1e-3 * rng.standard_normal(references.shape)
    references = references + 1e-3 * rng.standard_normal(references.shape)
    return {k: recall(oracle, images, references, k=k) for k in (1, 10)}
