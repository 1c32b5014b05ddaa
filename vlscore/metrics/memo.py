"""Memory of what metrics read in texts: in this process, then in the cache on disk.

`Memo.read` remembers in memory alone what is quick to make again (findings, statements).
`Memo.annotate` also stores between runs what networks read: each value the moment it is computed.
`loaded_once` leaves a model in memory until one of its files changes.
"""

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from threading import RLock
from typing import Any, ParamSpec, TypeVar

from vlscore.core import (
    Cache,
    LRUCache,
    __version__,
    file_digest,
    libraries,
    open_cache,
    text_digest,
)

# A report, or the texts of a pair.
Input = str | tuple[str, ...]
Read = TypeVar("Read")
Parameters = ParamSpec("Parameters")
Loaded = TypeVar("Loaded")

# Distinct contents whose values stay in memory: references repeat across generators.
_REMEMBERED = 10_000
# Contents whose values are stored at once; similar lengths are read together.
_AT_ONCE = 512


class Memo:
    """Memory of what is read in reports, shared by all metrics of this process.

    Args: cache: cache on disk, as `open_cache` takes it; False: nothing is stored between runs.

    Attributes:
        reports_annotated: number of distinct reports that went through a network.
        annotations_from_cache: number of distinct reports whose annotation was in the cache.
    """

    def __init__(self, cache: Cache | bool | str | os.PathLike[str] = False) -> None:
        self._setting = cache
        self.reports_annotated = 0
        self.annotations_from_cache = 0

    @cached_property
    def cache(self) -> Cache | None:
        """The cache on disk, opened at its first use; None for no cache."""
        return open_cache(self._setting)

    def read(
        self, make: Callable[[Sequence[Any]], Sequence[Read]], texts: Sequence[str]
    ) -> list[Read]:
        """Return what a function reads in each text; each distinct text is read once.

        Args: make: a function of a module; the value of a text does not depend on other texts.
        """
        found: list[Read] = _memory_of(make).values_of(texts, make)
        return found

    def annotate(
        self,
        facts: Mapping[str, Any],
        contents: Sequence[Input],
        make: Callable[[list[Any]], Iterable[Read]],
        *,
        pack: Callable[[Read], Any] = lambda value: value,
        unpack: Callable[[Any], Read] = lambda value: value,
        at_once: int = _AT_ONCE,
        is_counted: bool = True,
    ) -> list[Read]:
        """Return what a network reads in each text or pair; each distinct one is read once.

        Args:
            facts: all that the values depend on besides the content; data for json.
            make: computes the values of distinct contents, in their order.
            pack: returns a value as an array, or as data for json.
            unpack: the opposite.
            at_once: contents of one call of `make`, whose values are then stored.
            is_counted: whether the contents are reports, and count as annotated.
        """
        facts = {**facts, "code": __version__, "libraries": libraries()}
        names = None if self.cache is None else self.cache.namespace(facts)

        def of_new(new: list[Any]) -> list[Read]:
            stored = {} if names is None else names.get(new)
            found = {content: unpack(value) for content, value in stored.items()}
            rest = sorted((content for content in new if content not in found), key=_length)
            for start in range(0, len(rest), at_once):
                part = rest[start : start + at_once]
                made = dict(zip(part, make(part), strict=True))
                if names is not None:
                    names.put({content: pack(value) for content, value in made.items()})
                found |= made
            if is_counted:
                self.annotations_from_cache += len(new) - len(rest)
                self.reports_annotated += len(rest)
            return [found[content] for content in new]

        with _LOCK:
            memory = _memory_of(json.dumps(facts, sort_keys=True))
            values: list[Read] = memory.values_of(contents, of_new)
            return values


_LOCK = RLock()


@lru_cache(maxsize=16)
def _memory_of(kind: Hashable) -> LRUCache[Input, Any]:
    return LRUCache(_REMEMBERED)


def forget() -> None:
    """Empty the memory of this process."""
    _memory_of.cache_clear()


def _length(content: Input) -> tuple[int, Input]:
    return len(content) if isinstance(content, str) else sum(map(len, content)), content


def digests_of(*paths: Path) -> tuple[str, ...]:
    """Return path and digest of each file, and of a folder's files, to detect a change."""
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.is_file()
    ]
    return tuple(f"{file} {file_digest(file)}" for file in files)


def loaded_once(
    files: Callable[..., Iterable[Path]], maxsize: int = 1
) -> Callable[[Callable[Parameters, Loaded]], Callable[Parameters, Loaded]]:
    """Return a decorator of a function that reads files: its latest results stay in memory.

    Args:
        files: function of the same arguments that returns the files. If one of them has changed,
            it is read again.
        maxsize: number of results that stay.
    """

    def decorate(load: Callable[Parameters, Loaded]) -> Callable[Parameters, Loaded]:
        @lru_cache(maxsize=maxsize)
        def of_digests(digests: tuple[str, ...], *args: Any, **keywords: Any) -> Loaded:
            return load(*args, **keywords)

        @wraps(load)
        def loaded(*args: Parameters.args, **keywords: Parameters.kwargs) -> Loaded:
            digests = digests_of(*files(*args, **keywords))
            return of_digests(digests, *args, **keywords)  # type: ignore[arg-type]

        return loaded

    return decorate


def name_and_digest(
    path: Path, files: Sequence[Path] | None = None, *, excluded: tuple[str, ...] = ()
) -> str:
    """Return "name@digest", with the first twelve digits of `content_digest`."""
    digest = content_digest(path, files, excluded=excluded)
    return f"{path.name.replace('|', '_')}@{digest[:12]}"


def content_digest(
    path: Path, files: Sequence[Path] | None = None, *, excluded: tuple[str, ...] = ()
) -> str:
    """Return the SHA-256 of a file, or of the files of a folder.

    Args:
        files: the files of the folder that count; default: all of them.
        excluded: names of files in the folder that do not belong to the weights.
    """
    if files is None and not path.is_dir():
        return file_digest(path)
    if files is None:
        files = [f for f in sorted(path.rglob("*")) if f.is_file() and f.name not in excluded]
    lines = [f"{file.relative_to(path)} {file_digest(file)}" for file in files]
    return text_digest("\n".join(lines)).hex()
