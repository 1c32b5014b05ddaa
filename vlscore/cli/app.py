"""The command line: every command parses, calls one function of the library, and prints.

A new command is one file here, with a function of its name, and one line in `COMMANDS`. The
parameters of the function are the command's options, and its docstring is the help; see
`vlscore.cli.shared`. A command imports its own file alone, so that it starts at once.
"""

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter

import vlscore.core
from vlscore.cli.help_page import HelpPage
from vlscore.cli.output import echo
from vlscore.cli.shared import parameter_value
from vlscore.core import INTERRUPTED, keep_freed_memory, print_stopped
from vlscore.errors import VLScoreError

# Purpose -> command -> first sentence of its help. The file of failure-modes is failure_modes.py.
COMMANDS = {
    "Score reports": {
        "score": "Score one generated report against its image and reference.",
        "explain": "Explain the score of one report: its errors and sentences.",
        "evaluate": "Compute metrics for every study of a table.",
        "report": "Make an HTML page that shows which studies are bad, and why.",
        "draw": "Draw the figures of finished runs.",
        "judge": "Name each error of a report, how severe it is, and why.",
        "claims": "Check every claim of the reports against the images.",
        "findings": "Label reports with CheXpert's fourteen observations.",
    },
    "Compare systems": {
        "compare": "Compare systems that wrote reports for the same studies.",
        "methods": "Print a paragraph for a methods section, with its BibTeX entries.",
        "audit": "Test whether a generator uses the film, by altering films.",
        "watch": "Monitor a generator: compare today's reports with earlier ones.",
        "baseline": "Write the candidates of a simple generator, for comparison.",
        "oracle": "Find the reports of a corpus with the best scores for a study.",
    },
    "Judge metrics": {
        "align": "Measure how well metrics agree with radiologists' ratings.",
        "sensitivity": "Show which changes of a report each metric notices.",
        "perturb": "Make changed copies of reports to test metrics with.",
        "controlled": "Test metrics on sentences whose meaning is known.",
        "failure-modes": "Show the errors of the reports that each metric prefers.",
        "ratings": "Make blinded sheets for raters, and read their answers.",
    },
    "Train and prepare": {
        "dataset": "Make a table of studies from a published data set.",
        "pair": "Join references and candidates of two files to one table.",
        "train": "Train an encoder on images and their reports.",
        "retrieval": "Test whether an encoder finds the report of each image.",
        "calibrate": "Measure C, the area at which VLScore is 0, for an encoder.",
        "index": "Build a searchable corpus of reports.",
    },
    "Look up": {
        "demo": "Compare two bundled generators of reports, with images.",
        "again": "Repeat a finished run with the same command and options.",
        "metrics": "List the metrics, or show everything about one.",
        "encoders": "List the encoders, or show everything about one.",
        "weights": "Find, fetch, check and convert files of encoders and metrics.",
        "cache": "Show and delete what is stored between runs.",
        "doctor": "Check the installation: libraries, device, encoders, metrics.",
    },
}

# Option -> its short name, in every command.
_SHORT_NAMES = {
    "candidate": "-g",
    "encoder": "-e",
    "image": "-i",
    "index": "-i",
    "k": "-k",
    "metric": "-m",
    "metrics": "-m",
    "out": "-o",
    "perturbations": "-p",
    "quiet": "-q",
    "reference": "-r",
}


def _from_config(app: Any, commands: Any, arguments: Any) -> None:
    """Take options of `vlscore train` from the file of --config."""
    from vlscore.cli.train import from_config

    from_config(arguments)


app = App(
    name="vlscore",
    help="Score generated chest X-ray reports against the radiograph and the reference.\n\n"
    "Start with: vlscore demo\n\n"
    "Tables of your own: vlscore compare ours.csv theirs.csv --text-only --out compared\n\n"
    "vlscore COMMAND --help explains a command.",
    # Looked up when it is printed: its file loads what --help does without.
    version=lambda: vlscore.core.__version__,
    help_flags=["--help", "-h"],
    help_format="plaintext",
    help_formatter=HelpPage(
        {name: text for each in COMMANDS.values() for name, text in each.items()}
    ),
    default_parameter=Parameter(
        # No --no-x next to --x, no json as a value; names with commas; --C, not --c.
        negative=(),
        json_dict=False,
        json_list=False,
        short_alias=lambda field, taken: _SHORT_NAMES.get(field.name),
        converter=parameter_value,
        name_transform=lambda name: name.replace("_", "-"),
    ),
    group_commands=Group("Options", sort_key=0),
    group_arguments=Group("Arguments", sort_key=0),
    group_parameters=Group("Options", sort_key=1),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    exit_on_error=False,
    print_error=False,
)
app.register_install_completion_command(
    help="Let the Tab key complete commands and options.", group=app.group_commands
)
for _number, (_purpose, _commands) in enumerate(COMMANDS.items(), 1):
    _group = Group(_purpose, sort_key=_number)
    for _place, _name in enumerate(_commands):
        _file = _name.replace("-", "_")
        _function = f"vlscore.cli.{_file}:{_file}"
        _more: dict[str, Any] = {"config": _from_config} if _name == "train" else {}
        app.command(_function, name=_name, group=_group, sort_key=_place, **_more)


def commands() -> dict[str, App]:
    """Return every command by its words, as in "index build"; all of them are imported."""
    found: dict[str, App] = {}
    for name in (name for purpose in COMMANDS.values() for name in purpose):
        below = [each for each in app[name] if not each.startswith("-")]
        found |= {f"{name} {each}": app[name][each] for each in below} or {name: app[name]}
    return found


def command_line(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status: 2 after an error, which is one line on stderr.

    Args: arguments: what stands behind "vlscore"; default: those of the process.
    """
    given = sys.argv[1:] if arguments is None else [*arguments]
    if "--again" in given[:2]:
        # The run.json names the command.
        given = ["again", *given[given.index("--again") + 1 :]]
    try:
        app(given)
    except (VLScoreError, CycloptsError) as error:
        echo(f"error: {error}", err=True)
        return 2
    except KeyboardInterrupt:
        print_stopped()
        return INTERRUPTED
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a sentence, without the line of source that Python adds."""
    echo(f"warning: {message}", err=True)


def main() -> None:
    """Entry point of the command `vlscore`."""
    keep_freed_memory()
    # Python looks for unused cycles of objects whenever so many are new. Its 700 are few for tables
    # and lexicons, which have no cycles: a tenth of the time of a short command.
    gc.set_threshold(50_000)
    warnings.showwarning = _show_warning
    try:
        sys.exit(command_line())
    except BrokenPipeError:
        # Whoever read our output has read enough; nothing may be written there when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
