"""`vlscore perturb`: a data set of targeted changes from any reports."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, grouped
from vlscore.cli.options import TABLE_HELP, IdColumnOption, OutOption, TextColumnOption, option
from vlscore.cli.output import echo, exit_if_failed, print_failures, print_notes, terminal_width
from vlscore.cli.progress import stopping
from vlscore.perturb import PerturbationSettings

if TYPE_CHECKING:
    from vlscore.perturb import PerturbedTable


def _list_kinds(wanted: bool) -> None:
    if not wanted:
        return
    import textwrap

    from vlscore.perturb import KINDS

    for kind in KINDS.values():
        notice = "should notice" if kind.expected == "significant" else "should not notice"
        category = f"; {kind.category}" if kind.category else ""
        echo(f"{kind.name}: a metric {notice}{category}")
        echo(textwrap.indent(textwrap.fill(kind.description, terminal_width() - 2), "  "))
    raise typer.Exit


StandardNormalOption = Annotated[
    Path | None,
    option(
        "--standard-normal",
        "Text file with the standard normal report. Default: made from the "
        "table's own most common normal sentences.",
        "FILE",
    ),
]
ListKindsOption = Annotated[
    bool, option("--list-kinds", "Print the kinds and exit.", callback=_list_kinds, is_eager=True)
]


@grouped("as_json")
def perturb(
    *,
    reports: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")],
    out: OutOption,
    settings: PerturbationSettings,
    standard_normal: StandardNormalOption = None,
    id_column: IdColumnOption = "id",
    text_column: TextColumnOption = None,
    running: RunOptions,
    printing: PrintOptions,
    list_kinds: ListKindsOption = False,
) -> None:
    """Make changed copies of reports to test metrics with.

    Writes perturbations.jsonl (one change a line: original, perturbed, edits, kind, expected
    effect, error category, rule), skipped.jsonl (why a report allows no change of a kind) and
    run.json. The same table and seed give the same bytes.

    Example: vlscore perturb test.jsonl --out perturbed
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.perturb import perturb as run

    with (
        stopping(out, "finished reports are"),
        row_progress(count_rows(reports), "perturbing", quiet=printing.quiet) as on_progress,
    ):
        result = run(
            reports,
            out,
            **vars(settings),
            standard_normal=_read(standard_normal),
            id_column=id_column,
            text_column=text_column,
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    print_notes(result.notes)
    if result.unchanged:
        echo(f"{out} holds this data set already; nothing was made", err=True)
    if not printing.quiet:
        _print(result)
    bad = result.failures
    listed = result.folder / "skipped.jsonl"
    print_failures(bad, len(bad), "rows could not be used", "row could not be used", listed)
    exit_if_failed(bad, running.keep_going)


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
    for table in result.tables:
        echo(table.text())
    if (normal := result.record["standard_normal"]) is not None:
        echo(f"standard normal report: {normal}")
    echo(f"wrote {result.folder}")
