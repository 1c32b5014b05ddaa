"""`vlscore perturb`: a data set of targeted changes from any reports."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vlscore.perturb import PerturbedTable

_SHOWN_FAILURES = 10


def _list_kinds(wanted: bool) -> None:
    if not wanted:
        return
    from rich.console import Console
    from rich.table import Table

    from vlscore.perturb import KINDS

    table = Table()
    table.add_column("kind", no_wrap=True)
    for heading in ("a metric should", "error category", "what it does"):
        table.add_column(heading)
    for kind in KINDS.values():
        notice = "notice" if kind.expected == "significant" else "not notice"
        table.add_row(kind.name, notice, kind.category or "", kind.description)
    Console().print(table)
    raise typer.Exit


def perturb(
    reports: Annotated[Path, typer.Argument(help="Table of reports: .jsonl, .csv or .parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the data set.")],
    seed: Annotated[int, typer.Option(help="Decides every choice.")] = 0,
    kinds: Annotated[
        str | None,
        typer.Option(
            help='Separated by commas, as in "remove-pathology,change-location". Default: all.',
            show_default=False,
        ),
    ] = None,
    per_report: Annotated[
        int, typer.Option(min=1, help="Most changes of each kind from one report.")
    ] = 1,
    standard_normal: Annotated[
        Path | None,
        typer.Option(
            help="Text file with the report that stands for normal ones. Default: made from the "
            "table's own most common normal sentences.",
            show_default=False,
        ),
    ] = None,
    id_column: Annotated[str, typer.Option(help="Column with the study's id.")] = "id",
    text_column: Annotated[
        str | None,
        typer.Option(
            help="Column with the report. Default: report, text or reference; else findings and "
            "impression.",
            show_default=False,
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option(help="Exit with status 0 even if some rows could not be used.")
    ] = False,
    list_kinds: Annotated[
        bool,
        typer.Option(
            "--list-kinds", callback=_list_kinds, is_eager=True, help="Print the kinds and exit."
        ),
    ] = False,
) -> None:
    """Make changed copies of reports, each with one targeted change, to test metrics with.

    Writes perturbations.jsonl (one change a line: original, perturbed, edits, kind, expected
    effect, error category, rule), skipped.jsonl (why a report allows no change of a kind) and
    run.json. The same table and seed give the same bytes.

    Example: vlscore perturb test.jsonl --out perturbed
    """
    from vlscore.cli.progress import row_progress
    from vlscore.perturb import perturb_table
    from vlscore.studies import count_rows

    with row_progress(count_rows(reports), "perturbing") as on_progress:
        result = perturb_table(
            reports,
            out,
            _names(kinds),
            seed,
            per_report=per_report,
            standard_normal=_read(standard_normal),
            id_column=id_column,
            text_column=text_column,
            on_progress=on_progress,
        )
    _print(result)
    if result.bad_rows and not keep_going:
        raise typer.Exit(1)


def _names(kinds: str | None) -> list[str] | None:
    if kinds is None:
        return None
    return [name.strip() for name in kinds.split(",") if name.strip()]


def _read(path: Path | None) -> str | None:
    from vlscore.errors import InvalidSetting

    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path}: cannot be read as text: {error}") from None
    if not text:
        raise InvalidSetting(f"{path}: holds no report")
    return text


def _print(result: "PerturbedTable") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("kind", "changes", title=f"{result.reports} reports")
    for kind, count in result.counts.items():
        table.add_row(kind, str(count))
    table.add_row("all", str(sum(result.counts.values())), style="bold")
    Console().print(table)
    if result.standard_normal is not None:
        typer.echo(f"standard normal report: {result.standard_normal}")
    typer.echo(f"wrote {result.out}")
    if result.bad_rows:
        typer.secho(f"{len(result.bad_rows)} rows could not be used:", fg="red", err=True)
        for bad in result.bad_rows[:_SHOWN_FAILURES]:
            typer.echo(f"  row {bad.row} ({bad.id}): {bad.reason}", err=True)
        typer.echo(f"all: {result.out / 'skipped.jsonl'}", err=True)
