"""Settings of a training run in a TOML file: read for a run, written by every run.

The names are those of the options of `vlscore train`, with underscores for hyphens.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore.errors import InvalidSetting
from vlscore.training.preparing import Preparation
from vlscore.training.settings import TrainingSettings
from vlscore.training.starts import Start


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Settings by name.

    Args: known: the names that there are.
    Raises: InvalidSetting where the file cannot be read, or has a name or value that is none.
    """
    try:
        with path.open("rb") as stream:
            found = tomllib.load(stream)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSetting(f"{path} is no TOML file: {error}") from None
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}" if close else f"; it has {', '.join(known)}"
            raise InvalidSetting(f"{path}: training has no setting {name!r}{hint}")
        if not isinstance(value, str | int | float | bool):
            raise InvalidSetting(f"{path}: {name} is a text, a number, true or false")
    return found


def write_config(path: Path, values: Mapping[str, Any]) -> None:
    """Write settings so that `read_config` finds them again; those that are None are left out.

    Raises: OutputFailed.
    """
    with atomic_write(path) as stream:
        stream.writelines(
            f"{name} = {_written(value)}\n" for name, value in values.items() if value is not None
        )


def config_of(
    preparation: Preparation,
    validation: Preparation | None,
    start: Start,
    settings: TrainingSettings,
) -> dict[str, Any]:
    """Every setting of a run by the name of its option."""
    columns = preparation.table.columns.to_dict()
    paths = {
        "studies": preparation.table.path,
        "image_root": preparation.table.root,
        "validation": None if validation is None else validation.table.path,
        "weights": start.weights,
        "tokenizer": start.tokenizer,
        "image_weights": start.image_weights,
        "text_weights": start.text_weights,
    }
    return {
        **{name: None if path is None else Path(path).resolve() for name, path in paths.items()},
        **{f"{role}_column": columns[role] for role in ("id", "image", "reference", "view")},
        "group_column": preparation.group_column,
        "image_policy": preparation.image_policy.signature(),
        "section": preparation.text_policy.section_of("reference"),
        "views": preparation.views,
        "encoder": start.name,
        "style": start.style,
        **settings.to_dict(),
    }


def _written(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no setting")
    # Texts, numbers and truth values look alike in json and TOML.
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=True)
