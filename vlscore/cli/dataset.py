"""`vlscore dataset`: a published data set as a table that every command reads."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, grouped
from vlscore.cli.options import OUTPUT, names_of, option
from vlscore.cli.output import echo, print_json, print_notes, print_tables

if TYPE_CHECKING:
    from vlscore.data import DatasetTable
    from vlscore.stats import TextTable


NameArgument = Annotated[
    str | None,
    typer.Argument(
        help="Data set, or package.module:Class. Without it, all names are listed.",
        metavar="[NAME]",
        show_default=False,
    ),
]
FolderArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Folder with its files as they are published, or its single file.",
        metavar="[FOLDER]",
        show_default=False,
    ),
]
OutOption = Annotated[
    Path | None,
    option(
        "--out -o",
        "Table to write: .parquet, .jsonl or .csv. {split} in its name makes one table "
        "for each part, as in iu_{split}.parquet.",
        "TABLE",
        OUTPUT,
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Where the files of a data set are, and which studies are wanted."""

    images: Annotated[
        Path | None,
        option("--images", "Folder of the images, if they are not in FOLDER.", "FOLDER"),
    ] = None
    reports: Annotated[
        Path | None,
        option(
            "--reports",
            "Folder or .zip of the reports, if they are not in FOLDER (MIMIC-CXR).",
            "PATH",
        ),
    ] = None
    split: Annotated[
        str,
        option(
            "--split",
            "Parts of the data set, with commas: train, validate, test. Default: all.",
            "NAMES",
        ),
    ] = ""
    texts_only: Annotated[bool, option("--texts-only", "Include studies without an image.")] = False
    no_check: Annotated[
        bool,
        option(
            "--no-check", "Write the images' paths as published; do not check that the files exist."
        ),
    ] = False
    relative: Annotated[
        bool,
        option(
            "--relative",
            "Write paths from the images' folder, which is later commands' --image-root.",
            panel=OUTPUT,
        ),
    ] = False


@grouped("overwrite", "report")
def dataset(
    *,
    name: NameArgument = None,
    folder: FolderArgument = None,
    out: OutOption = None,
    chosen: DatasetOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Make a table of studies from a published data set.

    NAME.rows.csv lists what is left out, with the reason. The
    exit status is 1 where files are absent or damaged, 0 where the data set itself lacks something.

    Example: vlscore dataset iu-kaggle chest-xrays-indiana-university --out iu.parquet
    """

    if name is None:
        _list_datasets()
        return
    if folder is None or out is None:
        raise typer.BadParameter("give NAME, FOLDER and --out TABLE")

    from vlscore.cli.progress import row_progress
    from vlscore.data import read_dataset

    with row_progress(None, "studies", quiet=printing.is_silent) as on_progress:
        found = read_dataset(
            name,
            folder,
            images=chosen.images,
            reports=chosen.reports,
            split=list(names_of(chosen.split)),
            needs_images=not chosen.texts_only,
            check_files=not chosen.no_check,
            on_progress=on_progress,
        ).write(out, relative=chosen.relative)
    print_notes(found.notes)
    if printing.as_json:
        print_json(found.content())
    elif not printing.quiet:
        print_tables(_tables(found))
        for path in (*found.tables.values(), found.rows_file):
            echo(f"wrote {path}")
    if found.faults and not running.keep_going:
        echo(f"{found.faults} faults of the files: {found.rows_file}", err=True)
        raise typer.Exit(1)


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
