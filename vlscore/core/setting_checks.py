"""Checks of settings, and of the arguments of functions."""

import dataclasses
import math
import numbers
import typing
from collections.abc import Collection
from functools import wraps
from inspect import signature
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar

from vlscore.errors import InvalidSetting

P = ParamSpec("P")
Returned = TypeVar("Returned")
# Data that a caller may pass in place of an object of vlscore; an object of another class may be
# one that behaves like it.
_PLAIN = (type(None), str, bytes, int, float, list, tuple, set, dict)


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
        is_number = isinstance(value, int | float | numbers.Real)
        is_valid = is_number and bound <= value < math.inf
        if not is_valid or (is_whole and (value != int(value) or isinstance(value, bool))):
            kind = "a whole number" if is_whole else "a number"
            raise InvalidSetting(f"{field.name} is {kind}, at least {bound}, not {value!r}")


def checked_arguments(function: typing.Callable[P, Returned]) -> typing.Callable[P, Returned]:
    """Return the function with a check of arguments that are objects of vlscore, or paths.

    Raises: InvalidSetting that names the argument where it is other plain data, such as a name
        instead of a Scorer, or a dict instead of settings; also for `workers` below 0.
    """
    described, known_classes = signature(function), _classes_of(function)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Returned:
        try:
            given = described.bind(*args, **kwargs).arguments
        except TypeError:
            given = {}  # Python itself names arguments that are missing, or unknown.
        for name, value in given.items():
            if name == "workers" and not (isinstance(value, int) and value >= 0):
                raise InvalidSetting(f"workers is a whole number, at least 0, not {value!r}")
            classes = known_classes.get(name)
            if classes is None or isinstance(value, classes):
                continue
            if isinstance(value, _PLAIN):
                known = " or ".join(each.__name__ for each in classes if each is not NoneType)
                kind = "None" if value is None else f"a {type(value).__name__}"
                raise InvalidSetting(f"{name} is a {known}, not {kind}")
        return function(*args, **kwargs)

    return checked


def _classes_of(function: Any) -> dict[str, tuple[type, ...]]:
    """Return argument -> its classes, for those of which one is a path or of vlscore.

    Annotations in quotation marks are left out: what they name may not be loaded.
    """
    found = {}
    for name, hint in function.__annotations__.items():
        classes = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if all(isinstance(each, type) and each is not Any for each in classes):
            found[name] = classes
    own = ("builtins", "collections.abc")
    return {
        name: classes
        for name, classes in found.items()
        if any(each.__module__ not in own for each in classes)
    }
