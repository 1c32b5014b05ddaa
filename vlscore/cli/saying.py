"""What commands say besides their results, in the same words everywhere."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder

SHOWN_FAILURES = 10


def terminal_width() -> int:
    """Columns of the terminal, 80 where there is none; tables are not narrower than that."""
    import shutil

    return max(shutil.get_terminal_size((80, 24)).columns, 80)


def cache_hits(embedder: "StudyEmbedder | None") -> Callable[[], str]:
    """What tells a line of progress how much came from the cache."""
    return str if embedder is None else embedder.engine.work.said


def say_of_encoder(embedder: "StudyEmbedder | None") -> None:
    """Warn of the demonstration encoder, once the command has something to show."""
    if embedder is not None and embedder.encoder.card.demonstration:
        typer.secho(
            "warning: the bundled encoder was trained on synthetic phantoms, for demonstration and "
            "tests: its scores of real radiographs mean nothing. Name a real one with --encoder; "
            "`vlscore encoders` lists them",
            fg="yellow",
            err=True,
        )


def say_of_precision(embedder: "StudyEmbedder | None") -> None:
    """Say, before the work begins, where the precision asked for is no gain on this machine."""
    from vlscore.encoders import why_slow

    if embedder is not None:
        reason = why_slow(embedder.engine.precision, embedder.encoder.device)
        if reason is not None:
            typer.echo(f"note: {reason}", err=True)


def say_of_run(
    notes: Iterable[str],
    out: Path | None,
    *,
    unchanged: bool,
    resumed_from: int = 0,
    done: str = "computed",
) -> None:
    """Say on stderr what to know of a run besides its results.

    Args: done: what an unchanged run did not do again, as in "embedded".
    """
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if unchanged:
        typer.echo(f"{out} holds these results already; nothing was {done}", err=True)
    elif resumed_from:
        typer.echo(f"went on after row {resumed_from}", err=True)


def say_of_failures(shown: "list[tuple[int, str, str]]", count: int, what: str) -> None:
    """List the first failed rows on stderr.

    Args:
        shown: (row, id, reason), SHOWN_FAILURES of them where there are so many.
        count: of all failed rows.
        what: they are, as in "rows lack a value".
    """
    if not count:
        return
    typer.secho(f"{count} {what}:", fg="red", err=True)
    for row, study_id, error in shown[:SHOWN_FAILURES]:
        name = f"row {row} ({study_id})" if study_id else f"row {row}"
        typer.echo(f"  {name}: {error}", err=True)
    if len({row for row, _, _ in shown[:SHOWN_FAILURES]}) < count:
        typer.echo("  ... and more", err=True)
