"""Progress of long work: a bar on a terminal, a line now and then in a log. Ctrl-C ends it."""

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


@contextlib.contextmanager
def row_progress(
    total: int | Callable[[], int | None] | None,
    what: str = "scoring",
    quiet: bool = False,
    embedder: "StudyEmbedder | None" = None,
    out: Path | None = None,
) -> "Iterator[OnProgress]":
    """Show progress on stderr with rate and time left; yields what to call with (done, failed).

    Args:
        total: rows, where known; or what counts them, which is not called for nothing.
        what: is being done, as in "embedding".
        quiet: show nothing.
        embedder: whose share from the cache every line says, as in "cache: 80% of images".
        out: folder that holds what a stopped command has finished; None where results appear
            complete or not at all.
    """
    with phase_progress(quiet, embedder, unit=" rows", out=out) as begin:
        count = None if quiet else total() if callable(total) else total
        yield begin(what, count)


@contextlib.contextmanager
def phase_progress(
    quiet: bool = False,
    embedder: "StudyEmbedder | None" = None,
    unit: str = "",
    out: Path | None = None,
) -> "Iterator[Callable[[str, int | None], OnProgress]]":
    """Show the progress of work in several phases, a bar below the other.

    Yields what begins a phase: (what is done, how many in all) -> what to call with (done, failed).

    Args:
        quiet, embedder, out: as of `row_progress`.
        unit: what a log counts, as in " rows".
    """

    def begin(what: str, total: int | None) -> "OnProgress":
        update = add(what, total, unit)

        def on_progress(done: int, failed: int) -> None:
            shares = "" if embedder is None else embedder.work.cache_shares()
            update(done, "  ".join(filter(None, (f"{failed} failed" if failed else "", shares))))

        return on_progress

    with _shown(quiet, out) as add:
        yield begin


@contextlib.contextmanager
def training_progress(
    rows: int | None, out: Path, quiet: bool = False
) -> "Iterator[tuple[OnProgress, Callable[[StepProgress], None]]]":
    """Progress of `vlscore train`: of the images that are decoded, then of its steps.

    Args:
        rows: of the table, where known.
        out: folder with the finished steps, for the end by Ctrl-C.
        quiet: show nothing.
    """
    steps: _Update | None = None

    def on_progress(done: int, failed: int) -> None:
        decoding(done, f"{failed} failed" if failed else "")

    def on_step(shown: "StepProgress") -> None:
        nonlocal steps
        steps = steps or add("training", shown.steps, " steps")
        held = shown.validated
        recall = "" if held is None else f"mean recall {held.mean_recall:.3f}"
        steps(shown.step, "  ".join(filter(None, (f"loss {shown.loss:.3f}", recall))))

    with _shown(quiet, out) as add:
        decoding = add("decoding", rows, " rows")
        yield on_progress, on_step


# What is called with how many are done, and a remark.
_Update = Callable[[int, str], None]
# What begins a phase: (what is done, how many in all, what a log counts).
_Add = Callable[[str, int | None, str], _Update]


@contextlib.contextmanager
def _shown(quiet: bool, out: Path | None = None) -> Iterator[_Add]:
    """Show bars or lines; end the command after Ctrl-C with one line that says what it stored.

    Args: out: as of `row_progress`.
    """
    try:
        if quiet:
            yield lambda what, total, unit: lambda done, remark: None
        elif sys.stderr.isatty():
            with _bars() as add:
                yield add
        else:
            yield _lines
    except KeyboardInterrupt:
        names = [each.name for each in out.iterdir()] if out is not None and out.is_dir() else []
        text = "nothing was stored"
        # One file locks the folder.
        if any(not name.startswith(".lock") for name in names):
            text = f"what is finished is stored in {out}. The same command resumes"
        echo(f"\nstopped; {text}.", err=True)
        raise SystemExit(INTERRUPTED) from None


def _lines(what: str, total: int | None, unit: str) -> _Update:
    """Lines of a log."""
    first = began = shown = None

    def update(done: int, remark: str) -> None:
        nonlocal first, began, shown
        clock = time.monotonic()
        if first is None:
            # What an earlier call did does not count for the speed.
            first, began, shown = done, clock, clock
        if clock - shown < _LOG_PAUSE:
            return
        shown = clock
        rate = (done - first) / max(clock - began, 1e-9)
        parts = [f"{what}: {done}{'' if total is None else f' of {total}'}{unit}"]
        parts += [each for each in remark.split("  ") if each]
        parts.append(f"{rate:.1f}/s")
        if total is not None and rate > 0:
            left = (total - done) / rate
            parts.append(f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left")
        echo(", ".join(parts), err=True)

    return update


@contextlib.contextmanager
def _bars() -> Iterator[_Add]:
    """Bars one below the other."""
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

        def add(what: str, total: int | None, unit: str) -> _Update:
            task = progress.add_task(what, total=total, rate="", remark="")
            shown = -_PAUSE

            def update(done: int, remark: str) -> None:
                nonlocal shown
                clock = time.monotonic()
                if clock - shown < _PAUSE and done != total:
                    return
                shown = clock
                progress.update(task, completed=done)
                speed = progress.tasks[task].speed
                rate = f"{speed:.1f}/s" if speed else ""
                progress.update(task, rate=rate, remark=remark)

            return update

        yield add
