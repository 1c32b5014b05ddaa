"""Configurations in json, read as data."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint

_LARGEST_FILE = 1 << 26
_DEEPEST = 100
# Settings by which these libraries are asked to run code, to fetch it, or to read another place.
_ASKS_FOR_CODE = frozenset(
    (
        "trust_remote_code",
        "auto_map",
        "custom_pipelines",
        "custom_code",
        "code_revision",
        "use_kernels",
        "attn_implementation",
        "_attn_implementation",
        "bpe_path",
        "cache_dir",
        "subfolder",
        "_target_",
    )
)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A json object from a file.

    Args:
        what: what the file should be, for messages.

    Raises: IncompatibleCheckpoint.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError("it is too large")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise IncompatibleCheckpoint(f"{path} is no {what}: {reason}") from None
    if not isinstance(content, dict):
        raise IncompatibleCheckpoint(f"{path} is no {what}, but a {type(content).__name__}")
    return content


def refuse_code(config: Any, source: str, *, depth: int = 0) -> None:
    """Refuse a json object in which some setting, however deep, asks for code to be run.

    Raises: UnsafeCheckpoint.
    """
    if depth > _DEEPEST:
        raise IncompatibleCheckpoint(f"{source} is nested too deeply for a configuration")
    if isinstance(config, Mapping):
        asking = sorted(key for key in config if key in _ASKS_FOR_CODE and config[key])
        if asking:
            raise UnsafeCheckpoint(
                f"{source} sets {asking[0]}, which can run code or read other places; it was not "
                "loaded. Take the setting out if you trust the rest"
            )
    if isinstance(config, Mapping | list):
        inner = config.values() if isinstance(config, Mapping) else config
        for value in inner:
            refuse_code(value, source, depth=depth + 1)
