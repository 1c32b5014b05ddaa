"""`vlscore doctor`: what is installed, what was found, and what to do about the rest."""

from vlscore.cli.output import echo, print_json, terminal_width
from vlscore.cli.shared import AsJson

_NOT_READY = 1


def doctor(*, as_json: AsJson = False) -> None:
    """Check the installation: libraries, device, encoders, metrics.

    Prints what is installed with its version, the device that would compute, which encoders and
    metrics can be used, and what to do about the others. No network is used.

    The exit status is 0 if every command can run, else 1. Encoders, metrics and extras that are
    not installed do not change it.
    """
    from vlscore.evaluation import doctor as examine

    found = examine()
    if as_json:
        print_json(found.to_dict())
    else:
        echo(found.text(terminal_width()))
    if not found.is_ready:
        raise SystemExit(_NOT_READY)
