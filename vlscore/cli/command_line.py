"""The command line: every command parses, calls one function of a room below, and prints.

A new command is one file here and one line in `_COMMANDS`, in the group of its purpose. Files of
this room import only typer at module level, so that `vlscore --help` answers at once.
"""

import os
import sys
from importlib import import_module

import typer

from vlscore.cli.output import GroupedCommand, GroupedCommands, echo
from vlscore.core import INTERRUPTED, __version__, keep_freed_memory, say_stopped
from vlscore.errors import VLScoreError

app = typer.Typer(
    name="vlscore",
    cls=GroupedCommands,
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


# Purpose -> files of this room. Each has a function, or a typer app, under its own name or `app`.
_COMMANDS = {
    "Score reports": (
        "score",
        "explain",
        "evaluate",
        "report",
        "draw",
        "judge",
        "findings",
    ),
    "Compare systems": (
        "compare",
        "methods",
        "baseline",
        "oracle",
    ),
    "Judge metrics": (
        "align",
        "sensitivity",
        "perturb",
        "controlled",
        "orders",
        "failure_modes",
        "ratings",
    ),
    "Train and prepare": (
        "dataset",
        "pair",
        "train",
        "retrieval",
        "calibrate",
        "index",
    ),
    "Look up": (
        "metrics",
        "encoders",
        "weights",
        "cache",
        "bench",
        "doctor",
    ),
}


def _register() -> None:
    for purpose, names in _COMMANDS.items():
        for name in names:
            module = import_module(f"vlscore.cli.{name}")
            command = getattr(module, "app", None) or getattr(module, name)
            if isinstance(command, typer.Typer):
                app.add_typer(command, rich_help_panel=purpose)
            else:
                app.command(cls=GroupedCommand, rich_help_panel=purpose)(command)
    former = import_module("vlscore.cli.ratings").rating_sheets
    app.command(name="rating-sheets", cls=GroupedCommand, hidden=True)(former)


_register()


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
        say_stopped()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has read enough; nothing may be written there when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
