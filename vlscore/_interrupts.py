"""Ctrl-C at the moments at which an exception would do harm, or would be lost."""

import contextlib
import os
import signal
import sys
from types import FrameType

# Exit status of a command that Ctrl-C stopped, by the convention of shells.
INTERRUPTED = 130


def watch_for_interrupts() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, or ends the process while PyTorch is imported.

    PyTorch's C++ calls Python code while it is imported. An exception in there is ignored, or
    aborts the process. Nothing of a command has begun by then, so that it can end at once.

    Where the process was told to ignore Ctrl-C, as in the background of a shell, it still does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def end_at_interrupts() -> None:
    """From now on Ctrl-C ends the process at once, without a word: the command is at its end."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def say_stopped() -> None:
    """Tell the user that Ctrl-C was heard."""
    with contextlib.suppress(OSError):
        os.write(2, b"\nstopped\n")


def _interrupted(number: int, frame: FrameType | None) -> None:
    if _is_being_imported("torch"):
        say_stopped()
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    # What the import system itself goes by; without it Ctrl-C is an exception as ever.
    return bool(getattr(spec, "_initializing", False))
