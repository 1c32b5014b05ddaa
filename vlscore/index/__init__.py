"""An index on disk: the embedded reports (or radiographs) of a table, for the oracle to search."""

from vlscore.index.build import BuildResult, add_to_index, build_index
from vlscore.index.items import SourceSettings
from vlscore.index.manifest import Manifest
from vlscore.index.store import Index, load_index
from vlscore.index.verify import verify_index

__all__ = [
    "BuildResult",
    "Index",
    "Manifest",
    "SourceSettings",
    "add_to_index",
    "build_index",
    "load_index",
    "verify_index",
]
