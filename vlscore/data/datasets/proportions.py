"""Restore films that were squeezed to a square to the proportions of the original.

In a squeezed film the heart is wider, or the lung longer, than in the patient. If a data set has
the original's rows and columns, the shorter side keeps its pixels and the other is stretched, so
that nothing is lost.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vlscore.core import atomic_write
from vlscore.data.datasets.dataset_base import DAMAGED, DatasetStudy, Film, Omission
from vlscore.errors import UnreadableImage

# A side that was rounded by a pixel does not count as squeezed.
_SAME = 0.01
_MOST_ELONGATED = 4.0


@dataclass
class ProportionCounts:
    """Counts of films by their proportions.

    Attributes:
        restored: films that were squeezed and now are restored.
        right: films that had the right proportions already.
        unknown: films whose original size is not published; they do not change.
    """

    restored: int = 0
    right: int = 0
    unknown: int = 0


def with_proportions(
    study: DatasetStudy, root: Path, out: Path, counts: ProportionCounts
) -> Iterator[DatasetStudy | Omission]:
    """Yield the study with restored copies of its squeezed films, and films that cannot be read.

    Args:
        study: study whose films' paths start from `root`.
        out: folder of the copies, PNG of 8 bits under the films' own names. An existing copy that
            is newer than its film is used again.
        counts: counts to which the films are added.
    """
    films = []
    for film in study.films:
        if film.rows is None or film.columns is None:
            counts.unknown += 1
            films.append(replace(film, path=str(root / film.path)))
            continue
        try:
            films.append(_restored(film, root, out, counts))
        except UnreadableImage:
            yield Omission(study.file, study.row, study.id, "film", DAMAGED, film.path)
    if films or not study.films:
        yield replace(study, films=tuple(films))
    else:
        yield Omission(study.file, study.row, study.id, "study", DAMAGED, "no film can be read")


def restored_size(height: int, width: int, rows: int, columns: int) -> tuple[int, int] | None:
    """Return (height, width) with the proportions of rows and columns; None if no change is needed.

    >>> restored_size(256, 256, 2828, 2320), restored_size(1414, 1160, 2828, 2320)
    ((312, 256), None)
    """
    wanted, present = rows / columns, height / width
    if abs(wanted / present - 1) <= _SAME or max(wanted, 1 / wanted) > _MOST_ELONGATED:
        return None
    if wanted > present:
        return round(width * wanted), width
    return height, round(height / wanted)


def _restored(film: Film, root: Path, out: Path, counts: ProportionCounts) -> Film:
    import cv2

    from vlscore.data.images.policy import ImagePolicy
    from vlscore.data.images.read import read_image

    assert film.rows is not None
    assert film.columns is not None
    source = root / film.path
    copy = (out / film.path).with_suffix(".png")
    if _is_newer(copy, source):
        counts.restored += 1
        return replace(film, path=str(copy))
    pixels = read_image(source, ImagePolicy(other_modalities="accept")).to_uint8()
    height, width = pixels.shape
    size = restored_size(height, width, film.rows, film.columns)
    if size is None:
        counts.right += 1
        return replace(film, path=str(source))
    stretched = cv2.resize(pixels, size[::-1], interpolation=cv2.INTER_CUBIC)
    done, content = cv2.imencode(".png", stretched)
    assert done
    with atomic_write(copy, "wb") as stream:
        stream.write(content.tobytes())
    counts.restored += 1
    return replace(film, path=str(copy))


def _is_newer(copy: Path, source: Path) -> bool:
    try:
        return os.stat(copy).st_mtime_ns > os.stat(source).st_mtime_ns
    except OSError:
        return False
