"""What was computed before, kept on disk between runs: decoded pixels and embeddings."""

from vlscore.cache.place import Cache, cache_folder, open_cache
from vlscore.cache.store import Entry, Store

__all__ = ["Cache", "Entry", "Store", "cache_folder", "open_cache"]
