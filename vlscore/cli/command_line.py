"""The command line: every command parses, calls one function of a room below, and prints.

A new command is one file here and one line in `_register`. Files of this room import only typer
at module level, so that `vlscore --help` answers at once.
"""

import os
import sys

import typer

from vlscore.cli.output import GroupedCommand, echo
from vlscore.core import INTERRUPTED, __version__, keep_freed_memory, say_stopped
from vlscore.errors import VLScoreError

app = typer.Typer(
    name="vlscore",
    help="Image-aware evaluation of generated chest X-ray reports.",
    no_args_is_help=True,
    add_completion=False,
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


def _register() -> None:
    from vlscore.cli import (
        align,
        bench,
        cache,
        calibrate,
        compare,
        controlled,
        dataset,
        draw,
        encoders,
        evaluate,
        failure_modes,
        findings,
        index,
        judge,
        methods,
        metrics,
        oracle,
        orders,
        perturb,
        rating_sheets,
        retrieval,
        score,
        sensitivity,
        train,
        weights,
    )

    for command in (
        score.score,
        evaluate.evaluate,
        compare.compare,
        draw.draw,
        methods.methods,
        metrics.metrics,
        encoders.encoders,
        dataset.dataset,
        findings.findings,
        judge.judge,
        perturb.perturb,
        sensitivity.sensitivity,
        align.align,
        orders.orders,
        rating_sheets.rating_sheets,
        failure_modes.failure_modes,
        controlled.controlled,
        oracle.oracle,
        retrieval.retrieval,
        train.train,
        bench.bench,
        calibrate.calibrate,
    ):
        app.command(cls=GroupedCommand)(command)
    app.add_typer(weights.app, name="weights")
    app.add_typer(index.index, name="index")
    app.add_typer(cache.app, name="cache")


_register()


def main() -> None:
    """Entry point: errors of ours are one line and exit status 2, not a traceback."""
    keep_freed_memory()
    try:
        app()
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
