"""Background threads, Ctrl-C, checks in the background, and memory of a process.

* `BackgroundThread` ends before Python itself does. A thread that is inside a C++ library (PyTorch,
  Arrow) while the interpreter shuts down aborts the whole process ("terminate called without an
  active exception"), and with it the exit status. So such a thread is asked to stop, and waited
  for.
* `watch_for_interrupts` and `end_at_interrupts` handle Ctrl-C at moments at which an exception
  would do harm, or would be lost.
* `assure` begins a check that runs in the background, and `confirm` waits until it has passed; only
  then its results count. A check belongs to the object whose results depend on it, and is forgotten
  with that object.
* `keep_freed_memory` sets how the C library hands out memory in commands and workers.
* `usable_cores` counts the processor cores that this process may use.
"""

import _thread
import atexit
import contextlib
import ctypes
import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

Stopped = Callable[[], bool]

_running: "WeakSet[BackgroundThread]" = WeakSet()


class BackgroundThread:
    """A thread that begins at once and does not outlive the program.

    Args:
        work: function that gets a callable `stopped`; it must call that several times a second, and
            return or raise as soon as it returns True.
        name: name of the thread.
    """

    def __init__(self, work: Callable[[Stopped], None], name: str) -> None:
        self._work = work
        self._is_stopped = threading.Event()
        # Not `join`: after a Ctrl-C in it Python 3.11 believes that a running thread has ended.
        self._has_ended = threading.Event()
        # A daemon: Python waits for all other threads before it calls `_stop_all`.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _running.add(self)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the work is done."""
        self._has_ended.wait()

    def stop(self) -> None:
        """Ask the work to stop, and wait until it has."""
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
            # Ctrl-C must not leave the thread running: it was asked to stop, and ends at once.
            with contextlib.suppress(KeyboardInterrupt):
                each.stop()
                stopped = True


# Exit status of a command that Ctrl-C stopped, by the convention of shells.
INTERRUPTED = 130
_SECONDS_UNTIL_AGAIN = 0.02


def watch_for_interrupts() -> None:
    """Make Ctrl-C a KeyboardInterrupt, or the end of the process while PyTorch is imported.

    PyTorch's C++ calls Python code while it is imported. An exception in that code is ignored, or
    aborts the process. The command has done no work by then, so the process can end at once.

    A process that was started to ignore Ctrl-C, as in the background of a shell, still ignores it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
        sys.unraisablehook = _heard_again


def end_at_interrupts() -> None:
    """Make Ctrl-C end the process at once and silently, because the command is at its end."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.unraisablehook = sys.__unraisablehook__


def print_stopped() -> None:
    """Print that Ctrl-C was received."""
    with contextlib.suppress(OSError):
        os.write(2, b"\nstopped\n")


def _interrupted(number: int, frame: FrameType | None) -> None:
    if _is_being_imported("torch"):
        print_stopped()
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _heard_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Raise a Ctrl-C again that came while an object was deleted, because Python ignored it."""
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
    # The import system's own mark; without it Ctrl-C is an ordinary exception.
    return bool(getattr(spec, "_initializing", False))


_checks: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()
_lock = threading.Lock()


def assure(owner: Any, check: Callable[[], None]) -> None:
    """Register a check of `owner`, which `confirm` calls; it waits, and raises VLScoreError."""
    with _lock:
        _checks[owner] = check


def confirm(owner: Any = None) -> None:
    """Wait until the checks of one object have passed; of all objects for None.

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
    """Make the process reuse its freed memory instead of returning it to the system.

    Every layer of an image tower writes its result to fresh memory, tens of megabytes at a time,
    and so does every decoder. The GNU C library takes such pieces from the system and gives them
    back one by one, and the system fills each with zeros first: a quarter of the time of a
    ResNet-50 on a processor, a fifth of that of a full-size JPEG. The process retains up to a
    gigabyte. Nothing changes for other C libraries, which have no such setting.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            library.mallopt(parameter, _BYTES)


# Where Linux writes the share of the processors that a container may use: "200000 100000" is two.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    The machine may have more: `taskset`, a batch system and the limits of a container restrict a
    process to some of them.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this operating system
        cores = os.cpu_count() or 1
    return max(min(cores, _quota()), 1)


def _quota() -> int:
    """Return the limit of this container in cores, rounded up; a huge number without a limit."""
    try:
        used, period = map(int, _QUOTA.read_text(encoding="ascii").split())
        return math.ceil(used / period)
    except (OSError, ValueError, ZeroDivisionError):
        return sys.maxsize
