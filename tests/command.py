"""Running a command in this process, as the terminal would."""

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

from vlscore.cli import command_line


@dataclass(frozen=True)
class Done:
    """What a command did: its exit status, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both, for a message."""
        return self.stdout + self.stderr


def run_command(*arguments: object, columns: int = 250) -> Done:
    """Run `vlscore` with these arguments on a terminal of so many columns."""
    out, err = io.StringIO(), io.StringIO()
    with _streams(out, err), mock.patch.dict("os.environ", COLUMNS=str(columns)):
        status = command_line([*map(str, arguments)])
    return Done(status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _streams(out: io.StringIO, err: io.StringIO) -> Iterator[None]:
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
        sys.stdout.flush()
