"""Checks that run beside the work, and must have passed before its results count.

Whoever begins one names the object whose results depend on it; it is forgotten with that object.
"""

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

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
