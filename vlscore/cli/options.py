"""Options that several commands share.

The same setting has the same name in every command; a group of options has one heading.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.core import usable_cores
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.data import ColumnNames


TABLE, ENCODER, READING, OUTPUT = "Table", "Encoder", "Images and reports", "Results"

TABLE_HELP = "Table: .jsonl, .json, .csv, .tsv or .parquet."
METRICS_HELP = (
    "Metrics with commas between them; repeatable. text, image and bleu are groups; "
    "`vlscore metrics` lists all."
)


def option(
    names: str, help: str, metavar: str | None = None, panel: str | None = None, **more: Any
) -> Any:
    """Return an option of typer.

    Args:
        names: as on the command line, with blanks between them, as in "--out -o".
        metavar: name of its value in the help; None for a flag, or for the type's name.
        panel: heading in the help; None for "Options".
        more: what `typer.Option` takes besides, such as `min`.
    """
    return typer.Option(*names.split(), metavar=metavar, help=help, rich_help_panel=panel, **more)


ImageRootOption = Annotated[
    Path | None,
    option(
        "--image-root",
        "Folder that image paths start from. Default: the table's folder.",
        "FOLDER",
        TABLE,
    ),
]


def _column(role: str, help: str) -> Any:
    return option(f"--{role}-column", help, "NAME", TABLE)


IdColumnOption = Annotated[str, _column("id", "Column with the study's id.")]
ImageColumnOption = Annotated[str, _column("image", "Column with the image path or paths.")]
ReferenceColumnOption = Annotated[str, _column("reference", "Column with the reference report.")]
CandidateColumnOption = Annotated[str, _column("candidate", "Column with the generated report.")]
ViewColumnOption = Annotated[
    str, _column("view", "Column with the view of each image, where there is one.")
]

IndexEncoderOption = Annotated[
    str | None,
    option(
        "--encoder -e",
        "Encoder of the index. Default: the one that the index names, not VLSCORE_ENCODER.",
        "NAME",
        ENCODER,
    ),
]
EncoderOption = Annotated[
    str | None,
    option(
        "--encoder -e",
        "Encoder; `vlscore encoders` lists all. Your own: package.module:Class. Default: "
        "VLSCORE_ENCODER, else the demonstration encoder.",
        "NAME",
        ENCODER,
        envvar="VLSCORE_ENCODER",
        show_envvar=False,
    ),
]
WeightsOption = Annotated[
    Path | None, option("--weights", "Checkpoint file or folder of the encoder.", "PATH", ENCODER)
]
TokenizerOption = Annotated[
    Path | None,
    option("--tokenizer", "Folder or vocabulary file of the encoder's tokenizer.", "PATH", ENCODER),
]
ConstantOption = Annotated[
    float | None,
    option("--C", "Area that scores 0 under vlscore. Default: the encoder's.", "NUMBER", ENCODER),
]
DeviceOption = Annotated[
    str | None,
    option("--device", "cpu, cuda, cuda:1. Default: a GPU if there is one.", "NAME", ENCODER),
]
PrecisionOption = Annotated[
    str,
    option(
        "--precision",
        "fp32; bf16, where the hardware has units for it; fp16, on GPUs.",
        "NAME",
        ENCODER,
    ),
]
BatchSizeOption = Annotated[
    int | None,
    option(
        "--batch-size",
        "Images in one forward pass. Default: 16 on a CPU, by its memory on a GPU.",
        "N",
        ENCODER,
        min=1,
    ),
]
NoCacheOption = Annotated[
    bool,
    option(
        "--no-cache",
        "Neither read nor write the cache of pixels and embeddings; `vlscore cache info` shows it.",
        panel=ENCODER,
    ),
]
WorkersOption = Annotated[
    int | None,
    option(
        "--workers",
        "Processes that decode images; 0 for none. Default: one a core, at most 16.",
        "N",
        ENCODER,
        min=0,
    ),
]
ImagePolicyOption = Annotated[
    str,
    option(
        "--image-policy --window",
        "How stored values become grey levels: auto, header, minmax, percentile, full; or "
        "authors, as the encoder's authors read files. Further settings follow after commas: "
        "auto,other_modalities=accept.",
        "POLICY",
        READING,
    ),
]
ViewsOption = Annotated[
    str,
    option(
        "--views", "Images of one study: first-frontal, mean, frontal+lateral.", "POLICY", READING
    ),
]
SectionOption = Annotated[
    str,
    option(
        "--section",
        "Section of a report that is scored: all, findings, impression, findings+impression, auto.",
        "NAME",
        READING,
    ),
]
ReferenceSectionOption = Annotated[
    str | None, option("--reference-section", "The same for references alone.", "NAME", READING)
]
CandidateSectionOption = Annotated[
    str | None,
    option(
        "--candidate-section",
        "The same for generated reports alone, which mostly have no headings.",
        "NAME",
        READING,
    ),
]
OutOption = Annotated[Path, option("--out -o", "Folder for the results.", "FOLDER", OUTPUT)]
FigureOption = Annotated[
    str | None,
    option(
        "--figure", "Also draw figures: png, svg or pdf. Needs 'vlscore[plots]'.", "NAME", OUTPUT
    ),
]
OptionalOutOption = Annotated[
    Path | None,
    option(
        "--out -o", "Folder for the results. Default: results are only printed.", "FOLDER", OUTPUT
    ),
]
OverwriteOption = Annotated[
    bool,
    option(
        "--overwrite",
        "Compute everything again, and replace earlier results at the end.",
        panel=OUTPUT,
    ),
]
ReportOption = Annotated[
    bool,
    option(
        "--report",
        "Also write report.html, a page that shows the results and the reports.",
        panel=OUTPUT,
    ),
]
KeepOption = Annotated[
    list[str] | None,
    option(
        "--keep",
        "Columns of the table to copy into the scores, with commas between them.",
        "COLUMNS",
        OUTPUT,
    ),
]
ByOption = Annotated[
    list[str] | None,
    option(
        "--by",
        "Columns of the table, such as view or sex: prints results for each value, too.",
        "COLUMNS",
        OUTPUT,
    ),
]
TextColumnOption = Annotated[
    str | None,
    option(
        "--text-column",
        "Column with the report. Default: report, text or reference; else findings and impression.",
        "NAME",
        TABLE,
    ),
]
PatientColumnOption = Annotated[
    str | None,
    option(
        "--patient-column",
        "Column with the patient: intervals and tests then resample patients, not studies.",
        "NAME",
        TABLE,
    ),
]
KeepGoingOption = Annotated[
    bool,
    option("--keep-going", "Exit with status 0 even if some rows could not be used.", panel=OUTPUT),
]
FormatOption = Annotated[
    str, option("--format", "Format of tables: parquet or csv.", "NAME", OUTPUT)
]
QuietOption = Annotated[
    bool, option("--quiet -q", "Print no progress and no tables.", panel=OUTPUT)
]
JsonOption = Annotated[bool, option("--json", "Print the results as json only.", panel=OUTPUT)]


def names_in(given: list[str] | None) -> tuple[str, ...]:
    """Return the names in an option that is repeated, or has commas."""
    names = (name.strip() for each in given or () for name in each.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def column_names(**names: str) -> "ColumnNames":
    """Return the names of a table's columns."""
    from vlscore.data import ColumnNames

    return ColumnNames(**names)


def worker_count(workers: int | None, sharing: int = 1) -> int:
    """Return the processes that decode: `workers`, else one for each usable core, at most 16.

    Args: sharing: processes of the run that share this machine's cores.
    """
    return min(max(usable_cores() // sharing, 1), 16) if workers is None else workers


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings that the command prints in its own words, once."""
    import warnings

    from vlscore.errors import DemonstrationEncoderWarning, SlowPrecisionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        warnings.simplefilter("ignore", SlowPrecisionWarning)
        yield


RATINGS_HELP = (
    "Table of ratings, or the folder of a published set: ReXVal, RadEvalX, RadPref; "
    "or of filled-in sheets of `vlscore ratings make`."
)


LayoutOption = Annotated[
    str | None,
    option(
        "--layout",
        "rexval, radevalx, radpref, refisco-v0, refisco-v1, sheets or table. Default: detected.",
        "NAME",
    ),
]
ResamplesOption = Annotated[int, option("--resamples", "Resamples of the bootstrap.", "N", min=10)]
SeedOption = Annotated[int, option("--seed", "Seed of the bootstrap.", "N")]
RatingColumnsOption = Annotated[
    str,
    option(
        "--rating-columns",
        "Columns of ratings, with commas: one, or one for each dimension.",
        "NAMES",
        TABLE,
    ),
]
RaterColumnsOption = Annotated[
    str,
    option(
        "--rater-columns",
        "Columns of ratings, one for each rater, of a table with one row a candidate.",
        "NAMES",
        TABLE,
    ),
]
RenameRatingsOption = Annotated[
    str,
    option(
        "--rename",
        "Columns that have other names in RATINGS, as study_id=ID,rater=reader: study_id, "
        "candidate_id, rater, category, significant, reference, candidate, image. category= "
        "without a name: RATINGS has no such column.",
        "NAME=COLUMN",
        TABLE,
    ),
]


def named_path(text: str) -> tuple[str, Path]:
    """Return name and path of an option such as "ours=reports.jsonl"; raises InvalidSetting."""
    name, separator, path = text.partition("=")
    if not (separator and name and path):
        raise InvalidSetting(f"write NAME=TABLE, as in ours=ours.jsonl, not {text!r}")
    return name, Path(path)


def names_of(text: str) -> tuple[str, ...]:
    """Return the names in an option with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
