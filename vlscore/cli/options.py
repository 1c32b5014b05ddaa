"""Options that several commands share, so that they read the same everywhere.

The same setting has the same name in every command; a group of options has one heading.

Options of commands that read a rated set, so that they read the same in each.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.output import say_of_precision
from vlscore.core import usable_cores
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.data import ColumnNames
    from vlscore.embedding import StudyEmbedder
    from vlscore.evaluation import RatingColumns
    from vlscore.metrics import Scorer


TABLE, ENCODER, READING, OUTPUT = "Table", "Encoder", "Images and reports", "Results"

TABLE_HELP = "Table: .jsonl, .json, .csv, .tsv or .parquet."

ImageRootOption = Annotated[
    Path | None,
    typer.Option(
        "--image-root",
        metavar="FOLDER",
        help="Folder that image paths start from. Default: the table's folder.",
        rich_help_panel=TABLE,
    ),
]


def _column(role: str, help: str) -> Any:
    return typer.Option(f"--{role}-column", metavar="NAME", help=help, rich_help_panel=TABLE)


IdColumnOption = Annotated[str, _column("id", "Column with the study's id.")]
ImageColumnOption = Annotated[str, _column("image", "Column with the image path or paths.")]
ReferenceColumnOption = Annotated[str, _column("reference", "Column with the reference report.")]
CandidateColumnOption = Annotated[str, _column("candidate", "Column with the generated report.")]
ViewColumnOption = Annotated[
    str, _column("view", "Column with the view of each image, where there is one.")
]

IndexEncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        metavar="NAME",
        help="Encoder, which must be the one that the index was built with. Default: that one, by "
        "the name in the index; VLSCORE_ENCODER is not looked at.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
EncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        envvar="VLSCORE_ENCODER",
        show_envvar=False,
        metavar="NAME",
        help="Encoder; `vlscore encoders` lists them. A class of your own is written "
        "package.module:Class. Default: VLSCORE_ENCODER, else the bundled demonstration encoder.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="PATH",
        help="Checkpoint file or folder of the encoder.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer",
        metavar="PATH",
        help="Folder or vocabulary file of the encoder's tokenizer.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
ConstantOption = Annotated[
    float | None,
    typer.Option(
        "--C",
        metavar="NUMBER",
        help="Area that scores 0 under vlscore. Default: the encoder's.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="cpu, cuda, cuda:1. Default: a GPU if there is one.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="fp32; bf16, where the hardware has units for it; fp16, on GPUs.",
        rich_help_panel=ENCODER,
    ),
]
CompileOption = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Run the encoder under torch.compile: a minute or more to begin with, then faster "
        "on some machines. Signatures name it.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
BatchSizeOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        min=1,
        metavar="N",
        help="Images in one forward pass. Default: 16 on a CPU, by its memory on a GPU.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
NoCacheOption = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Compute everything anew, and keep nothing for later runs. Otherwise pixels and "
        "embeddings are kept; `vlscore cache info` says where.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=0,
        metavar="N",
        help="Processes that decode images; 0 for none. Default: one a core, at most 16.",
        show_default=False,
        rich_help_panel=ENCODER,
    ),
]
ImagePolicyOption = Annotated[
    str,
    typer.Option(
        "--image-policy",
        "--window",
        metavar="POLICY",
        help="How stored values become grey levels: auto, header, minmax, percentile, full; or "
        "authors, to read files as the encoder's authors do. Further settings behind commas, as "
        "in auto,other_modalities=accept.",
        rich_help_panel=READING,
    ),
]
ViewsOption = Annotated[
    str,
    typer.Option(
        "--views",
        metavar="POLICY",
        help="Images of one study: first-frontal, mean, frontal+lateral.",
        rich_help_panel=READING,
    ),
]
SectionOption = Annotated[
    str,
    typer.Option(
        "--section",
        metavar="NAME",
        help="What of a report counts: all, findings, impression, findings+impression, auto.",
        rich_help_panel=READING,
    ),
]
ReferenceSectionOption = Annotated[
    str | None,
    typer.Option(
        "--reference-section",
        metavar="NAME",
        help="The same for references alone.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
CandidateSectionOption = Annotated[
    str | None,
    typer.Option(
        "--candidate-section",
        metavar="NAME",
        help="The same for generated reports alone, which mostly have no headings.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Folder for the results.", rich_help_panel=OUTPUT
    ),
]
FigureOption = Annotated[
    str | None,
    typer.Option(
        "--figure",
        metavar="NAME",
        help="Draw the numbers with their intervals, too: png, svg or pdf. Needs 'vlscore[plots]'.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
OverwriteOption = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Compute anew; earlier results are replaced when the new ones are complete.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="COLUMNS",
        help="Columns of the table that the scores shall have, too, with commas between them.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMNS",
        help="Columns of the table, such as view or sex: the numbers of each of their values, too.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
PatientColumnOption = Annotated[
    str | None,
    typer.Option(
        "--patient-column",
        metavar="NAME",
        help="Column that says whose study a row is: intervals and tests then resample patients.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Exit with status 0 even if some rows could not be used.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help="Of tables: parquet or csv.", rich_help_panel=OUTPUT
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No progress, and no tables.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the results as json, and nothing else on standard output.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]


def names_in(given: list[str] | None) -> tuple[str, ...]:
    """Names of an option that takes several, with commas or given again."""
    names = (name.strip() for each in given or () for name in each.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def column_names(**names: str) -> "ColumnNames":
    """ColumnNames whose messages name this command's options."""
    from vlscore.data import ColumnNames

    return ColumnNames.of_options(**names)


def text_policy(section: str, reference: str | None = None, candidate: str | None = None) -> Any:
    """A TextPolicy from the three options of sections."""
    from vlscore.data import TextPolicy

    return TextPolicy(section, candidate_section=candidate, reference_section=reference)


def worker_count(workers: int | None, sharing: int = 1) -> int:
    """Processes that decode: as asked for, else one for each usable core, at most 16.

    Args: sharing: processes of the run that share this machine's cores.
    """
    return min(max(usable_cores() // sharing, 1), 16) if workers is None else workers


def make_embedder(
    encoder: str | None, weights: Path | None, tokenizer: Path | None, **options: Any
) -> "StudyEmbedder":
    """A StudyEmbedder from parsed options; see `say_of_encoder` for its warning."""
    from vlscore.embedding import StudyEmbedder

    with _warnings_kept():
        embedder = StudyEmbedder(encoder, **_paths(weights, tokenizer), **options)
    say_of_precision(embedder)
    return embedder


def make_scorer(
    encoder: str | None,
    weights: Path | None,
    tokenizer: Path | None,
    quiet: bool = False,
    **options: Any,
) -> "Scorer":
    """A Scorer from parsed options; see `say_of_encoder` for its warning.

    Args: quiet: say nothing of a precision that is no gain.
    """
    from vlscore.metrics import Scorer

    with _warnings_kept():
        scorer = Scorer(encoder, **_paths(weights, tokenizer), **options)
    if not quiet:
        say_of_precision(scorer.embedder)
    return scorer


def _paths(weights: Path | None, tokenizer: Path | None) -> dict[str, Any]:
    given = {"weights": weights, "tokenizer": tokenizer}
    return {name: None if value is None else str(value) for name, value in given.items()}


@contextlib.contextmanager
def _warnings_kept() -> Iterator[None]:
    """What a library warns of is said in the shell's words instead, and once."""
    import warnings

    from vlscore.errors import DemonstrationEncoderWarning, SlowPrecisionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        warnings.simplefilter("ignore", SlowPrecisionWarning)
        yield


RATINGS_HELP = (
    "Table of ratings, or the folder of a published set: ReXVal, RadEvalX, RadPref; "
    "or of filled-in sheets of vlscore rating-sheets."
)


def _rating_column(name: str, help: str) -> Any:
    return typer.Option(name, metavar="NAME", help=help, rich_help_panel=TABLE)


LayoutOption = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="rexval, radevalx, radpref, refisco-v0, refisco-v1, sheets or table. Default: found "
        "out.",
        show_default=False,
    ),
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=10, metavar="N", help="Resamples of the bootstrap.")
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="Of the bootstrap.")]
StudyColumnOption = Annotated[str, _rating_column("--study-column", "Column with the study.")]
CandidateIdColumnOption = Annotated[
    str, _rating_column("--candidate-id-column", "Column that tells candidates of a study apart.")
]
RaterColumnOption = Annotated[str, _rating_column("--rater-column", "Column with the rater.")]
RatingColumnsOption = Annotated[
    str,
    typer.Option(
        "--rating-columns",
        metavar="NAMES",
        help="Columns of ratings, with commas: one, or one a dimension.",
        rich_help_panel=TABLE,
    ),
]
RaterColumnsOption = Annotated[
    str,
    typer.Option(
        "--rater-columns",
        metavar="NAMES",
        help="Instead, one column of ratings a rater, in a table with one row a candidate.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
CategoryColumnOption = Annotated[
    str, _rating_column("--category-column", "Column with the kind of error that a row counts.")
]
SignificantColumnOption = Annotated[
    str, _rating_column("--significant-column", "Column that says whether these errors matter.")
]


def rating_columns(ratings: str, by_rater: str, **names: str) -> "RatingColumns":
    """RatingColumns from parsed options.

    Args:
        ratings, by_rater: names with commas between them.
        names: the other roles, each one column.
    """
    from vlscore.evaluation import RatingColumns

    return RatingColumns(ratings=names_of(ratings), by_rater=names_of(by_rater), **names)


def named_path(text: str) -> tuple[str, Path]:
    """Name and path of an option such as "ours=reports.jsonl"; raises InvalidSetting otherwise."""
    name, separator, path = text.partition("=")
    if not (separator and name and path):
        raise InvalidSetting(f"write NAME=TABLE, as in ours=ours.jsonl, not {text!r}")
    return name, Path(path)


def names_of(text: str) -> tuple[str, ...]:
    """The names in an option with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
