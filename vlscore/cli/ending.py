"""How commands end that were interrupted, or that are one of several processes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from vlscore._interrupts import INTERRUPTED
from vlscore.errors import VLScoreError

if TYPE_CHECKING:
    from vlscore._processes import Processes


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
        typer.echo("\nanother process of this run has ended, or all were told to end", err=True)
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
        typer.echo(f"error: {error}", err=True)
        _leave(2)


def _leave(status: int) -> NoReturn:
    """End this process at once: threads that wait for messages would break into Python's end."""
    import os
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


@contextlib.contextmanager
def stopping(out: Path | None, kept: str = "what was done is") -> Iterator[None]:
    """End the command after Ctrl-C with one line that says what it kept.

    Args:
        out: folder of the results; None where nothing is written.
        kept: what a stopped run keeps, as in "finished rows are".
    """
    try:
        yield
    except KeyboardInterrupt:
        there = f"{kept} kept in {out}. The same command goes on from there"
        lost = f"nothing was kept; with --out FOLDER, {kept}"
        typer.echo(f"\nstopped; {lost if out is None else there}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
