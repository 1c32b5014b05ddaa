"""Output of commands, and its options: tables as far as they fit on a screen, notes, failures."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from vlscore.core import printable
from vlscore.errors import Failure

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder
    from vlscore.stats import Result, TextTable

RESULTS = Group("Results", sort_key=5)
AsJson = Annotated[
    bool, Parameter(help="Print the results as json only.", group=RESULTS, name="--json")
]
Quiet = Annotated[bool, Parameter(help="Print no progress and no tables.", group=RESULTS)]

SHOWN_FAILURES = 10
# Failed rows of which equal reasons are listed in one line.
GROUPED_FAILURES = 1000
_NAMES_OF_A_GROUP = 3
# Lines of results that a command prints at most, unless its first table is longer.
SCREEN = 40


@Parameter(name="*", group=RESULTS)
@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How a command treats earlier results and failed rows, and what it prints.

    Attributes:
        overwrite: Compute again, and replace earlier results at the end.
        keep_going: Exit with status 0 even if some rows could not be used.
        report: Also write report.html, which shows results and reports.
    """

    overwrite: bool = False
    keep_going: bool = False
    report: bool = False
    quiet: Quiet = False
    as_json: AsJson = False

    @property
    def is_silent(self) -> bool:
        """Whether neither progress nor tables are printed."""
        return self.quiet or self.as_json


def echo(text: object = "", *, err: bool = False, end: str = "\n") -> None:
    """Print a text; every output of a command goes through this function.

    Control sequences in it are written out, so that an id or a report of a table cannot set the
    terminal's title, clear the screen, or hide a line.
    """
    print(printable(str(text)), file=sys.stderr if err else sys.stdout, end=end, flush=True)


def terminal_width() -> int:
    """Return the columns of the terminal, at least 80; 80 where there is no terminal."""
    import shutil

    return max(shutil.get_terminal_size((80, 24)).columns, 80)


def print_encoder_warning(embedder: "StudyEmbedder | None") -> None:
    """Warn of the demonstration encoder, once the command has something to show."""
    if embedder is not None and embedder.card.demonstration:
        echo(
            "warning: the bundled encoder was trained on synthetic phantoms, for demonstration and "
            "tests: its scores of real radiographs mean nothing. Name a real one with --encoder; "
            "`vlscore encoders` lists them",
            err=True,
        )


def print_precision_note(embedder: "StudyEmbedder") -> None:
    """Say, before the work begins, where the precision asked for is no gain on this machine."""
    from vlscore.encoders import why_slow

    reason = why_slow(embedder.precision, embedder.device)
    if reason is not None:
        echo(f"note: {reason}", err=True)


def print_json(content: object) -> None:
    """Print plain data as json."""
    echo(json.dumps(content, indent=2, ensure_ascii=False))


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for the user on stderr."""
    for note in notes:
        echo(f"note: {note}", err=True)


def print_failures(
    failed: Sequence[Failure], plural: str, singular: str | None = None, listed_in: object = None
) -> None:
    """List the first failed rows on stderr, those with the same reason in one line.

    Args:
        plural: what they are, as in "rows lack a value".
        singular: the same of a single row; default: "row" for "rows".
        listed_in: file with all of them; None where there is none.
    """
    if not failed:
        return
    singular = singular or plural.replace("rows", "row", 1)
    echo(f"{len(failed)} {singular if len(failed) == 1 else plural}:", err=True)
    reasons: dict[str, dict[str, None]] = {}
    for each in failed[:GROUPED_FAILURES]:
        reasons.setdefault(each.reason, {})[_row_name(each)] = None
    for reason, rows in list(reasons.items())[:SHOWN_FAILURES]:
        names = list(rows)[:_NAMES_OF_A_GROUP]
        more = f" and {len(rows) - len(names)} more" if len(rows) > len(names) else ""
        # A name of a system and an id has a comma of its own.
        apart = "; " if any(", " in name for name in names) else ", "
        echo(f"  {apart.join(names)}{more}: {reason}", err=True)
    if len(reasons) > SHOWN_FAILURES or len(failed) > GROUPED_FAILURES:
        echo("  ... and more", err=True)
    if listed_in is not None:
        echo(f"all of them: {listed_in}", err=True)


def _row_name(failure: Failure) -> str:
    """Return how a row is called; a failure of a comparison names a system instead of a row."""
    row, id, _ = failure
    if isinstance(row, str):
        return f"{row}, {id}"
    return f"row {row} ({id})" if id else f"row {row}"


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


def show_tables(
    tables: "Iterable[TextTable]", signatures: Iterable[str], rest: Path | None
) -> None:
    """Print the first table, and what else fits on a screen; name the file with the rest.

    Args:
        tables: the most important one first.
        signatures: what the numbers depend on.
        rest: file with all tables and signatures, in the folder with the results; None where
            there is none: then everything is printed.
    """
    texts, captions = [], set()
    for table in tables:
        # Tables of several ratings or groups have one caption, which is printed once.
        own = dataclasses.replace(table, caption="") if table.caption in captions else table
        captions.add(table.caption)
        texts.append(own.text(terminal_width()) + "\n")
    signed = "\n".join(signatures)
    shown, left = 0, SCREEN
    for text in texts:
        left -= text.count("\n") + 1
        if shown and left < 0 and rest is not None:
            break
        echo(text)
        shown += 1
    more = []
    if hidden := len(texts) - shown:
        more.append(f"{hidden} more {'tables' if hidden > 1 else 'table'}")
    if signed and (rest is None or left > signed.count("\n")):
        echo(signed)
    elif signed:
        more.append("the signatures")
    if rest is not None:
        echo(f"wrote {rest.parent}")
        if more:
            echo(f"{' and '.join(more)}: {rest}")


def show(
    result: "Result",
    options: OutputOptions,
    plural: str = "rows could not be used",
    singular: str | None = None,
    *,
    verb: str = "computed",
    tables: "Iterable[TextTable] | None" = None,
    closing_lines: Sequence[str] = (),
    figure: str | None = None,
    columns: Sequence[str] = (),
    folder_is_temporary: bool = False,
    studies: Path | None = None,
) -> None:
    """Print a result, write its page and figures, and end the command.

    That is: notes; tables, or the content as json; failed rows.

    Args:
        plural, singular: what failed, as of `print_failures`.
        verb: what an unchanged run did not do again, as in "embedded".
        tables: as they are printed; default: those of the result.
        closing_lines: printed behind the tables.
        figure: format of figures to draw from the result; None for none.
        columns: of a comparison, the numbers that are drawn.
        folder_is_temporary: it is not named then.
        studies: table of the reports, for the page of a folder that does not name it.

    Raises: SystemExit with status 1 where rows failed, unless --keep-going was used.
    """
    if figure is not None:
        from vlscore.evaluation import draw

        draw(result.folder, figure, columns=columns)
    print_notes(result.notes)
    if result.unchanged:
        echo(f"{result.folder} holds these results already; nothing was {verb}", err=True)
    if options.as_json:
        print_json(result.content)
    elif not options.quiet:
        rest = None if folder_is_temporary else result.folder / "tables.md"
        show_tables(result.tables if tables is None else tables, result.signatures.values(), rest)
        for line in closing_lines:
            echo(line)
    failed, listed = result.failures, result.folder / "failures.csv"
    is_listed = listed.is_file() and not folder_is_temporary
    if failed:
        print_failures(failed, plural, singular, listed if is_listed else None)
    if options.report:
        from vlscore.pages import report

        page = report(result.folder, table=studies)
        print_notes(page.notes)
        if not (options.quiet or options.as_json):
            echo(f"wrote {page.path}")
    if failed and not options.keep_going:
        raise SystemExit(1)
