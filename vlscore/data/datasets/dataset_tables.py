"""Data sets by name, and a data set as a table for every command.

A new data set is one file with a subclass of `Dataset` and one line in `_FILES`. `read_dataset`
reads a data set's folder: the studies that can be used, and what is left out, with the reason.
`DatasetTable.write` writes both.
"""

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import (
    Registry,
    atomic_write,
    cells,
    check_derived,
    write_json,
    written_together,
)
from vlscore.data.cells import is_encodable, is_missing
from vlscore.data.datasets.dataset_base import (
    DISAGREEING,
    IMAGE_COLUMNS,
    SPLITS,
    Dataset,
    split_named,
    stripped,
)
from vlscore.data.datasets.dataset_files import (
    ALL_ABSENT,
    DAMAGED,
    DIFFERENT,
    FAULTS,
    IMAGE_ABSENT,
    INCOMPLETE,
    NO_IMAGE,
    NO_TEXT,
    TWICE,
    DatasetFiles,
    Omission,
    frame_of,
    path_inside,
)
from vlscore.data.table_writing import check_format, write_table
from vlscore.errors import InvalidSetting, InvalidTable

if TYPE_CHECKING:
    import pandas as pd

SPLIT_FIELD, _NO_SPLIT = "{split}", "none"

DATASETS: Registry[Any] = Registry(
    "data set",
    group="vlscore.datasets",
    check=check_derived("data set", Dataset, "vlscore.data.Dataset"),
    listed_by="vlscore dataset",
)

_FILES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("mimic-cxr-jpg", "mimic_cxr:MimicCxrJpg", ()),
    ("mimic-cxr", "mimic_cxr:MimicCxr", ()),
    ("iu-openi", "indiana:IuOpenI", ("open-i", "openi")),
    ("iu-kaggle", "indiana:IuKaggle", ()),
    ("r2gen", "r2gen:R2Gen", ("iu-r2gen",)),
    ("chexpert-plus", "chexpert_plus:CheXpertPlus", ()),
    ("padchest", "padchest:PadChest", ()),
    ("rexgradient-160k", "rexgradient:ReXGradient", ("rexgradient",)),
)
for _name, _target, _aliases in _FILES:
    DATASETS.register(f"vlscore.data.datasets.{_target}", _name, aliases=_aliases)


def find_dataset(name: str | Dataset | type[Dataset]) -> Dataset:
    """Return the data set of that name, or the object itself; a class is instantiated.

    Raises: UnknownName with similar names; InvalidSetting for an object that is no data set.

    >>> find_dataset("Open-I").name
    'iu-openi'
    """
    found = DATASETS.find(name)
    made: Dataset = found() if isinstance(found, type) else found
    return made


@dataclass
class DatasetTable:
    """The studies of a data set that can be used, and what is left out.

    Attributes:
        dataset: data set whose layout the files have.
        studies: one row a study, with the columns of its table; the paths of `image` start from
            `image_root`.
        left_out: studies and images that are left out, with the columns of `Omission`.
        image_root: folder of the images.
        from_last_paragraph: number of studies whose findings are the last paragraph of their
            report.
        tables: files that were written, by part; "" for a single table.
        rows_file: table of what is left out, if it was written.
    """

    dataset: Dataset
    studies: "pd.DataFrame"
    left_out: "pd.DataFrame"
    image_root: Path
    from_last_paragraph: int = 0
    tables: dict[str, Path] = field(default_factory=dict)
    rows_file: Path | None = None

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Numbers of studies and images by part; "none" for studies without one."""
        found: dict[str, tuple[int, int]] = {}
        for part, images in zip(self.studies["split"], self.studies["image"], strict=True):
            studies, total = found.get(part or _NO_SPLIT, (0, 0))
            found[part or _NO_SPLIT] = (studies + 1, total + len(images))
        return found

    @property
    def omitted(self) -> Counter[tuple[str, str]]:
        """(what, reason) -> number of the studies and images that are left out."""
        return Counter(zip(self.left_out["what"], self.left_out["reason"], strict=True))

    @property
    def faults(self) -> int:
        """Number of what is left out because of faults of the files."""
        return int(self.left_out["reason"].isin(FAULTS).sum())

    @property
    def notes(self) -> list[str]:
        """Notes for the user besides the numbers, one sentence each."""
        notes = []
        if self.from_last_paragraph:
            notes.append(
                f"{self.from_last_paragraph} reports have no heading of findings or impression; "
                "their last paragraph is taken for the findings"
            )
        if others := sorted(self.counts.keys() - {*SPLITS, _NO_SPLIT}):
            notes.append(
                f"splits other than {', '.join(SPLITS)} have the names that the files use: "
                f"{', '.join(others)}"
            )
        return notes

    def content(self) -> dict[str, Any]:
        """Return the numbers as plain data, for json."""
        return {
            "dataset": self.dataset.name,
            "tables": {part: path.name for part, path in self.tables.items()},
            "studies": {part: studies for part, (studies, _) in self.counts.items()},
            "images": {part: images for part, (_, images) in self.counts.items()},
            "left_out": [
                {"what": what, "reason": reason, "count": count}
                for (what, reason), count in sorted(self.omitted.items())
            ],
            "faults": self.faults,
            "notes": self.notes,
        }

    def write(
        self, out: str | Path, *, relative: bool = False, overwrite: bool = False
    ) -> "DatasetTable":
        """Write the studies as a table, and a second table of what is left out.

        All files appear together; a kill leaves none of them, or what the next call completes.

        Args:
            out: the table, .parquet, .jsonl or .csv; with "{split}" in its name there is a table
                for each part. The same folder gets NAME.rows.csv, which lists what is left out,
                and NAME.json, with the numbers.
            relative: write paths from the images' folder on, which later is `--image-root`;
                default: paths from the table's own folder.
            overwrite: replace files that are there and differ.

        Returns: itself, with `tables` and `rows_file`.
        Raises: InvalidSetting for an unknown format, where two parts would have one file, or where
            a file is there and differs; OutputFailed.
        """
        out = Path(out)
        check_format(out)
        by_part: dict[str, list[dict[str, Any]]] = {}
        folder = Path(os.path.abspath(out.parent))
        for row in self.studies.to_dict("records"):
            if not relative:
                # Commands look for a relative path in the table's folder.
                paths = [Path(os.path.abspath(self.image_root / path)) for path in row["image"]]
                row["image"] = [
                    path.relative_to(folder).as_posix()
                    if path.is_relative_to(folder)
                    else str(path)
                    for path in paths
                ]
            part = (row["split"] or _NO_SPLIT) if SPLIT_FIELD in out.name else ""
            by_part.setdefault(part, []).append(row)
        tables = {
            part: out.with_name(
                out.name.replace(SPLIT_FIELD, "".join(x if x.isalnum() else "-" for x in part))
            )
            for part in by_part
        }
        named: dict[str, str] = {}
        for part, path in tables.items():
            # Disks of some systems do not distinguish "Train" from "train".
            other = named.setdefault(path.name.casefold(), part)
            if other != part:
                raise InvalidSetting(
                    f"the parts {other!r} and {part!r} would have one file, {path}: leave "
                    f"{SPLIT_FIELD} out of the table's name"
                )
        plain = out.name.removesuffix(out.suffix).replace(SPLIT_FIELD, "").strip("-_.")
        stem = plain or self.dataset.name
        lists = f"{stem}.rows.csv", f"{stem}.json"
        self.tables, self.rows_file = tables, out.with_name(lists[0])
        names = [*lists, *(path.name for path in tables.values())]
        with written_together(out.parent, names, overwrite=overwrite) as aside:
            for part, rows in by_part.items():
                columns = self.dataset.columns
                write_table(aside / tables[part].name, rows, columns, IMAGE_COLUMNS[2:])
            with atomic_write(aside / lists[0]) as stream:
                table = csv.writer(stream)
                table.writerow(Omission._fields)
                table.writerows(map(cells, self.left_out.itertuples(index=False)))
            write_json(aside / lists[1], self.content())
        return self


def read_dataset(
    name: str | Dataset | type[Dataset],
    folder: str | Path,
    *,
    images: str | Path | None = None,
    reports: str | Path | None = None,
    split: str | Iterable[str] = (),
    needs_images: bool = True,
    check_files: bool = True,
    on_progress: Callable[[int, int], None] = lambda studies, left_out: None,
) -> DatasetTable:
    """Read a published data set; docs/datasets.md lists the names and the layouts.

    Args:
        name: name of the data set, or a `Dataset`.
        folder: folder of its files, or its single file.
        images: folder that the images' paths start from; default: `folder`.
        reports: folder or .zip of the reports, if they are not in `folder` (MIMIC-CXR).
        split: "train", "validate" or "test", or several of them; default: everything.
        needs_images: leave out studies without an image on the disk; False for work on texts alone.
        check_files: look for every image on the disk; False uses the published paths.
        on_progress: called with (studies, studies and images left out).

    Raises: UnknownName; InvalidSetting for a folder or part that does not exist; InvalidTable if
        the files are not those of the data set, or no study can be used.
    """
    dataset = find_dataset(name)
    if reports is not None and not dataset.takes_reports:
        raise InvalidSetting(
            f"{dataset.name} has its reports in its own files; leave reports (--reports) out"
        )
    splits = {split} if isinstance(split, str) else set(split)
    if unknown := splits - set(SPLITS):
        raise InvalidSetting(
            f"parts of a data set are {', '.join(SPLITS[:-1])} and {SPLITS[-1]}, whatever its own "
            f"files call them; not {', '.join(sorted(unknown))}"
        )
    files = DatasetFiles(folder, images, reports)
    found = dataset.studies(files)
    _check_frame(found, dataset)
    found = found.astype(object).where(found.notna(), None)
    usable: dict[str, dict[str, Any]] = {}
    for done, study in enumerate(found.to_dict("records"), start=1):
        study = _without_blanks(study, dataset)
        if splits and study["split"] not in splits:
            continue
        if _is_usable(study, dataset, files, usable, needs_images, check_files):
            usable[study["id"]] = study
        if done % 100 == 0:
            on_progress(len(usable), len(files.left_out))
    on_progress(len(usable), len(files.left_out))
    table = DatasetTable(
        dataset,
        frame_of(list(usable.values()), dataset.columns),
        frame_of(
            [
                each._asdict()
                for each in sorted(files.left_out, key=lambda each: (each.file, each.row))
            ],
            Omission._fields,
        ),
        files.images,
        sum(bool(study.get("from_last_paragraph")) for study in usable.values()),
    )
    if not usable:
        reasons = "; ".join(
            f"{count} times ({what}): {reason}"
            for (what, reason), count in table.omitted.most_common(3)
        )
        of_part = f" of the part {', '.join(sorted(splits))}" if splits else ""
        raise InvalidTable(
            f"{folder}: no study{of_part} can be used{'. ' if reasons else ''}{reasons}. "
            f"{dataset.name} needs {dataset.needs}"
        )
    return table


def _check_frame(found: Any, dataset: Dataset) -> None:
    """Raise InvalidTable unless the method `studies` of a data set returned what it should."""
    import pandas as pd

    needed = ("id", "image", "in_file", "in_row")
    what = ""
    if not isinstance(found, pd.DataFrame):
        what = f"is a {type(found).__name__}"
    elif len(found) and (lacking := [name for name in needed if name not in found.columns]):
        what = f"has no column {', '.join(lacking)}"
    elif len(found) and not all(isinstance(paths, list) for paths in found["image"]):
        what = "has an image that is no list"
    if what:
        raise InvalidTable(
            f"{dataset.name}: `studies` returns a data frame with the columns {', '.join(needed)}, "
            f"in which image is a list of paths; what it returned {what}"
        )


def _without_blanks(study: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Return the row with ids as text, lists for its images, no blank text, and its part's name."""
    texts = ("split", *dataset.sections, *dataset.extra, "full_report")
    others = {name: value for name, value in study.items() if name not in texts}
    for name in ("id", "patient"):
        others[name] = None if is_missing(study.get(name)) else str(study[name])
    count = len(study["image"])
    lists = {name: study.get(name) or [None] * count for name in IMAGE_COLUMNS}
    blank = dict.fromkeys(texts)
    found = stripped({name: study.get(name) for name in texts})
    return {**others, **lists, **blank, **found, "split": split_named(found.get("split"))}


def _is_usable(
    study: dict[str, Any],
    dataset: Dataset,
    files: DatasetFiles,
    known: Iterable[str],
    needs_images: bool,
    check_files: bool,
) -> bool:
    """Return False, and leave the study out, if it cannot be used; absent images are removed."""
    published = study["image"]
    if (column := _unwritable(study)) is not None:
        detail = f"{column}: not valid UTF-8, or a NUL in a name"
        files.leave_out_row(study, "study", DAMAGED, detail)
        return False
    detail = ""
    if study["id"] is None:
        reason = INCOMPLETE
    elif study["id"] in known:
        reason = TWICE
    elif detail := study.get(DISAGREEING) or "":
        reason = DIFFERENT
    elif not (study.get("findings") or study.get("impression")):
        reason = NO_TEXT
    else:
        paths = [
            files.image(path, dataset.image_folders, dataset.image_suffixes)
            if check_files
            else inside and str(inside)
            for path, inside in zip(published, map(path_inside, published), strict=True)
        ]
        for path, own in zip(published, paths, strict=True):
            if own is None:
                files.leave_out_row(study, "image", IMAGE_ABSENT, path)
        columns = zip(paths, *(study[name] for name in IMAGE_COLUMNS[1:]), strict=True)
        there = [values for values in columns if values[0] is not None]
        study |= {name: [each[k] for each in there] for k, name in enumerate(IMAGE_COLUMNS)}
        if there or not needs_images:
            return True
        reason = ALL_ABSENT if published else NO_IMAGE
    files.leave_out_row(study, "study", reason, detail)
    return False


def _unwritable(study: Mapping[str, Any]) -> str | None:
    """Return the first column that no table can hold, None if there is none."""
    for name, value in study.items():
        texts = [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, str)]
        is_name = name in ("id", "patient", "image")
        if any(not is_encodable(text) or (is_name and "\0" in text) for text in texts):
            return name
    return None
