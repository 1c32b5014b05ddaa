"""Results as people read them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlscore.display.run import run_table, scores_table

__all__ = ["run_table", "scores_table"]


def __getattr__(name: str) -> Any:
    # Tables of runs need torch to be imported, tables of encoders do not.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("vlscore.display.run"), name)
