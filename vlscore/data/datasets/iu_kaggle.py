"""Indiana University collection as published on Kaggle: two csv tables and PNG films.

Described on https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university:
`indiana_reports.csv` (`uid`, `MeSH`, `Problems`, `image`, `indication`, `comparison`, `findings`,
`impression`), `indiana_projections.csv` (`uid`, `filename`, `projection`: Frontal or Lateral),
films in `images/images_normalized/`.
"""

from collections.abc import Iterator

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    relative_name,
    sections_present,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, table_rows
from vlscore.data.datasets.iu_openi import PROJECTIONS

REPORTS = "indiana_reports.csv"


class IuKaggle(Dataset):
    """Reads the pair of csv tables; see this file's docstring."""

    name = "iu-kaggle"
    description = "Indiana University chest X-rays as Kaggle has them: two csv tables and PNG"
    source = "https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university"
    licence = "CC BY-NC-ND 4.0 (Open-i)"
    needs = "indiana_reports.csv, indiana_projections.csv, images/images_normalized/"
    sections = ("indication", "comparison", "findings", "impression")
    extra = ("uid", "mesh", "problems")
    film_folders = ("", "images/images_normalized", "images_normalized", "images")
    film_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the table of reports."""
        projections = files.needed_table(PROJECTIONS)
        table = files.needed_table(REPORTS)
        films: dict[str, list[Film]] = {}
        where = relative_name(projections, files.folder)
        for number, row in table_rows(projections, ("uid", "filename", "projection")):
            if row is None:
                yield Omission(where, number, None, "film", DAMAGED)
            elif "uid" not in row or "filename" not in row:
                yield Omission(where, number, row.get("uid"), "film", INCOMPLETE)
            else:
                view = row.get("projection", "").strip().lower() or None
                films.setdefault(row["uid"].strip(), []).append(Film(row["filename"], view))
        where = relative_name(table, files.folder)
        for number, row in table_rows(table, ("uid", "findings", "impression")):
            if row is None:
                yield Omission(where, number, None, "study", DAMAGED)
            elif "uid" not in row:
                yield Omission(where, number, None, "study", INCOMPLETE)
            else:
                yield _study(row, films.get(row["uid"].strip(), []), where, number)


def _study(row: dict[str, str], films: list[Film], where: str, number: int) -> DatasetStudy:
    uid = row["uid"].strip()
    return DatasetStudy(
        f"CXR{uid}",
        f"CXR{uid}",
        tuple(films),
        sections_present(row),
        extra={"uid": uid, "mesh": row.get("MeSH", ""), "problems": row.get("Problems", "")},
        file=where,
        row=number,
    )
