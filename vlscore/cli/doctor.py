"""`vlscore doctor`: what is installed, and how to install what is missing."""

import platform
import textwrap
from functools import partial

from vlscore.cli.output import AsJson, echo, print_json, terminal_width
from vlscore.core import __version__

_NOT_READY = 1


def doctor(*, as_json: AsJson = False) -> None:
    """Check the installation: libraries, device, encoders, metrics.

    Prints the versions of libraries, the device that will be used, the encoders and metrics that
    can be used, and how to install the others. No network is used.

    The exit status is 0 if every command can run, else 1. Encoders, metrics and extras that are
    not installed do not change it.
    """
    from vlscore.evaluation import doctor as examine

    checks = examine()
    is_ready = not any(check.has_failed for check in checks)
    system = {
        "vlscore": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if as_json:
        found = [check._asdict() for check in checks]
        print_json({**system, "is_ready": is_ready, "checks": found})
    else:
        echo(f"vlscore {__version__}, Python {system['python']}, {system['system']}")
        fill = partial(
            textwrap.fill, width=terminal_width(), break_long_words=False, break_on_hyphens=False
        )
        topic, margin = "", " " * 11
        for check in checks:
            heading = check.topic if check.topic != topic else ""
            topic = check.topic
            echo(fill(check.fact, initial_indent=f"{heading:<11}", subsequent_indent=margin))
            if check.advice:
                indent = f"{margin}  "
                echo(fill(check.advice, initial_indent=indent, subsequent_indent=indent))
        problem = "Something is wrong or missing: see above."
        echo(f"\n{'Every command can run.' if is_ready else problem}")
    if not is_ready:
        raise SystemExit(_NOT_READY)
