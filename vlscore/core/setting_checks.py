"""Checks of dataclasses of settings."""

import dataclasses
import math
import numbers
import typing
from collections.abc import Collection
from typing import Any

from vlscore.errors import InvalidSetting


def check_word(name: str, value: Any, words: Collection[str]) -> None:
    """Raise InvalidSetting that names the words, where the value of a setting is none of them."""
    if value not in words:
        raise InvalidSetting(f"{name} is one of {', '.join(words)}, not {value!r}")


def check_names(name: str, value: Any) -> None:
    """Raise InvalidSetting where one text stands for several: its letters would be names."""
    if isinstance(value, str):
        raise InvalidSetting(f"{name} is a tuple of names, as in ({value!r},), not one text")


def check_settings(settings: Any, **least: float) -> None:
    """Check the numbers of a dataclass of settings, and the fields that are one of some words.

    A field of type `int` takes whole numbers only, and one of tuples no text; None passes where it
    is the default.

    Args:
        settings: fields of type `Literal` are checked against its words.
        least: name of a field -> its smallest value.

    Raises: InvalidSetting that names the first invalid setting.
    """
    hints = typing.get_type_hints(type(settings)) if dataclasses.fields(settings) else {}
    for field in dataclasses.fields(settings):
        value, hint = getattr(settings, field.name), hints[field.name]
        if typing.get_origin(hint) is typing.Literal:
            check_word(field.name, value, typing.get_args(hint))
        if typing.get_origin(hint) is tuple:
            check_names(field.name, value)
        if field.name not in least or (value is None and field.default is None):
            continue
        bound, is_whole = least[field.name], hint in (int, int | None)
        is_valid = isinstance(value, numbers.Real) and bound <= float(value) < math.inf
        if not is_valid or (is_whole and (value != int(value) or isinstance(value, bool))):
            kind = "a whole number" if is_whole else "a number"
            raise InvalidSetting(f"{field.name} is {kind}, at least {bound}, not {value!r}")
