"""The progress of long work: a bar on a terminal, a line now and then in a log."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import typer

OnProgress = Callable[[int, int], None]

# Seconds: a row may take a thousandth of that, and rich's sum over the last rows as long as a row.
_PAUSE = 0.1
# Seconds between two lines where standard error is no terminal.
_LOG_PAUSE = 30.0


@contextlib.contextmanager
def row_progress(
    total: int | None,
    what: str = "scoring",
    quiet: bool = False,
    also: Callable[[], str] = str,
) -> Iterator[OnProgress]:
    """Show progress on stderr with rate and time left; yields what to call with (done, failed).

    Args:
        total: rows, where known.
        what: is being done, as in "embedding".
        quiet: show nothing.
        also: what to say besides, as in "80% of images from the cache"; asked whenever it is shown.
    """
    if quiet:
        yield lambda done, failed: None
    elif sys.stderr.isatty():
        with _bar(total, what, also) as on_progress:
            yield on_progress
    else:
        yield _log(total, what, also)


def _log(total: int | None, what: str, also: Callable[[], str]) -> OnProgress:
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
            left = f", {(total - done) / rate / 60:.0f} min left"
        said = "".join(f", {words}" for words in [also()] if words)
        typer.echo(f"{what}: {done}{of} rows, {failed} failed, {rate:.1f}/s{left}{said}", err=True)

    return on_progress


@contextlib.contextmanager
def _bar(total: int | None, what: str, also: Callable[[], str]) -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as progress:
        task = progress.add_task(what, total=total, rate="")

        shown = -_PAUSE

        def on_progress(done: int, failed: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown < _PAUSE and done != total:
                return
            shown = now
            progress.update(task, completed=done)
            speed = progress.tasks[task].speed
            rate = f"{speed:.1f}/s" if speed else ""
            parts = (rate, f"{failed} failed" if failed else "", also())
            progress.update(task, rate="  ".join(part for part in parts if part))

        yield on_progress
