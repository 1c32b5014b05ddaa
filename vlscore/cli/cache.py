"""`vlscore cache`: what is stored between runs, and how to remove it."""

import sqlite3
from typing import Annotated

import typer

from vlscore.cli.help_layout import GroupedCommand, GroupedCommands
from vlscore.cli.options import option
from vlscore.cli.output import echo

cache = typer.Typer(
    name="cache",
    cls=GroupedCommands,
    help="Show, shrink and check what is stored between runs.\n\n"
    "These are decoded images, embeddings, and what networks read in reports.",
    no_args_is_help=True,
)

_DAMAGED = 1
_GIB, _MIB = 1 << 30, 1 << 20


@cache.command(cls=GroupedCommand)
def info() -> None:
    """Print where the cache is, how large it is, and what it stores.

    VLSCORE_CACHE names another folder, or is "off"; VLSCORE_CACHE_GIB is its largest size in GiB.
    """
    from vlscore.core import open_cache
    from vlscore.stats import TextTable

    cache = open_cache()
    if cache is None:
        echo("the cache is off (VLSCORE_CACHE=off)")
        return
    echo(f"folder {cache.folder}")
    rows: list[tuple[str, ...]] = []
    for store in cache.stores:
        used = f"{store.used_bytes() / _MIB:.1f} MiB of {store.most_bytes / _GIB:.1f} GiB"
        echo(f"{store.path.name}: {used}")
        for space in store.info():
            facts = space.facts
            detail = ", ".join(str(facts[k]) for k in ("precision", "device") if k in facts)
            name = ""
            if "encoder" in facts:
                name = f"{facts['encoder']}@{facts['checksum'][:12]}"
            if "annotator" in facts:
                name = f"{facts['annotator']}@{facts['weights'][:12]}"
            if facts["holds"] == "answers":
                name = str(facts["model"])
            rows.append(
                (
                    str(facts["holds"]),
                    name or str(facts.get("pipeline", ""))[:40],
                    detail,
                    f"{space.entries:,}",
                    f"{space.bytes / _MIB:.1f}",
                )
            )
    if rows:
        columns = ("holds", "of", "computed in", "entries", "MiB")
        echo(TextTable("", columns, tuple(rows), "").text(100))


@cache.command(cls=GroupedCommand)
def prune(
    gib: Annotated[
        float | None, option("--to", "Largest size after the command.", "GIB", min=0.0)
    ] = None,
    everything: Annotated[bool, option("--all", "Delete all files of the cache.")] = False,
) -> None:
    """Delete the entries that were used longest ago.

    Without --to, the cache shrinks to VLSCORE_CACHE_GIB. --all deletes the files, also damaged
    ones; use it while no run is using them.

    Example: vlscore cache prune --to 2
    """
    from vlscore.core import open_cache
    from vlscore.errors import InvalidSetting

    cache = open_cache()
    if cache is None:
        raise InvalidSetting("the cache is off (VLSCORE_CACHE=off): there is nothing to prune")
    if everything and gib is not None:
        raise InvalidSetting("--all removes everything, --to what exceeds a size: use one of them")
    for store in cache.stores:
        if everything:
            store.remove()
            echo(f"{store.path.name}: deleted")
            continue
        most = store.most_bytes
        if gib is not None:
            most = int(gib * _GIB * most / sum(each.most_bytes for each in cache.stores))
        try:
            won = store.prune(most)
        except sqlite3.Error as error:
            raise InvalidSetting(_damaged(store.path, error)) from None
        echo(f"{store.path.name}: {won / _MIB:.1f} MiB thrown away")


@cache.command(cls=GroupedCommand)
def verify() -> None:
    """Read every entry, and delete damaged ones; the exit status is 1 if there were any."""
    from vlscore.core import open_cache

    cache = open_cache()
    if cache is None:
        echo("the cache is off (VLSCORE_CACHE=off)")
        return
    bad = False
    for store in cache.stores:
        try:
            count, damaged = store.verify()
        except (sqlite3.Error, OSError) as error:
            echo(_damaged(store.path, error), fg="red", err=True)
            bad = True
            continue
        bad = bad or damaged > 0
        what = f"{damaged} damaged, thrown away" if damaged else "all whole"
        echo(f"{store.path.name}: {count:,} entries, {what}")
    if bad:
        raise typer.Exit(_DAMAGED)


def _damaged(path: object, error: Exception) -> str:
    return (
        f"{path} is damaged as a whole ({error}). `vlscore cache prune --all` deletes it; what it "
        "held is computed anew"
    )
