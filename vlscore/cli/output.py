"""Help that reads well on 80 columns: options in groups, no name or value ever cut.

What commands say besides their results, in the same words everywhere.

The progress of long work: a bar on a terminal, a line now and then in a log.

How commands end that were interrupted, or that are one of several processes.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
import typer.core

from vlscore.core import INTERRUPTED, printable
from vlscore.errors import VLScoreError

if TYPE_CHECKING:
    from vlscore.core import OnProgress, Processes
    from vlscore.embedding import StudyEmbedder
    from vlscore.evaluation import BaselineRun, JudgedReports, LabelledReports
    from vlscore.training import Shown


_FIRST = "Options"
# --help explains what most runs need, and names the rest, so that it fits on a screen and a half.
# Of groups that many commands share, it explains these:
_SHARED = ("Table", "Encoder", "Images and reports")
_EXPLAINED = {
    "--image-root", "--patient-column", "--encoder", "--weights", "--text-only", "--train",
    "--references",
}  # fmt: skip
# Of the other groups, it names these alone:
_NAMED = {
    "--overwrite", "--keep-going", "--report", "--quiet", "--json", "--resamples", "--permutations",
    "--seed", "--format", "--pairs", "--image-weights", "--text-weights", "--micro-batch",
    "--weight-decay", "--warm-up", "--clip", "--frozen-norms", "--sentences", "--duplicates-apart",
    "--group-column", "--validate-every", "--patience", "--effort", "--mode", "--ranks",
    "--describe", "--check", "--lower-is-better", "--layout", "--in-flight", "--prices",
    "--check-precision", "--by",
}  # fmt: skip
_HELP_ALL = "--help-all"
# Lines of options that --help explains in full.
_FITS = 48
# Widest first column of a list of options; a longer name has a line of its own.
_NAMES_WIDTH = 25


class GroupedCommand(typer.core.TyperCommand):
    """A command whose options are in the groups that `rich_help_panel` names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --help-all for --help with every option explained."""
        if _HELP_ALL in args:
            ctx.meta[_HELP_ALL] = True
            args = ["--help"]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the line of usage, without braces around arguments."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with --report, also where some rows failed, write its page."""
        try:
            returned = super().invoke(ctx)
        except typer.Exit as ended:
            if ended.exit_code == 1:
                _write_page(ctx)
            raise
        _write_page(ctx)
        return returned

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then every group of options in order of appearance.

        Every option is explained where that fits, or with --help-all.
        """
        everything = ctx.make_formatter()
        self._write_groups(ctx, everything, every=True)
        is_short = everything.getvalue().count("\n") <= _FITS
        self._write_groups(ctx, formatter, every=is_short or _HELP_ALL in ctx.meta)

    def _write_groups(self, ctx: Any, formatter: Any, *, every: bool) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        others: dict[str, list[str]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_option = parameter.param_type_name == "option"
            heading = getattr(parameter, "rich_help_panel", None) or _FIRST
            rows = groups.setdefault(heading if is_option else "Arguments", [])
            if not is_option:
                # Without the type in angle brackets: "SYSTEMS <list[str]>".
                record = (record[0].partition(" <")[0], record[1])
            if is_option and not every and _is_named_alone(heading, parameter.opts):
                names = (*parameter.opts, *parameter.secondary_opts)
                others.setdefault(heading, []).extend(names)
            else:
                rows.append(record)
        # What belongs to this command alone comes before what it shares with others.
        for heading in sorted(groups, key=lambda name: {"Arguments": 0, _FIRST: 1}.get(name, 2)):
            with formatter.section(heading):
                if groups[heading]:
                    formatter.write_dl(groups[heading], col_max=_NAMES_WIDTH)
                if heading in others:
                    _write_names(formatter, others[heading])
        if others:
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} {_HELP_ALL} explains every option.")


def _write_names(formatter: Any, names: Sequence[str]) -> None:
    """Write names of options, none of them broken at a hyphen."""
    import textwrap

    before = " " * formatter.current_indent
    text = textwrap.fill(
        ", ".join(names),
        formatter.width,
        initial_indent=f"{before}also: ",
        subsequent_indent=f"{before}      ",
        break_on_hyphens=False,
    )
    formatter.write(f"{text}\n")


def _is_named_alone(heading: str, names: Sequence[str]) -> bool:
    """Return whether --help names an option without an explanation."""
    if heading in _SHARED:
        return not _EXPLAINED.intersection(names)
    return bool(_NAMED.intersection(names))


class GroupedCommands(typer.core.TyperGroup):
    """Commands under headings of their purpose, each with the first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the groups in order of appearance; no sentence is cut."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            if command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None)
            sentence = (command.help or "").split("\n\n")[0].replace("\n", " ")
            groups.setdefault(heading if isinstance(heading, str) else "Commands", []).append(
                (name, sentence)
            )
        for heading, commands in groups.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


def _write_page(ctx: Any) -> None:
    """Write the page of a command's result folder, if --report was given."""
    out = ctx.params.get("out")
    if not ctx.params.get("report") or out is None:
        return
    from vlscore.pages import report

    # The folders of these commands do not name their table.
    own = ctx.params.get("studies") or ctx.params.get("reports")
    page = report(out, table=own if ctx.info_name in ("judge", "findings") else None)
    for note in page.notes:
        echo(f"note: {note}", err=True)
    if not (ctx.params.get("quiet") or ctx.params.get("as_json")):
        echo(f"wrote {page.path}")


SHOWN_FAILURES = 10
# Failed rows of which equal reasons are listed in one line.
GROUPED_FAILURES = 1000
_NAMES_OF_A_GROUP = 3


def echo(text: object = "", *, err: bool = False, fg: str | None = None, nl: bool = True) -> None:
    """Print a text: the one way in which commands say anything.

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


def cache_hits(embedder: "StudyEmbedder | None") -> Callable[[], str]:
    """What tells a line of progress how much came from the cache."""
    return str if embedder is None else embedder.engine.work.said


def say_of_encoder(embedder: "StudyEmbedder | None") -> None:
    """Warn of the demonstration encoder, once the command has something to show."""
    if embedder is not None and embedder.encoder.card.demonstration:
        echo(
            "warning: the bundled encoder was trained on synthetic phantoms, for demonstration and "
            "tests: its scores of real radiographs mean nothing. Name a real one with --encoder; "
            "`vlscore encoders` lists them",
            fg="yellow",
            err=True,
        )


def say_of_precision(embedder: "StudyEmbedder | None") -> None:
    """Say, before the work begins, where the precision asked for is no gain on this machine."""
    if embedder is not None:
        from vlscore.encoders import why_slow

        reason = why_slow(embedder.engine.precision, embedder.encoder.device)
        if reason is not None:
            echo(f"note: {reason}", err=True)


def say_of_run(
    notes: Iterable[str],
    out: Path | None,
    *,
    unchanged: bool,
    resumed_from: int = 0,
    done: str = "computed",
) -> None:
    """Say on stderr what to know of a run besides its results.

    Args: done: what an unchanged run did not do again, as in "embedded".
    """
    for note in notes:
        echo(f"note: {note}", err=True)
    if unchanged:
        echo(f"{out} holds these results already; nothing was {done}", err=True)
    elif resumed_from:
        echo(f"went on after row {resumed_from}", err=True)


def say_of_failures(
    shown: Sequence[tuple[int | str | None, str, str]], count: int, what: str
) -> None:
    """List the first failed rows on stderr, those with the same reason in one line.

    Args:
        shown: (row, id, reason), GROUPED_FAILURES of them where there are so many; the row is None
            where no row of one table is meant.
        count: of all failed rows.
        what: they are, as in "rows lack a value".
    """
    if not count:
        return
    echo(f"{count} {what}:", fg="red", err=True)
    reasons: dict[str, dict[tuple[int | str | None, str], None]] = {}
    for row, study_id, reason in shown:
        reasons.setdefault(reason, {})[row, study_id] = None
    listed = list(reasons.items())[:SHOWN_FAILURES]
    for reason, rows in listed:
        names = [_row_name(*each) for each in list(rows)[:_NAMES_OF_A_GROUP]]
        more = len(rows) - len(names)
        echo(f"  {', '.join(names)}{f' and {more} more' if more else ''}: {reason}", err=True)
    if len({(row, id if row is None else "") for _, rows in listed for row, id in rows}) < count:
        echo("  ... and more", err=True)


def say_left_out(reasons: Mapping[str, str]) -> None:
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


def finish_rows(
    result: "LabelledReports | JudgedReports | BaselineRun",
    *,
    done: str,
    could_not_be: str,
    quiet: bool,
    keep_going: bool,
) -> None:
    """Print the tables of a command over rows, and list the rows that could not be used.

    Args:
        done: the work in one word, as in "labelled".
        could_not_be: what a failed row could not be, as in "used".
    Raises: typer.Exit with status 1 if a row could not be used, unless `keep_going`.
    """
    say_of_run(
        result.notes,
        result.folder,
        unchanged=result.unchanged,
        resumed_from=result.resumed_from,
        done=done,
    )
    if not quiet:
        for table in result.tables:
            echo(table.text(terminal_width()) + "\n")
        echo(f"wrote {result.folder}")
    count = len(result.bad_rows)
    what = f"rows could not be {could_not_be}" if count > 1 else f"row could not be {could_not_be}"
    say_of_failures([(r.row, str(r.id), r.reason) for r in result.bad_rows], count, what)
    if count and not keep_going:
        raise typer.Exit(1)


# Seconds: a row may take a thousandth of that, and rich's sum over the last rows as long as a row.
_PAUSE = 0.1
# From so many columns on a terminal has room for a long bar and the time that has passed.
_WIDE, _BAR, _SHORT_BAR = 110, 40, 8
# Seconds between two lines where standard error is no terminal.
_LOG_PAUSE = 30.0


@contextlib.contextmanager
def row_progress(
    total: int | None,
    what: str = "scoring",
    quiet: bool = False,
    also: Callable[[], str] = str,
) -> "Iterator[OnProgress]":
    """Show progress on stderr with rate and time left; yields what to call with (done, failed).

    Args:
        total: rows, where known.
        what: is being done, as in "embedding".
        quiet: show nothing.
        also: what to say besides, as in "cache: 80% of images"; asked whenever it is shown.
    """
    if quiet:
        yield lambda done, failed: None
    elif sys.stderr.isatty():
        with _bar(total, what, also) as on_progress:
            yield on_progress
    else:
        yield _log(total, what, also)


@contextlib.contextmanager
def phase_progress(
    quiet: bool = False, also: Callable[[], str] = str
) -> "Iterator[Callable[[str, int | None], OnProgress]]":
    """Show the progress of work in several phases, a bar below the other.

    Yields what begins a phase: (what is done, how many in all) -> what to call with (done, failed).
    """
    if quiet:
        yield lambda what, total: lambda done, failed: None
    elif sys.stderr.isatty():
        with _bars() as add:

            def begin(what: str, total: int | None) -> "OnProgress":
                update = add(what, total)
                return lambda done, failed: update(done, _beside(failed, also))

            yield begin
    else:
        yield lambda what, total: _log(total, what, also)


def _log(total: int | None, what: str, also: Callable[[], str]) -> "OnProgress":
    began = shown = time.monotonic()
    first: int | None = None

    def on_progress(done: int, failed: int) -> None:
        nonlocal shown, first
        now = time.monotonic()
        # Rows that an earlier call had done tell nothing of the speed.
        first = done if first is None else first
        if now - shown < _LOG_PAUSE:
            return
        shown = now
        rate = (done - first) / (now - began)
        of = f" of {total}" if total is not None else ""
        left = ""
        if total is not None and rate > 0:
            left = f", {_time((total - done) / rate)} left"
        said = "".join(f", {words}" for words in [also()] if words)
        echo(f"{what}: {done}{of} rows, {failed} failed, {rate:.1f}/s{left}{said}", err=True)

    return on_progress


@contextlib.contextmanager
def training_progress(
    rows: int | None, quiet: bool = False
) -> "Iterator[tuple[OnProgress, Callable[[Shown], None]]]":
    """Progress of `vlscore train`: of the images that are decoded, then of its steps.

    Args:
        rows: of the table, where known.
        quiet: show nothing.
    """
    if quiet:
        yield (lambda done, failed: None), (lambda shown: None)
    elif sys.stderr.isatty():
        with _bars() as add:
            decoding, steps = add("decoding", rows), None

            def on_step(shown: "Shown") -> None:
                nonlocal steps
                steps = steps or add("training", shown.steps)
                steps(shown.step, told(shown))

            yield (lambda done, failed: decoding(done, _beside(failed))), on_step
    else:
        yield _log(rows, "decoding", str), _log_steps()


def told(shown: "Shown") -> str:
    """What is told of a step beside the rate."""
    loss = f"loss {shown.loss:.3f}"
    if shown.validated is None:
        return loss
    return f"{loss}  mean recall {shown.validated.mean_recall:.3f}"


def _log_steps() -> Callable[["Shown"], None]:
    """A line for every validation, and one now and then."""
    began = logged = 0.0
    first: int | None = None
    told_of: object = None

    def on_step(shown: "Shown") -> None:
        nonlocal began, logged, first, told_of
        now = time.monotonic()
        if first is None:
            # Steps of an earlier call tell nothing of the speed, nor does the time before them.
            began, logged, first = now, now, shown.step
            return
        is_new = shown.validated is not told_of
        if not is_new and now - logged < _LOG_PAUSE and shown.step != shown.steps:
            return
        logged, told_of = now, shown.validated
        rate = (shown.step - first) / max(now - began, 1e-9)
        left = _time((shown.steps - shown.step) / rate)
        echo(
            f"step {shown.step} of {shown.steps}: {told(shown)}, {rate:.2f} steps/s, {left} left",
            err=True,
        )

    return on_step


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextlib.contextmanager
def _bar(total: int | None, what: str, also: Callable[[], str]) -> "Iterator[OnProgress]":
    with _bars() as add:
        update = add(what, total)
        yield lambda done, failed: update(done, _beside(failed, also))


def _beside(failed: int, also: Callable[[], str] = str) -> str:
    parts = (f"{failed} failed" if failed else "", also())
    return "  ".join(part for part in parts if part)


# What to call with (done, what to tell beside the rate).
_Update = Callable[[int, str], None]


@contextlib.contextmanager
def _bars() -> Iterator[Callable[[str, int | None], _Update]]:
    """Bars one below the other; yields what adds one, of (what is done, total)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Beside(ProgressColumn):
        """What is told at the end of the line; it alone is cut where the line is too long."""

        def __init__(self) -> None:
            # A column that may wrap is narrowed first, and a text that may not is cut in it.
            super().__init__(table_column=Column(no_wrap=False))

        def render(self, task: Task) -> Text:
            return Text(task.fields["beside"], no_wrap=True, overflow="ellipsis")

    console = Console(stderr=True)
    elapsed = [TimeElapsedColumn()] if console.width >= _WIDE else []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(_BAR if console.width >= _WIDE else _SHORT_BAR),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        *elapsed,
        TimeRemainingColumn(),
        Beside(),
        console=console,
    ) as progress:

        def add(what: str, total: int | None) -> _Update:
            task = progress.add_task(what, total=total, rate="", beside="")
            shown = -_PAUSE

            def update(done: int, beside: str) -> None:
                nonlocal shown
                now = time.monotonic()
                if now - shown < _PAUSE and done != total:
                    return
                shown = now
                progress.update(task, completed=done)
                speed = progress.tasks[task].speed
                rate = f"{speed:.1f}/s" if speed else ""
                progress.update(task, rate=rate, beside=beside)

            return update

        yield add


@contextlib.contextmanager
def ending_together(processes: "Processes") -> Iterator[None]:
    """How one of several processes ends: the first speaks for all, and none waits for ever.

    Where one of them dies, torchrun ends the others with SIGTERM. To the first that is what Ctrl-C
    is, so that it says what was kept; the others say nothing.
    """
    import signal

    if processes.count == 1:
        yield
        return

    def told_to_end(number: int, frame: object) -> None:
        echo("\nanother process of this run has ended, or all were told to end", err=True)
        raise KeyboardInterrupt

    if processes.leads:
        signal.signal(signal.SIGTERM, told_to_end)
    try:
        yield
        processes.close()
    except KeyboardInterrupt:
        _leave(INTERRUPTED)
    except typer.Exit as ended:
        _leave(ended.exit_code)
    except VLScoreError as error:
        echo(f"error: {error}", err=True)
        _leave(2)


def _leave(status: int) -> NoReturn:
    """End this process at once: threads that wait for messages would break into Python's end."""
    import os
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


@contextlib.contextmanager
def stopping(out: Path | None, kept: str | None = "what was done is") -> Iterator[None]:
    """End the command after Ctrl-C with one line that says what it kept.

    Args:
        out: folder of the results; None where nothing is written.
        kept: what a stopped run keeps in its folder, as in "finished rows are"; None where the
            command keeps nothing before its end.
    """
    try:
        yield
    except KeyboardInterrupt:
        if kept is None:
            said = "nothing was kept"
        elif out is None:
            said = f"nothing was kept. With --out FOLDER, {kept} kept"
        else:
            said = f"{kept} kept in {out}. The same command goes on from there"
        echo(f"\nstopped; {said}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
