"""Layout of `--help`: headings, and two columns below them."""

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Widest first column; a longer name has a line of its own.
_NAMES_WIDTH = 25
_WIDEST = 100
_VALUES = {
    "STR": "TEXT",
    "INT": "N",
    "FLOAT": "NUMBER",
    "STR|PATH": "PATH",
    "STR...": "NAMES",
    "PATH...": "PATH",
    "CHOICE": "NAME",
}
_NO_DEFAULT = (None, "", "False", "()")


@dataclass(frozen=True)
class HelpPage:
    """What prints the parts of `--help` for cyclopts.

    Attributes:
        sentences: command -> its sentence, for the list of commands, none of which is imported.
    """

    sentences: Mapping[str, str]

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print the line of usage."""
        _write(console, _filled("Usage: ", str(usage).strip()))

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print the docstring, each paragraph filled anew."""
        text = _text(description)
        paragraphs = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
        for paragraph in paragraphs:
            _write(console, ["", *_filled("  ", paragraph)])

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one group of options or commands."""
        if panel.format == "command":
            rows = [
                (", ".join(each.all_options), _text(each.description) or self.sentences.get(name))
                for each in panel.entries
                for name in each.all_options[:1]
            ]
        else:
            rows = [(_names(each), _explained(each)) for each in panel.entries]
        if rows:
            _write(console, ["", f"{panel.title}:", *_columns(rows)])


def _names(entry: Any) -> str:
    names = ", ".join([*entry.positive_shorts, *entry.positive_names])
    if entry.positional_label:
        return str(entry.positional_label)
    return f"{names} {_VALUES.get(entry.metavar, entry.metavar)}" if entry.metavar else names


def _explained(entry: Any) -> str:
    text = _text(entry.description)
    default = entry.default
    if default in _NO_DEFAULT or "Default:" in text:
        return f"{text} [required]" if entry.required and not entry.positional_label else text
    return f"{text} [default: {default}]"


def _text(description: Any) -> str:
    """Return the words of what cyclopts describes an option with."""
    text = getattr(description, "primary_renderable", description)
    return str(getattr(text, "plain", text or "")).strip()


def _columns(rows: Sequence[tuple[str, str | None]]) -> Iterable[str]:
    width = max((len(name) for name, _ in rows if len(name) <= _NAMES_WIDTH), default=0) + 4
    for name, text in rows:
        beginning = f"  {name}".ljust(width)
        if len(name) > _NAMES_WIDTH:
            yield f"  {name}"
            beginning = " " * width
        yield from _filled(beginning, " ".join((text or "").split()), width)


def _filled(beginning: str, text: str, indent: int | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        min(shutil.get_terminal_size().columns, _WIDEST),
        initial_indent=beginning,
        subsequent_indent=" " * (len(beginning) if indent is None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [beginning.rstrip()]


def _write(console: Any, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
