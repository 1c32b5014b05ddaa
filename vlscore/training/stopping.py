"""Stopping between two steps when Ctrl-C is pressed, or a cluster takes its machine back."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or the cluster asked to stop: the step at hand is finished and kept first.

    A second Ctrl-C stops at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        before[each] = signal.signal(each, ask)
    try:
        yield asked.is_set
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
