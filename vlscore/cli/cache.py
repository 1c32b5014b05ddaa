"""`vlscore cache`: what is stored between runs, and how to remove it."""

import sqlite3

from cyclopts import App

from vlscore.cli.output import echo

cache = App(
    name="cache",
    group_commands="Commands",
    help="Show and delete what is stored between runs.\n\n"
    "These are embeddings, the output of networks that read reports, and answers of language "
    "models.",
)

_GIB, _MIB = 1 << 30, 1 << 20


@cache.command
def info() -> None:
    """Print where the cache is, how large it is, and how many values it holds.

    VLSCORE_CACHE names another folder, or is "off"; VLSCORE_CACHE_GIB is its largest size in GiB.
    """
    from vlscore.core import open_cache

    cache = open_cache()
    if cache is None:
        echo("the cache is off (VLSCORE_CACHE=off)")
        return
    try:
        count, used = cache.size()
    except (sqlite3.Error, OSError) as error:
        echo(f"{cache.path} cannot be read ({error}); `vlscore cache clear` deletes it", err=True)
        raise SystemExit(1) from None
    echo(f"folder {cache.folder}")
    echo(f"{count:,} values, {used / _MIB:.1f} MiB of {cache.most_bytes / _GIB:.1f} GiB")


@cache.command
def clear() -> None:
    """Delete everything that is stored. Do not use it while a run is using the cache."""
    from vlscore.core import open_cache
    from vlscore.errors import InvalidSetting

    cache = open_cache()
    if cache is None:
        raise InvalidSetting("the cache is off (VLSCORE_CACHE=off): there is nothing to delete")
    cache.clear()
    echo(f"{cache.path} deleted")
