"""Threads beside the work, which are at their end before Python itself ends.

A thread that is inside a C++ library (PyTorch, Arrow) while the interpreter is taken apart aborts
the whole process ("terminate called without an active exception"), and with it the exit status. A
thread of this module is told to stop, and waited for, before that happens.
"""

import atexit
import contextlib
import threading
from collections.abc import Callable
from weakref import WeakSet

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
