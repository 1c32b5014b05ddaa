"""`python -m vlscore`, and the command `vlscore`."""

import sys

from vlscore.core import INTERRUPTED, print_stopped


def main() -> None:
    """Run the command line, which Ctrl-C ends in one line."""
    try:
        from vlscore.cli import main as command

        command()
    except KeyboardInterrupt:
        print_stopped()
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
