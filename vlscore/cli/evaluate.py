"""`vlscore evaluate`: a table of studies."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from vlscore.cli.output import (
    RESULTS,
    OutputOptions,
    echo,
    print_encoder_warning,
    show,
    terminal_width,
)
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    STUDY,
    EncoderOptions,
    Figure,
    Format,
    Metrics,
    Names,
    Out,
    Several,
    TableOptions,
    renamed,
    worker_count,
)
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.evaluation import OnRay
    from vlscore.stats import Result, TextTable


def evaluate(
    *studies: Several[Path],
    out: Out,
    metrics: Metrics = None,
    keep: Names = (),
    by: Names = (),
    part: str | None = None,
    join: bool = False,
    engine: Literal["local", "ray"] = "local",
    embeddings: Path | None = None,
    table: TableOptions = TableOptions(),
    encoding: EncoderOptions = EncoderOptions(),
    format: Format = "parquet",
    figure: Figure = None,
    show_rows: Annotated[NonNegativeInt, Parameter(name="--show", group=RESULTS)] = 0,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Compute metrics for every study of a table.

    The table has one row for each study: id, image (one or several paths), reference, candidate;
    text metrics need no image. If references and candidates are in two files, join them with
    `vlscore pair`. A row without a value is listed in failures.csv with the reason, and the exit
    status is then 1 (0 with --keep-going). If the first hundred rows all fail for the same reason,
    the run ends. With --rename patient=COLUMN, intervals resample patients instead of studies.

    If it was stopped (Ctrl-C), give the same command again; slow results come from the cache.

    Example: vlscore evaluate studies.csv -m bleu-4,rouge-l --out scored

    Args:
        studies: Table: .jsonl, .json, .csv, .tsv or .parquet; with --join, the folders of all
            parts.
        keep: Columns of the table to copy into the scores, with commas between them.
        by: Columns of the table, such as view or sex: also print results for each of their values.
        part: Compute only part K of N of the rows, as in 2/8, for a batch system; --join then joins
            the parts.
        join: Join the folders of all parts, which are named instead of the table.
        engine: Where to compute: local, on this machine; or ray, on the Ray cluster that
            RAY_ADDRESS names, else one on this machine (pip install 'vlscore[ray]').
        embeddings: Folder with embeddings that were computed elsewhere, in the order of the table:
            img_emb.npy (images), gt_emb.npy (references), output_emb.npy (candidates). No encoder
            is loaded; --encoder names the one that made them.
        show_rows: Print the values of the first N rows.
    """
    from vlscore.evaluation import evaluate as run
    from vlscore.evaluation import join_parts
    from vlscore.metrics import Plan

    embedder = None
    if join:
        result = join_parts(studies, out, format=format, overwrite=output.overwrite)
    elif len(studies) != 1:
        raise InvalidSetting("name one table; several folders are for --join")
    else:
        if embeddings is not None and engine == "ray":
            raise InvalidSetting("--embeddings needs no cluster: leave --engine ray out")
        chosen = metrics or ("vlscore",)
        needs = Plan(chosen).needs.roles - ({"image"} if embeddings else set())
        # The table first: a slip in it is found before seconds go into loading an encoder.
        opened = table.opened(studies[0], *STUDY, "patient", needs=needs)
        scorer = encoding.scorer(chosen, vectors=embeddings)
        embedder = scorer.embedder
        with row_progress(opened.count, quiet=output.is_silent, embedder=embedder) as on_progress:
            result = run(
                opened,
                out,
                scorer,
                format=format,
                keep=keep,
                by=by,
                patient=renamed(table.rename, *STUDY, "patient").get("patient"),
                part=part,
                engine=_on_ray(encoding, chosen) if engine == "ray" else None,
                workers=worker_count(encoding.workers),
                overwrite=output.overwrite,
                keep_going=output.keep_going,
                on_progress=on_progress,
            )
    print_encoder_warning(embedder)
    if show_rows and not output.is_silent:
        echo(_first_rows(result, show_rows).text(terminal_width()) + "\n")
    show(result, output, "rows lack a value", "row lacks a value", figure=figure)


def _on_ray(encoding: EncoderOptions, metrics: Names) -> "OnRay":
    """Return the engine that computes on a Ray cluster."""
    from vlscore.evaluation import OnRay

    recipe = partial(encoding.absolute().scorer, metrics, quiet=True)
    return OnRay(recipe, workers=encoding.workers)


def _first_rows(result: "Result", count: int) -> "TextTable":
    """Return the values of the first rows, as far as they are numbers of metrics."""
    from vlscore.stats import text_table

    name = next(name for name in result.record["results"] if name.startswith("scores."))
    rows = result.rows(name).head(count).dropna(axis="columns", how="all")
    flags = [column for column in rows if rows[column].dtype == bool]
    return text_table("", rows.drop(columns=flags), digits=4)
