"""Settings of a command, each described once: by the field of a dataclass.

`setting` makes a field with the sentence that `--help` prints, the name of its value, its heading
and its bounds. From this one description come the option of the command line
(`vlscore.cli.option_groups.grouped`), the check of values, from the configuration file too
(`check_settings`), and the library's documentation (`described`).
"""

import dataclasses
import math
import textwrap
from collections.abc import Mapping
from typing import Any, TypeVar

from vlscore.errors import InvalidSetting

_KEY = "setting"
_WIDTH = 96

Settings = TypeVar("Settings")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingField:
    """Description of one setting.

    Attributes:
        help: sentence for `--help` and for the documentation.
        more: sentences for the documentation of the library alone.
        metavar: name of the value in `--help`; None for a flag.
        panel: heading in `--help`; None for "Options".
        option: names of the option, if they are not the field's name with hyphens.
        least: smallest value.
        choices: the values, if there are only some.
        typed: type of the option, if the field also takes what no command line can write.
    """

    help: str
    more: str = ""
    metavar: str | None = None
    panel: str | None = None
    option: str | None = None
    least: int | None = None
    choices: tuple[str, ...] = ()
    typed: Any = None


def setting(default: Any, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return a field of a dataclass of settings.

    Args: help, metavar, more: attributes of `SettingField`.
    """
    description = SettingField(help=help, metavar=metavar, **more)
    return dataclasses.field(default=default, metadata={_KEY: description})


def setting_of(field: "dataclasses.Field[Any]") -> SettingField | None:
    """Return the description of a field; None if `setting` did not make it."""
    return field.metadata.get(_KEY)


def check_settings(settings: Any) -> None:
    """Check every field of a dataclass of settings against its description.

    Raises: InvalidSetting that names the first invalid setting.
    """
    for field in dataclasses.fields(settings):
        if (description := setting_of(field)) is None:
            continue
        value = getattr(settings, field.name)
        if description.choices and value not in description.choices:
            raise InvalidSetting(
                f"{field.name} is one of {', '.join(description.choices)}, not {value!r}"
            )
        if description.least is None or (value is None and field.default is None):
            continue
        is_whole = field.type in (int, int | None)
        is_valid = value >= description.least and math.isfinite(value)
        if not is_valid or (is_whole and (value != int(value) or isinstance(value, bool))):
            kind = "a whole number" if is_whole else "a number"
            raise InvalidSetting(
                f"{field.name} is {kind}, at least {description.least}, not {value!r}"
            )


def settings_in(kind: type[Settings], arguments: Mapping[str, Any]) -> Settings:
    """Return the settings among the arguments of a function, which have the fields' names.

    Args: arguments: `locals()` at the beginning of the function.
    """
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: arguments[name] for name in names})


def described(kind: type[Settings]) -> type[Settings]:
    """Add the fields' descriptions as "Attributes" to a docstring, before its "Raises"."""
    lines = ["    Attributes:"]
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if (found := setting_of(field)) is not None:
            text = f"{field.name}: {found.help} {found.more}".strip()
            lines += textwrap.wrap(
                text,
                _WIDTH,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
                break_on_hyphens=False,
            )
    beginning, raises, errors = (kind.__doc__ or "").partition("    Raises:")
    kind.__doc__ = "\n".join([beginning.rstrip(), "", *lines, "", raises + errors])
    return kind
