"""Silence around decoders.

Decoders of medical files warn and log about damaged headers, and quote the values they stumble
over: a patient's name among them. Nothing of a header may reach a log, so both are switched off
while a file is read.
"""

import contextlib
import logging
import threading
import warnings
from collections.abc import Iterator

# Their child loggers inherit the level.
_LOGGERS = ("pydicom", "PIL", "pylibjpeg", "openjpeg")

_lock = threading.Lock()
_readers = 0
_restore = contextlib.ExitStack()


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """No warnings, and no logging by decoders, inside the block; as before after the last one.

    Threads may overlap: the first to enter silences, the last to leave restores.
    """
    global _readers
    with _lock:
        if _readers == 0:
            _remember()
        # Again for each: a library that is imported meanwhile sets the level of its own logger.
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        _readers += 1
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if _readers == 0:
                _restore.close()


def _remember() -> None:
    _restore.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        _restore.callback(logger.setLevel, logger.level)
