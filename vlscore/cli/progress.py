"""Progress of long work, and the end of a command that was stopped.

Progress is a bar on a terminal, and a line now and then in a log. A command that was interrupted
says what it stored.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vlscore.cli.output import echo
from vlscore.core import INTERRUPTED

if TYPE_CHECKING:
    from vlscore.core import OnProgress
    from vlscore.embedding import StudyEmbedder
    from vlscore.training import StepProgress

# Seconds: a row may take a thousandth of that, and rich's sum over the last rows as long as a row.
_PAUSE = 0.1
# From so many columns on a terminal has room for a long bar and the time that has passed.
_WIDE, _BAR, _SHORT_BAR = 110, 40, 8
# Seconds between two lines where standard error is no terminal.
_LOG_PAUSE = 30.0


def cache_hits(embedder: "StudyEmbedder | None") -> Callable[[], str]:
    """Return the function that says, in a line of progress, how much came from the cache."""
    return str if embedder is None else embedder.engine.work.said


@contextlib.contextmanager
def row_progress(
    total: int | None, what: str = "scoring", quiet: bool = False, also: Callable[[], str] = str
) -> "Iterator[OnProgress]":
    """Show progress on stderr with rate and time left; yields what to call with (done, failed).

    Args:
        total: rows, where known.
        what: is being done, as in "embedding".
        quiet: show nothing.
        also: returns a further text, as in "cache: 80% of images"; called for every line.
    """
    if quiet:
        yield lambda done, failed: None
    elif sys.stderr.isatty():
        with _bars() as add:
            update = add(what, total)
            yield lambda done, failed: update(done, _remark(failed, also))
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
                return lambda done, failed: update(done, _remark(failed, also))

            yield begin
    else:
        yield lambda what, total: _log(total, what, also, unit="")


def _log(
    total: int | None, what: str, also: Callable[[], str], unit: str = " rows"
) -> "OnProgress":
    began = shown = time.monotonic()
    first: int | None = None

    def on_progress(done: int, failed: int) -> None:
        nonlocal shown, first
        now = time.monotonic()
        # Rows of an earlier call do not count for the speed.
        first = done if first is None else first
        if now - shown < _LOG_PAUSE:
            return
        shown = now
        rate = (done - first) / (now - began)
        of = f" of {total}" if total is not None else ""
        left = ""
        if total is not None and rate > 0:
            left = f", {_time((total - done) / rate)} left"
        further = "".join(f", {words}" for words in [also()] if words)
        echo(f"{what}: {done}{of}{unit}, {failed} failed, {rate:.1f}/s{left}{further}", err=True)

    return on_progress


@contextlib.contextmanager
def training_progress(
    rows: int | None, quiet: bool = False
) -> "Iterator[tuple[OnProgress, Callable[[StepProgress], None]]]":
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

            def on_step(shown: "StepProgress") -> None:
                nonlocal steps
                steps = steps or add("training", shown.steps)
                steps(shown.step, step_text(shown))

            yield (lambda done, failed: decoding(done, _remark(failed))), on_step
    else:
        yield _log(rows, "decoding", str), _log_steps()


def step_text(shown: "StepProgress") -> str:
    """Return what is shown of a step besides the rate."""
    loss = f"loss {shown.loss:.3f}"
    if shown.validated is None:
        return loss
    return f"{loss}  mean recall {shown.validated.mean_recall:.3f}"


def _log_steps() -> Callable[["StepProgress"], None]:
    """A line for every validation, and one now and then."""
    began = logged = 0.0
    first: int | None = None
    validated: object = None

    def on_step(shown: "StepProgress") -> None:
        nonlocal began, logged, first, validated
        now = time.monotonic()
        if first is None:
            # Steps of an earlier call do not count for the speed, nor does the time before them.
            began, logged, first = now, now, shown.step
            return
        is_new = shown.validated is not validated
        if not is_new and now - logged < _LOG_PAUSE and shown.step != shown.steps:
            return
        logged, validated = now, shown.validated
        rate = (shown.step - first) / max(now - began, 1e-9)
        left = _time((shown.steps - shown.step) / rate)
        done = f"step {shown.step} of {shown.steps}: {step_text(shown)}"
        echo(f"{done}, {rate:.2f} steps/s, {left} left", err=True)

    return on_step


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _remark(failed: int, also: Callable[[], str] = str) -> str:
    parts = (f"{failed} failed" if failed else "", also())
    return "  ".join(part for part in parts if part)


# What to call with (done, remark at the end of the line).
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

    class Remark(ProgressColumn):
        """Text at the end of the line; it alone is cut where the line is too long."""

        def __init__(self) -> None:
            # A column that may wrap is narrowed first, and a text that may not is cut in it.
            super().__init__(table_column=Column(no_wrap=False))

        def render(self, task: Task) -> Text:
            return Text(task.fields["remark"], no_wrap=True, overflow="ellipsis")

    console = Console(stderr=True)
    elapsed = [TimeElapsedColumn()] if console.width >= _WIDE else []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(_BAR if console.width >= _WIDE else _SHORT_BAR),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        *elapsed,
        TimeRemainingColumn(),
        Remark(),
        console=console,
    ) as progress:

        def add(what: str, total: int | None) -> _Update:
            task = progress.add_task(what, total=total, rate="", remark="")
            shown = -_PAUSE

            def update(done: int, remark: str) -> None:
                nonlocal shown
                now = time.monotonic()
                if now - shown < _PAUSE and done != total:
                    return
                shown = now
                progress.update(task, completed=done)
                speed = progress.tasks[task].speed
                rate = f"{speed:.1f}/s" if speed else ""
                progress.update(task, rate=rate, remark=remark)

            return update

        yield add


def _holds_results(folder: Path) -> bool:
    """Return whether a folder holds more than the file that locks it."""
    return folder.is_dir() and any(not each.name.startswith(".lock") for each in folder.iterdir())


@contextlib.contextmanager
def stopping(out: Path | None, stored: str | None = "what was done is") -> Iterator[None]:
    """End the command after Ctrl-C with one line that says what it stored.

    Args:
        out: folder of the results; None where nothing is written.
        stored: what a stopped run stores in its folder, as in "finished rows are"; None where the
            command stores nothing before its end.
    """
    try:
        yield
    except KeyboardInterrupt:
        if stored is None:
            text = "nothing was stored"
        elif out is None:
            text = f"nothing was stored. With --out FOLDER, {stored} stored"
        elif not _holds_results(out):
            text = f"nothing was stored in {out} yet. The same command starts again"
        else:
            text = f"{stored} stored in {out}. The same command resumes"
        echo(f"\nstopped; {text}.", err=True)
        raise SystemExit(INTERRUPTED) from None
