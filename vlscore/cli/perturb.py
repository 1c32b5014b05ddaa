"""`vlscore perturb`: a data set of targeted changes from any reports."""

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from vlscore.cli.output import (
    OutputOptions,
    echo,
    print_failures,
    print_notes,
    terminal_width,
)
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import Limit, Rename, options, renamed
from vlscore.core import limit_notes, split_names
from vlscore.errors import InvalidSetting
from vlscore.perturb import PerturbationSettings


def perturb(
    reports: Path | None = None,
    /,
    *,
    out: Path | None = None,
    settings: Annotated[PerturbationSettings, options()] = PerturbationSettings(),
    standard_normal: Path | None = None,
    list_kinds: bool = False,
    rename: Rename = (),
    limit: Limit = None,
    output: Annotated[OutputOptions, options(without=("report", "as_json"))] = OutputOptions(),
) -> None:
    """Make changed copies of reports to test metrics with.

    Writes perturbations.jsonl (one change on each line: original, perturbed, edits, kind, expected
    effect, error category, rule), skipped.jsonl (why a report allows no change of a kind) and
    run.json. The same table and seed give the same files, byte for byte.

    Example: vlscore perturb test.jsonl --out perturbed

    Args:
        reports: Table: .jsonl, .json, .csv, .tsv or .parquet.
        out: Folder for the results.
        standard_normal: Text file with the standard normal report. Default: made of the most common
            normal sentences of the table.
        list_kinds: Print the kinds and exit.
    """
    from vlscore.data import count_rows
    from vlscore.perturb import perturb as run

    if list_kinds:
        _list_kinds()
        return
    if reports is None or out is None:
        raise InvalidSetting("give REPORTS and --out FOLDER")
    if settings.kinds is not None:
        settings = replace(settings, kinds=split_names(settings.kinds))
    names = renamed(rename, "id", "report")
    with row_progress(count_rows(reports, limit), "perturbing", quiet=output.quiet) as on_progress:
        result = run(
            reports,
            out,
            settings,
            standard_normal=_read(standard_normal),
            id_column=names.get("id", "id"),
            text_column=names.get("report"),
            limit=limit,
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_notes((*limit_notes(result.key), *result.notes))
    if result.unchanged:
        echo(f"{out} holds this data set already; nothing was made", err=True)
    if not output.quiet:
        for table in result.tables:
            echo(table.text())
        if (normal := result.record["standard_normal"]) is not None:
            echo(f"standard normal report: {normal}")
        echo(f"wrote {result.folder}")
    bad = result.failures
    listed = result.folder / "skipped.jsonl"
    print_failures(bad, "rows could not be used", listed_in=listed)
    if bad and not output.keep_going:
        raise SystemExit(1)


def _list_kinds() -> None:
    from vlscore.perturb import KINDS

    for kind in KINDS.values():
        notice = "should notice" if kind.expected == "significant" else "should not notice"
        category = f"; {kind.category}" if kind.category else ""
        echo(f"{kind.name}: a metric {notice}{category}")
        echo(textwrap.indent(textwrap.fill(kind.description, terminal_width() - 2), "  "))


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path}: cannot be read as text: {error}") from None
    if not text:
        raise InvalidSetting(f"{path}: holds no report")
    return text
