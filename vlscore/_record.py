"""What is needed to repeat a run: signature, versions, command, table."""

import datetime
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vlscore._version import __version__

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


def run_record(**facts: Any) -> dict[str, Any]:
    """The given facts, with versions, command and time beside them."""
    return {
        **facts,
        "vlscore": __version__,
        "command": sys.argv,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": libraries(),
    }


def libraries() -> dict[str, str | None]:
    """The versions of the libraries that numbers may depend on; None for one that is absent."""
    return {name: _installed(name) for name in _LIBRARIES}


def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
