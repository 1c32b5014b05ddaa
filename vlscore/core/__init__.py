"""Files, folders of results, the cache, registries, processes; nothing about radiology."""

from typing import Any

import lazy_loader

from vlscore.core.other_package import THEIR_NAMES, their_name, warn_of_conflict

_own_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    return their_name(name) if name in THEIR_NAMES else _own_name(name)


warn_of_conflict()
