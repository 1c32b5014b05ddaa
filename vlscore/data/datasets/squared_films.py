"""Films that were squeezed to a square, with their original size, in `studies.jsonl`.

One json object a line: `id`, `images` (a list of objects with `file`, `view`, and the original
film's `rows` and `columns`, null where unknown), `findings`, `impression`, `indication`, further
sections, and `part` or `split` ("training", "development-test", ...). Copies of public collections
for training often have this form; docs/datasets.md says how to restore the films' proportions.
"""

import json
from collections.abc import Iterator
from typing import Any

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    SECTIONS,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    relative_name,
    sections_present,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, whole_number
from vlscore.data.rows import read_rows

STUDIES = "studies.jsonl"
_EXTRA = ("mesh", "problems")


class SquaredFilms(Dataset):
    """Reads studies.jsonl with squeezed films; see this file's docstring."""

    name = "squared-films"
    description = "Films squeezed to a square, with their original size, in studies.jsonl"
    source = "docs/datasets.md"
    licence = "of the collection that the films are of"
    needs = "studies.jsonl and the films that it names"
    sections = SECTIONS
    extra = _EXTRA
    has_sizes = True

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the file."""
        path = files.file or files.needed_table(STUDIES)
        where = relative_name(path, files.folder)
        for number, record in read_rows(path):
            if isinstance(record, str):
                yield Omission(where, number, None, "study", DAMAGED)
            else:
                yield _study(record, where, number)


def _study(record: dict[str, Any], where: str, number: int) -> DatasetStudy | Omission:
    id, images = record.get("id"), record.get("images")
    if id is None or not isinstance(images, list):
        return Omission(where, number, None if id is None else str(id), "study", INCOMPLETE)
    films = [_film(each) for each in images]
    if None in films:
        return Omission(where, number, str(id), "study", INCOMPLETE)
    split = record.get("split", record.get("part"))
    patient = record.get("patient")
    return DatasetStudy(
        str(id),
        None if patient is None else str(patient),
        tuple(film for film in films if film is not None),
        sections_present({name: _text(record.get(name)) for name in SECTIONS}),
        split=split_named(_text(split)),
        extra={name: _text(record.get(name)) or "" for name in _EXTRA},
        file=where,
        row=number,
    )


def _film(image: Any) -> Film | None:
    if not isinstance(image, dict) or not isinstance(image.get("file"), str):
        return None
    rows, columns = (whole_number(_text(image.get(name))) for name in ("rows", "columns"))
    return Film(image["file"], _text(image.get("view")), rows, columns)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
