"""Ctrl-C at the moments at which an exception would do harm, or would be lost."""

import _thread
import contextlib
import os
import signal
import sys
import threading
from types import FrameType

# Exit status of a command that Ctrl-C stopped, by the convention of shells.
INTERRUPTED = 130
_SECONDS_UNTIL_AGAIN = 0.02


def watch_for_interrupts() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, or ends the process while PyTorch is imported.

    PyTorch's C++ calls Python code while it is imported. An exception in there is ignored, or
    aborts the process. Nothing of a command has begun by then, so that it can end at once.

    Where the process was told to ignore Ctrl-C, as in the background of a shell, it still does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
        sys.unraisablehook = _heard_again


def end_at_interrupts() -> None:
    """From now on Ctrl-C ends the process at once, without a word: the command is at its end."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.unraisablehook = sys.__unraisablehook__


def say_stopped() -> None:
    """Tell the user that Ctrl-C was heard."""
    with contextlib.suppress(OSError):
        os.write(2, b"\nstopped\n")


def _interrupted(number: int, frame: FrameType | None) -> None:
    if _is_being_imported("torch"):
        say_stopped()
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _heard_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Raise a Ctrl-C again that came while an object was taken apart: Python ignores that one."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    again = threading.Timer(_SECONDS_UNTIL_AGAIN, _interrupt_main_thread)
    again.daemon = True
    again.start()


def _interrupt_main_thread() -> None:
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        # This ends a wait of the main thread, too.
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    # What the import system itself goes by; without it Ctrl-C is an exception as ever.
    return bool(getattr(spec, "_initializing", False))
