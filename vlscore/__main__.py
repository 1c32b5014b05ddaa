"""`python -m vlscore`, and the command `vlscore`."""

import sys

from vlscore.core import INTERRUPTED, end_at_interrupts, print_stopped, watch_for_interrupts


def main() -> None:
    """The command line, which Ctrl-C ends in one line from its first moment to its last."""
    watch_for_interrupts()
    try:
        from vlscore.cli import main as command

        command()
    except KeyboardInterrupt:
        print_stopped()
        sys.exit(INTERRUPTED)
    finally:
        end_at_interrupts()


if __name__ == "__main__":
    main()
