"""`vlscore again`: a finished run, repeated."""

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from vlscore.cli.output import echo
from vlscore.core import RECORD, FinishedRun, finished_run
from vlscore.errors import InvalidSetting

_DIFFERS = 1
_REFUSED = 2


def again(
    run: Path,
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder for the repeated run. Default: nothing is computed.")
    ] = None,
) -> None:
    """Repeat a finished run with the same command and options.

    They are in its run.json. First, the command runs on the folder of the run: it is refused where
    a table, an image, a setting or a version has changed since, and the message says what. With
    --out, everything is then computed again, into another folder, and compared with the first run,
    file by file.

    The exit status is 0 where all results are the same, 1 where some differ, 2 where inputs do.
    `vlscore --again run.json` is the same.

    Example: vlscore again out/run.json --out again

    Args:
        run: Folder of a finished run, or its run.json.
    """
    folder = run.parent if run.name == RECORD else run
    first = finished_run(folder)
    if first is None:
        raise InvalidSetting(f"{folder} has no {RECORD}: name the folder of a finished run")
    arguments, place = _call(first)
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(shown):
        status = _run(_into(arguments, folder.absolute()), place)
    if status >= _REFUSED:
        echo(shown.getvalue(), err=True, end="")
        raise SystemExit(status)
    if out is None:
        echo(shown.getvalue(), end="")
        echo(f"the command, its inputs and its results are unchanged: {' '.join(arguments)}")
        echo("to compute everything again: --out FOLDER")
        return
    echo(f"note: vlscore {' '.join(arguments)}", err=True)
    status = _run(_into(arguments, out.absolute()), place)
    if status >= _REFUSED:
        raise SystemExit(status)
    second = finished_run(out)
    assert second is not None
    _compare(first, second)


def _call(run: FinishedRun) -> tuple[list[str], Path]:
    """Return what stood behind "vlscore", without --overwrite, and the folder it ran in.

    Raises: InvalidSetting for a run of another program, or of a folder that is gone.
    """
    record: dict[str, Any] = run.record
    program, *arguments = map(str, record.get("command") or ["nothing"])
    if Path(program).name not in ("vlscore", "__main__.py"):
        raise InvalidSetting(
            f"{run.folder / RECORD} was written by {program}, not by the command vlscore: run that "
            "program again"
        )
    place = Path(record.get("directory") or ".")
    if not place.is_dir():
        raise InvalidSetting(f"the command ran in {place}, and this folder no longer exists")
    return [each for each in arguments if each != "--overwrite"], place


def _into(arguments: Sequence[str], out: Path) -> list[str]:
    """Return the arguments with another folder for the results."""
    found: list[str] = []
    skips = False
    for each in arguments:
        if skips or each.startswith("--out="):
            skips = False
        elif each in ("--out", "-o"):
            skips = True
        else:
            found.append(each)
    return [*found, "--out", str(out)]


def _run(arguments: Sequence[str], place: Path) -> int:
    """Run a command in a folder, as if the user had typed it there; return its exit status."""
    from vlscore.cli.app import command_line

    with contextlib.chdir(place), _called(arguments):
        return command_line(arguments)


@contextlib.contextmanager
def _called(arguments: Sequence[str]) -> Iterator[None]:
    """Have run.json record this command, so that its run can be repeated, too."""
    own, sys.argv = sys.argv, ["vlscore", *arguments]
    try:
        yield
    finally:
        sys.argv = own


def _compare(first: FinishedRun, second: FinishedRun) -> None:
    """Print which results differ. Raises: SystemExit with status 1 where some do."""
    names = [*first.digests, *(name for name in second.digests if name not in first.digests)]
    differ = [name for name in names if first.digests.get(name) != second.digests.get(name)]
    if not differ:
        echo(f"all {len(names)} results equal those of {first.folder}, byte for byte")
        return
    echo(f"results differ from those of {first.folder}: {', '.join(differ)}", err=True)
    raise SystemExit(_DIFFERS)
