"""Threads beside the work, which are at their end before Python itself ends.

A thread that is inside a C++ library (PyTorch, Arrow) while the interpreter is taken apart aborts
the whole process ("terminate called without an active exception"), and with it the exit status. A
thread of this module is told to stop, and waited for, before that happens.

Ctrl-C at the moments at which an exception would do harm, or would be lost.

Checks that run beside the work, and must have passed before its results count.

Whoever begins one names the object whose results depend on it; it is forgotten with that object.

How the C library hands out memory in the processes that are all ours: commands and workers.
"""

import _thread
import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

Stopped = Callable[[], bool]

_running: "WeakSet[BackgroundThread]" = WeakSet()


class BackgroundThread:
    """A thread that begins at once and does not outlive the program.

    Args:
        work: called with what says whether it is to stop; it must ask for that some times a second,
            and return or raise where it is.
        name: of the thread.
    """

    def __init__(self, work: Callable[[Stopped], None], name: str) -> None:
        self._work = work
        self._is_stopped = threading.Event()
        # Not `join`: after a Ctrl-C in it Python 3.11 takes a running thread for an ended one.
        self._has_ended = threading.Event()
        # A daemon: Python waits for all others before it calls what stops this one.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _running.add(self)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the work is done."""
        self._has_ended.wait()

    def stop(self) -> None:
        """Have the work end, and wait for that."""
        self._is_stopped.set()
        self._has_ended.wait()

    def _run(self) -> None:
        try:
            self._work(self._is_stopped.is_set)
        finally:
            self._has_ended.set()


@atexit.register
def _stop_all() -> None:
    for each in list(_running):
        stopped = False
        while not stopped:
            # Ctrl-C must not leave the thread behind: it has been told, and ends at once.
            with contextlib.suppress(KeyboardInterrupt):
                each.stop()
                stopped = True


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


_checks: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()
_lock = threading.Lock()


def assure(owner: Any, check: Callable[[], None]) -> None:
    """Have `check` called before results count; it waits for its end, and raises VLScoreError."""
    with _lock:
        _checks[owner] = check


def confirm(owner: Any = None) -> None:
    """Wait until the checks of one object have passed, or all there are.

    Raises: VLScoreError as the check that failed.
    """
    with _lock:
        found = [check for each, check in _checks.items() if owner is None or each is owner]
    for check in found:
        check()


# Parameters of mallopt (malloc.h of the GNU C library).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let the process use its freed memory again instead of giving it back to the system.

    Every layer of an image tower writes its result to fresh memory, tens of megabytes at a time,
    and so does every decoder. The GNU C library takes such pieces from the system and gives them
    back one by one, and the system fills each with zeros first: a quarter of the time of a
    ResNet-50 on a processor, a fifth of that of a full-size JPEG. Up to a gigabyte is kept. Other C
    libraries, which have no such setting, are left as they are.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            library.mallopt(parameter, _BYTES)
