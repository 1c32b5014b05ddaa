"""Films of a page: shrunk copies of images, as data URLs."""

import base64
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.data import Study, read_image
from vlscore.errors import UnreadableImage
from vlscore.pages.page_parts import RunView, worst_first

#: Longest side of a film on a page, in pixels.
SIDE = 320
#: Bytes of all films of a page, so that it stays below 10 MB.
FILM_BYTES = 6_000_000
_QUALITY = 60


def add_films(view: RunView, studies: Sequence[Study | None], most_bytes: int) -> int:
    """Add the films of the listed studies, those at the top of the list first.

    A film that cannot be read, and those for which no space is left, are counted in the notes.

    Args: most_bytes: that all films may have.
    Returns: the bytes of the films.
    """
    if view.cases is None:
        return 0
    used = unread = left_out = 0
    for row in worst_first(view.cases):
        study = studies[row] if row < len(studies) else None
        if study is None or not study.images:
            continue
        if used >= most_bytes:
            left_out += 1
            continue
        urls, failed = _films_of(study.images)
        unread += failed
        used += sum(map(len, urls))
        if urls:
            view.cases.films[row] = urls
    if unread:
        view.notes.append(f"{unread:,} films could not be read.")
    if left_out:
        view.notes.append(
            f"The films of {left_out:,} cases are left out, so that the page stays below 10 MB; "
            f"those at the top of the list have theirs."
        )
    return used


def _films_of(images: Iterable[Any]) -> tuple[list[str], int]:
    """Return the films of one study, and how many could not be read.

    Args: images: files, or arrays of grey levels from 0 to 255.
    """
    found, failed = [], 0
    for image in images:
        try:
            levels = isinstance(image, np.ndarray)
            found.append(film_url(image / 255 if levels else read_image(image).pixels))
        except UnreadableImage:
            failed += 1
    return found, failed


def film_url(pixels: NDArray[np.float32], side: int = SIDE) -> str:
    """Return an image, float (height, width) in [0, 1], as a data URL of a shrunk WebP file."""
    from PIL import Image

    levels = np.clip(np.rint(pixels * 255), 0, 255).astype(np.uint8)
    picture = Image.fromarray(levels)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=_QUALITY, method=4)
    return "data:image/webp;base64," + base64.b64encode(written.getvalue()).decode("ascii")
