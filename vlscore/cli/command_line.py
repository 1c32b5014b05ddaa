"""The command line: every command parses, calls one function of a room below, and prints.

A new command is one file here and one line in `_COMMANDS`, in the group of its purpose. Files of
this room import only typer at module level, and a command imports its own file alone, so that it
starts at once.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import typer

from vlscore.cli.help_layout import GroupedCommand, GroupedCommands
from vlscore.cli.output import echo
from vlscore.core import INTERRUPTED, __version__, keep_freed_memory, print_stopped
from vlscore.errors import VLScoreError

# Purpose -> files of this room. Each has a function, or a typer app, of its own name.
_COMMANDS = {
    "Score reports": ("score", "explain", "evaluate", "report", "draw", "judge", "findings"),
    "Compare systems": ("compare", "methods", "baseline", "oracle"),
    "Judge metrics": (
        "align",
        "sensitivity",
        "perturb",
        "controlled",
        "failure_modes",
        "ratings",
    ),
    "Train and prepare": ("dataset", "pair", "train", "retrieval", "calibrate", "index"),
    "Look up": ("metrics", "encoders", "weights", "cache", "doctor"),
}

# Name of a command -> its file, its purpose.
_FILES = {
    file.replace("_", "-"): (file, purpose)
    for purpose, files in _COMMANDS.items()
    for file in files
}


class _Imported(Mapping[str, Any]):
    """Name -> command; a command's file is imported when the command is asked for."""

    def __iter__(self) -> Iterator[str]:
        yield from _FILES

    def __len__(self) -> int:
        return len(_FILES)

    def __getitem__(self, name: str) -> Any:
        return _command(name)


@cache
def _command(name: str) -> Any:
    part = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    part.callback()(lambda: None)
    file, purpose = _FILES[name]
    command = getattr(import_module(f"vlscore.cli.{file}"), file)
    if isinstance(command, typer.Typer):
        part.add_typer(command, rich_help_panel=purpose)
    else:
        part.command(cls=GroupedCommand, rich_help_panel=purpose)(command)
    made: Any = typer.main.get_command(part)
    return made.commands[name]


class _Commands(GroupedCommands):
    """The commands of `_COMMANDS`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Typer looks commands up here, and changes nothing.
        self.commands = _Imported()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of `_COMMANDS`."""
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; typer itself would end without a word at Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_stopped()
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="vlscore",
    cls=_Commands,
    help="Score generated chest X-ray reports against the radiograph and the reference.\n\n"
    "Start with: vlscore compare ours.csv theirs.csv --text-only --out compared\n\n"
    "vlscore COMMAND --help explains a command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", show_default=False
    ),
) -> None:
    if version:
        echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point: errors of ours are one line and exit status 2, not a traceback."""
    keep_freed_memory()
    try:
        # The same name in messages when started as `python -m vlscore`.
        app(prog_name="vlscore")
    except VLScoreError as error:
        echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        print_stopped()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has read enough; nothing may be written there when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
