"""Images that were squeezed to a square, in `studies.jsonl`: a table with the right proportions.

`studies.jsonl` has one object a line: `id`, `images` (a list of objects with `file`, `view`, and
the original image's `rows` and `columns`, null where unknown), `findings`, `impression` and other
sections, `mesh`, `problems`, and `part` or `split` ("training", "development-test", ...). In a
squeezed image the heart is wider, or the lung longer, than in the patient. The shorter side stays
as it is and the other is stretched, so that nothing is lost.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import cv2

from vlscore.core import atomic_write, json_line
from vlscore.data import Dataset, DatasetFiles, ImagePolicy, frame_of, read_dataset, read_image
from vlscore.errors import UnreadableImage

# A side that was rounded by a pixel does not count as squeezed.
_SAME = 0.01
_MOST_ELONGATED = 4.0


class SqueezedImages(Dataset):
    """Reads studies.jsonl; see this file's docstring."""

    name = "squeezed-images"
    description = "Images squeezed to a square, with their original size, in studies.jsonl"
    source, licence = "docs/real.md", "of the collection that the images are of"
    needs = "studies.jsonl and the images that it names"
    sections = ("indication", "history", "technique", "comparison", "findings", "impression")
    extra = ("mesh", "problems")
    has_sizes = True

    def studies(self, files: DatasetFiles) -> Any:
        """Read the studies in the order of the file."""
        rows = []
        with files.needed("studies.jsonl").open(encoding="utf-8") as stream:
            for number, record in enumerate(map(json.loads, stream), start=1):
                row = {
                    name: [image.get(key) for image in record["images"]]
                    for name, key in (("image", "file"), *((k, k) for k in ("view", *_SIZES)))
                }
                texts = {name: record.get(name) for name in (*self.sections, *self.extra)}
                split = record.get("split", record.get("part"))
                facts = {"id": record["id"], "patient": record.get("patient"), "split": split}
                place = {"in_file": "studies.jsonl", "in_row": number}
                rows.append({**facts, **texts, **row, **place})
        return frame_of(rows)


_SIZES = ("rows", "columns")


class Restored(NamedTuple):
    """Lines about what was left out of a table, and numbers of images by their proportions."""

    left_out: list[str]
    stretched: int
    unchanged: int


def write_studies(folder: Path, out: Path, images: Path) -> Restored:
    """Write the studies of a folder as a table whose images have their proportions.

    Args:
        out: the table, .jsonl.
        images: folder of the copies, PNG of 8 bits under the images' own names. An existing copy
            that is newer than its image is used again.
    """
    found = read_dataset(SqueezedImages(), folder)
    left_out = [f"{count} x {what}: {why}" for (what, why), count in found.omitted.items()]
    stretched = unchanged = 0
    lines = []
    for study in found.studies.to_dict("records"):
        kept = []
        for path, view, rows, columns in zip(
            study["image"], study["view"], *(study[name] for name in _SIZES), strict=True
        ):
            try:
                shown = _restored(folder / path, (images / path).with_suffix(".png"), rows, columns)
            except UnreadableImage as error:
                left_out.append(str(error))
                continue
            stretched += shown.is_relative_to(images)
            unchanged += not shown.is_relative_to(images)
            kept.append((os.path.abspath(shown), view, rows, columns))
        if kept:
            columns = zip(*kept, strict=True)
            named = zip(("image", "view", *_SIZES), map(list, columns), strict=True)
            lines.append(json_line({**study, **dict(named)}))
    with atomic_write(out) as stream:
        stream.writelines(lines)
    return Restored(left_out, stretched, unchanged)


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


def _restored(source: Path, copy: Path, rows: int | None, columns: int | None) -> Path:
    """Return the path of the image with its proportions: a copy, or the image itself."""
    if rows is None or columns is None:
        return source
    if copy.exists() and copy.stat().st_mtime_ns > source.stat().st_mtime_ns:
        return copy
    pixels = read_image(source, ImagePolicy(other_modalities="accept")).to_uint8()
    height, width = pixels.shape
    size = restored_size(height, width, rows, columns)
    if size is None:
        return source
    stretched = cv2.resize(pixels, size[::-1], interpolation=cv2.INTER_CUBIC)
    with atomic_write(copy, "wb") as stream:
        stream.write(cv2.imencode(".png", stretched)[1].tobytes())
    return copy
