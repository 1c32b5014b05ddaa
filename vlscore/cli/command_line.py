"""The command line: every command parses, calls one function of a room below, and prints.

A new command is one file here and one line in `_register`, in the group of its purpose. Files of
this room import only typer at module level, so that `vlscore --help` answers at once.
"""

import os
import sys

import typer

from vlscore.cli.output import GroupedCommand, GroupedCommands, echo
from vlscore.core import INTERRUPTED, __version__, keep_freed_memory, say_stopped
from vlscore.errors import VLScoreError

app = typer.Typer(
    name="vlscore",
    cls=GroupedCommands,
    help="Score generated chest X-ray reports against the radiograph and the reference.\n\n"
    "Every command explains itself: vlscore COMMAND --help.",
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


def _register() -> None:
    from vlscore.cli import (
        align,
        baseline,
        bench,
        cache,
        calibrate,
        compare,
        controlled,
        dataset,
        doctor,
        draw,
        encoders,
        evaluate,
        explain,
        failure_modes,
        findings,
        index,
        judge,
        methods,
        metrics,
        oracle,
        orders,
        pair,
        perturb,
        ratings,
        report,
        retrieval,
        score,
        sensitivity,
        train,
        weights,
    )

    groups = {
        "Score reports": (
            score.score,
            explain.explain,
            evaluate.evaluate,
            report.report,
            draw.draw,
            judge.judge,
            findings.findings,
        ),
        "Compare systems": (
            compare.compare,
            methods.methods,
            baseline.baseline,
            oracle.oracle,
        ),
        "Judge metrics": (
            align.align,
            sensitivity.sensitivity,
            perturb.perturb,
            controlled.controlled,
            orders.orders,
            failure_modes.failure_modes,
            ratings.ratings,
        ),
        "Train and prepare": (
            dataset.dataset,
            pair.pair,
            train.train,
            retrieval.retrieval,
            calibrate.calibrate,
            index.index,
        ),
        "Look up": (
            metrics.metrics,
            encoders.encoders,
            weights.app,
            cache.app,
            bench.bench,
            doctor.doctor,
        ),
    }
    for purpose, commands in groups.items():
        for command in commands:
            if isinstance(command, typer.Typer):
                app.add_typer(command, rich_help_panel=purpose)
            else:
                app.command(cls=GroupedCommand, rich_help_panel=purpose)(command)
    app.command(name="rating-sheets", cls=GroupedCommand, hidden=True)(ratings.rating_sheets)


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
