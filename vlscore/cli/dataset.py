"""`vlscore dataset`: a published data set as a table that every command reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vlscore.cli.output import (
    OutputOptions,
    echo,
    print_json,
    print_notes,
    terminal_width,
)
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import Names, options
from vlscore.errors import InvalidSetting, UnknownName

if TYPE_CHECKING:
    from vlscore.data import DatasetTable
    from vlscore.stats import TextTable


def dataset(
    name: str | None = None,
    folder: Path | None = None,
    /,
    *,
    out: Path | None = None,
    images: Path | None = None,
    reports: Path | None = None,
    split: Names = (),
    text_only: bool = False,
    no_check: bool = False,
    relative: bool = False,
    output: Annotated[OutputOptions, options(without=("report",))] = OutputOptions(),
) -> None:
    """Make a table of studies from a published data set.

    NAME.rows.csv lists what is left out, with the reason. The exit status is 1 where files are
    absent or damaged, 0 where the data set itself lacks something.

    Example: vlscore dataset iu-kaggle chest-xrays-indiana-university --out iu.parquet

    Args:
        name: Data set, or package.module:Class. Without it, all names are listed.
        folder: Folder with its files as they are published, or its single file.
        out: Table to write: .parquet, .jsonl or .csv. {split} in its name makes one table for each
            part, as in iu_{split}.parquet.
        images: Folder of the images, if they are not in FOLDER.
        reports: Folder or .zip of the reports, if they are not in FOLDER (MIMIC-CXR).
        split: Parts of the data set, with commas: train, validate, test. Default: all.
        text_only: Include studies without an image.
        no_check: Write the images' paths as published; do not check that the files exist.
        relative: Write paths from the images' folder, which is later commands' --image-root.
    """
    from vlscore.data import find_dataset, read_dataset

    if name is None:
        _list_datasets()
        return
    if folder is None or out is None:
        raise InvalidSetting("give NAME, FOLDER and --out TABLE")
    try:
        find_dataset(name)
    except UnknownName as error:
        if not Path(name).is_dir():
            raise
        raise UnknownName(
            f"{error}. {name} is a folder: `vlscore pair FOLDER --out studies.csv` makes a table "
            "of a folder of images and of reports as text files"
        ) from None
    with row_progress(None, "studies", quiet=output.is_silent) as on_progress:
        found = read_dataset(
            name,
            folder,
            images=images,
            reports=reports,
            split=split,
            needs_images=not text_only,
            check_files=not no_check,
            on_progress=on_progress,
        ).write(out, relative=relative, overwrite=output.overwrite)
    print_notes(found.notes)
    if output.as_json:
        print_json(found.content())
    elif not output.quiet:
        for table in _tables(found):
            echo(table.text(terminal_width()) + "\n")
        for path in (*found.tables.values(), found.rows_file):
            echo(f"wrote {path}")
    if found.faults and not output.keep_going:
        echo(f"{found.faults} faults of the files: {found.rows_file}", err=True)
    if found.faults and not output.keep_going:
        raise SystemExit(1)


def _tables(found: "DatasetTable") -> "list[TextTable]":
    from vlscore.stats import TextTable

    parts = [
        (part, str(studies), str(images))
        for part, (studies, images) in sorted(found.counts.items())
    ]
    tables = [TextTable(found.dataset.name, ("part", "studies", "images"), tuple(parts))]
    if found.omitted:
        rows = [
            (f"{what}: {why}", str(count)) for (what, why), count in found.omitted.most_common()
        ]
        tables.append(TextTable("Left out", ("what and why", "count"), tuple(rows)))
    return tables


def _list_datasets() -> None:
    from vlscore.data import DATASETS, find_dataset

    for known in DATASETS:
        each = find_dataset(known)
        echo(f"{known}: {each.description}\n  needs {each.needs}\n  {each.source}")
