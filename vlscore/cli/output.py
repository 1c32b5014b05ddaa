"""Output of commands: tables as far as they fit on a screen, notes, failures."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from vlscore.core import printable

if TYPE_CHECKING:
    from vlscore.data import BadRow
    from vlscore.embedding import StudyEmbedder
    from vlscore.stats import Result, TextTable

SHOWN_FAILURES = 10
# Failed rows of which equal reasons are listed in one line.
GROUPED_FAILURES = 1000
_NAMES_OF_A_GROUP = 3
# Lines of results that a command prints at most, unless its first table is longer.
SCREEN = 40


def echo(text: object = "", *, err: bool = False, fg: str | None = None, nl: bool = True) -> None:
    """Print a text; every output of a command goes through this function.

    Control sequences in it are written out, so that an id or a report of a table cannot set the
    terminal's title, clear the screen, or hide a line.
    """
    typer.secho(printable(str(text)), err=err, fg=fg, nl=nl)


def terminal_width() -> int:
    """Return the columns of the terminal, at least 80; 80 where there is no terminal."""
    import shutil

    return max(shutil.get_terminal_size((80, 24)).columns, 80)


def check_figure(format: str | None) -> None:
    """Refuse figures that cannot be drawn, before anything is computed.

    Raises: InvalidSetting for an unknown format; MissingDependency without matplotlib.
    """
    from vlscore.stats import check_drawable

    if format is not None:
        check_drawable(format)


def draw_figures(folder: Path, format: str | None) -> None:
    """Draw the figures of a finished folder into it; none without a format."""
    if format is not None:
        from vlscore.evaluation import draw

        draw(folder, format)


def print_encoder_warning(embedder: "StudyEmbedder | None") -> None:
    """Warn of the demonstration encoder, once the command has something to show."""
    if embedder is not None and embedder.encoder.card.demonstration:
        echo(
            "warning: the bundled encoder was trained on synthetic phantoms, for demonstration and "
            "tests: its scores of real radiographs mean nothing. Name a real one with --encoder; "
            "`vlscore encoders` lists them",
            fg="yellow",
            err=True,
        )


def print_precision_note(embedder: "StudyEmbedder | None") -> None:
    """Say, before the work begins, where the precision asked for is no gain on this machine."""
    if embedder is not None:
        from vlscore.encoders import why_slow

        reason = why_slow(embedder.engine.precision, embedder.encoder.device)
        if reason is not None:
            echo(f"note: {reason}", err=True)


def print_json(content: object) -> None:
    """Print plain data as json."""
    echo(json.dumps(content, indent=2, ensure_ascii=False))


def print_tables(tables: "Iterable[TextTable]") -> None:
    """Print whole tables, an empty line behind each."""
    for table in tables:
        echo(table.text(terminal_width()) + "\n")


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for the user on stderr."""
    for note in notes:
        echo(f"note: {note}", err=True)


def print_run_notes(run: "Result", done: str = "computed") -> None:
    """Print the notes of a run, and whether it had ended before.

    Args: done: what an unchanged run did not do again, as in "embedded".
    """
    print_notes(run.notes)
    if run.unchanged:
        echo(f"{run.folder} holds these results already; nothing was {done}", err=True)


def exit_if_failed(failed: object, keep_going: bool) -> None:
    """Raise typer.Exit with status 1 where rows failed, unless `keep_going`."""
    if failed and not keep_going:
        raise typer.Exit(1)


def print_failures(
    shown: Sequence[tuple[int | str | None, str, str]],
    count: int,
    many: str,
    one: str | None = None,
    listed_in: object = None,
) -> None:
    """List the first failed rows on stderr, those with the same reason in one line.

    Args:
        shown: (row, id, reason), at least GROUPED_FAILURES of them where there are so many; the
            row is None where no row of one table is meant.
        count: of all failed rows.
        many: what they are, as in "rows lack a value".
        one: the same of a single row; default: as of many.
        listed_in: file with all of them; None where there is none.
    """
    if not count:
        return
    echo(f"{count} {one if one is not None and count == 1 else many}:", fg="red", err=True)
    reasons: dict[str, dict[tuple[int | str | None, str], None]] = {}
    for row, study_id, reason in shown[:GROUPED_FAILURES]:
        reasons.setdefault(reason, {})[row, study_id] = None
    listed = list(reasons.items())[:SHOWN_FAILURES]
    for reason, rows in listed:
        names = [_row_name(*each) for each in list(rows)[:_NAMES_OF_A_GROUP]]
        more = len(rows) - len(names)
        echo(f"  {', '.join(names)}{f' and {more} more' if more else ''}: {reason}", err=True)
    if _places(row for _, rows in listed for row in rows) != _places(
        row for rows in reasons.values() for row in rows
    ) or count > min(len(shown), GROUPED_FAILURES):
        echo("  ... and more", err=True)
    if listed_in is not None:
        echo(f"all of them: {listed_in}", err=True)


def _places(
    rows: Iterable[tuple[int | str | None, str]],
) -> set[tuple[int | str | None, str]]:
    """Return the rows; one that failed twice is returned once."""
    return {(row, id if row is None else "") for row, id in rows}


def print_bad_rows(
    bad: "Sequence[BadRow]", could_not_be: str = "used", of: object = None, listed_in: object = None
) -> None:
    """List the rows of a table that could not be used.

    Args:
        could_not_be: what a row could not be, as in "embedded".
        of: table, where it is named.
        listed_in: file with all of them.
    """
    shown = [(row.row, row.id or "", row.reason) for row in bad]
    rest = f"{'' if of is None else f' of {of}'} could not be {could_not_be}"
    print_failures(shown, len(shown), f"rows{rest}", f"row{rest}", listed_in)


def print_left_out(reasons: Mapping[str, str]) -> None:
    """Print which metrics are left out, those with the same reason in one line.

    Args: reasons: name of a metric -> why; a name in its own reason is written as "it".
    """
    if not reasons:
        return
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        words = [part if part != name else "it" for part in reason.split(" ")]
        groups.setdefault(" ".join(words), []).append(name)
    count = f"{len(reasons)} metric{'s are' if len(reasons) > 1 else ' is'}"
    echo(f"note: {count} left out; `vlscore metrics NAME` describes one:", err=True)
    for reason, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        more = f" and {len(names) - _NAMES_OF_A_GROUP} more"
        shown = ", ".join(names[:_NAMES_OF_A_GROUP])
        echo(f"  {shown}{more if len(names) > _NAMES_OF_A_GROUP else ''}: {reason}", err=True)


def _row_name(row: int | str | None, study_id: str) -> str:
    if row is None:
        return study_id
    return f"row {row} ({study_id})" if study_id else f"row {row}"


def show_tables(
    tables: "Iterable[TextTable]", signatures: Iterable[str], folder: Path, rest: str
) -> None:
    """Print the first table, and what else fits on a screen; name the file with the rest.

    Args:
        tables: the most important one first.
        signatures: what the numbers depend on.
        rest: file in the folder with all tables and signatures.
    """
    texts = [table.text(terminal_width()) + "\n" for table in tables]
    signed = "\n".join(signatures)
    shown, room = 0, SCREEN
    for text in texts:
        room -= text.count("\n") + 1
        if shown and room < 0:
            break
        echo(text)
        shown += 1
    more = []
    if left := len(texts) - shown:
        more.append(f"{left} more {'tables' if left > 1 else 'table'}")
    if signed and room > signed.count("\n"):
        echo(signed)
    elif signed:
        more.append("the signatures")
    echo(f"wrote {folder}")
    if more:
        echo(f"{' and '.join(more)}: {folder / rest}")


def named_as_in_papers(table: "TextTable") -> "TextTable":
    """Return the table with the papers' names of metrics, as tables.md has it."""
    from vlscore.metrics import named_as_in_papers as named  # loads the registry of metrics

    return named(table)


def without_intervals(table: "TextTable", but: str = "") -> "TextTable":
    """Return the table with the estimates alone: "0.35 [0.26, 0.44]" becomes "0.35".

    Args: but: heading of a column that retains its intervals.
    """
    rows = tuple(
        tuple(
            cell if heading == but else re.sub(r" \[[^\[\]]*\]", "", cell)
            for heading, cell in zip(table.columns, row, strict=True)
        )
        for row in table.rows
    )
    return dataclasses.replace(table, rows=rows)


def fitting(table: "TextTable") -> "TextTable":
    """Return the table with rows and columns exchanged where only that fits the terminal."""
    columns = [table.columns, *table.rows]
    widths = [max(map(len, cells)) + 2 for cells in zip(*columns, strict=True)]
    if sum(widths) <= terminal_width() or len(table.rows) >= len(table.columns):
        return table
    (first, *names), *rows = zip(*columns, strict=True)
    return dataclasses.replace(table, columns=(first, *names), rows=tuple(rows), best=(), signs=())


class Printing(Protocol):
    """What a command prints.

    Attributes:
        quiet: no tables.
        as_json: the content as json instead of tables.
    """

    @property
    def quiet(self) -> bool: ...
    @property
    def as_json(self) -> bool: ...


def print_result(
    result: "Result",
    printing: Printing,
    many: str,
    one: str | None = None,
    *,
    tables: "Iterable[TextTable] | None" = None,
) -> None:
    """Print the notes of a result, its tables or its content as json, and failed rows.

    Args:
        many, one: what failed, as of `print_failures`.
        tables: as they are printed; default: those of the result.
    """
    print_run_notes(result)
    if printing.as_json:
        print_json(result.content)
    elif not printing.quiet:
        shown = result.tables if tables is None else tables
        show_tables(shown, result.signatures.values(), result.folder, "tables.md")
    listed = result.folder / "failures.csv"
    # A failure of a comparison names a system instead of a row.
    failures = [
        (None, f"{row}, {id}", reason) if isinstance(row, str) else (row, id, reason)
        for row, id, reason in result.failures
    ]
    print_failures(failures, len(failures), many, one, listed)
