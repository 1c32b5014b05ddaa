"""What a result folder says of its run, and how a run reports its progress."""

import contextlib
import datetime
import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vlscore.core.files import __version__

# Called with the numbers of rows that are done, and of those that failed.
OnProgress = Callable[[int, int], None]
# Called at the beginning of each phase with (what is done, how many in all, None if unknown);
# returns what to call with the numbers done.
OnPhase = Callable[[str, int | None], OnProgress]


def no_progress(done: int, failed: int) -> None:
    """Ignore progress; the default of functions that report it."""


def no_phase(what: str, total: int | None) -> OnProgress:
    """Ignore a phase, and its progress."""
    return no_progress


_LIBRARIES = (
    "torch",
    "torchvision",
    "transformers",
    "timm",
    "open_clip_torch",
    "numpy",
    "pillow",
    "opencv-python-headless",
    "pydicom",
)


# Entry of a key, where not all rows of a table are read.
LIMIT = "limit"


def limit_notes(key: Mapping[str, Any]) -> list[str]:
    """Return a note where a key says that a table was read in part only."""
    parts = [key, *(each for each in key.values() if isinstance(each, Mapping))]
    parts += [each for part in parts[1:] for each in part.values() if isinstance(each, Mapping)]
    limits = sorted({part[LIMIT] for part in parts if LIMIT in part})
    return [f"only the first {limit} rows of the table were read (--limit)" for limit in limits]


def run_record(**facts: Any) -> dict[str, Any]:
    """Return the facts with versions, command and time added: what is needed to repeat a run."""
    # The folder that relative paths of the command start from; None where it is gone.
    directory: str | None = None
    with contextlib.suppress(OSError):
        directory = os.getcwd()
    return {
        **facts,
        "vlscore": __version__,
        "command": sys.argv,
        "directory": directory,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": libraries(),
    }


@cache
def libraries() -> dict[str, str | None]:
    """Return the versions of the libraries that numbers may depend on; None for an absent one."""
    found: dict[str, str | None] = dict.fromkeys(_LIBRARIES)
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
