"""The progress bar of long work."""

import contextlib
import time
from collections.abc import Callable, Iterator

# Seconds: a row may take a thousandth of that, and rich's sum over the last rows as long as a row.
_PAUSE = 0.1


@contextlib.contextmanager
def row_progress(total: int | None, what: str = "scoring") -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with rate and time left; yields what to call with (done, failed).

    Args:
        total: rows, where known.
        what: is being done, as in "embedding".
    """
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
            progress.update(task, rate=f"{rate}  {failed} failed" if failed else rate)

        yield on_progress
