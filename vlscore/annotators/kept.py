"""What annotators read in reports, kept on disk between runs.

Annotations lie in the cache's file of embeddings, under the SHA-256 of the report and whatever else
they depend on. No word of a report lies there: RadGraph's entities are kept as positions, and their
words are taken from the report again.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from vlscore._record import libraries
from vlscore._signature import stable_class, stable_module
from vlscore._version import __version__
from vlscore.cache import Cache, Entry
from vlscore.cache.store import Space

# Gives what names the files of an annotator: SHA-256 of each.
Digests = Callable[[], Mapping[str, str]]


class KeptAnnotator(Protocol):
    """An annotator whose annotations can be kept.

    Attributes:
        identity: all that its annotations depend on besides its files; json.
    """

    identity: Mapping[str, Any]

    def annotate(self, reports: Sequence[str]) -> Sequence[Any]:
        """What it reads in each report."""

    def entry_of(self, annotation: Any) -> Entry:
        """An annotation as it is kept."""

    def annotation_of(self, entry: Entry, report: str) -> Any | None:
        """The annotation of this report; None where the entry holds something else."""


@dataclass
class KeptAnnotations:
    """Where annotations are kept between runs, and how much was read anew.

    Attributes:
        cache: None where nothing is kept.
        reports_annotated: distinct reports that went through a network.
        annotations_from_cache: those whose annotation lay in the cache.
    """

    cache: Cache | None = None
    reports_annotated: int = 0
    annotations_from_cache: int = 0

    def to_dict(self) -> dict[str, int]:
        """Name -> count."""
        return {
            "reports_annotated": self.reports_annotated,
            "annotations_from_cache": self.annotations_from_cache,
        }

    def annotated(
        self,
        annotator: KeptAnnotator,
        files: Digests,
        reports: Sequence[str],
    ) -> dict[str, Any]:
        """Distinct report -> its annotation, from the cache where it lies there.

        Args: files: the digests of the annotator's files; asked for where there is a cache.
        """
        distinct = list(dict.fromkeys(reports))
        found: dict[str, Any] = {}
        space = self._space(annotator, files)
        if space is not None:
            entries = space.get(map(_content, distinct))
            for report in distinct:
                entry = entries.get(_content(report))
                known = None if entry is None else annotator.annotation_of(entry, report)
                if known is not None:
                    found[report] = known
        self.annotations_from_cache += len(found)
        new = [report for report in distinct if report not in found]
        if new:
            read = dict(zip(new, annotator.annotate(new), strict=True))
            self.reports_annotated += len(read)
            if space is not None:
                space.put({_content(r): annotator.entry_of(each) for r, each in read.items()})
            found |= read
        return found

    def _space(self, annotator: KeptAnnotator, files: Digests) -> Space | None:
        if self.cache is None:
            return None
        kind = type(annotator)
        facts = {
            "holds": "annotations",
            "annotator": stable_class(kind),
            "code": f"{stable_module(kind)} {__version__}",
            "libraries": _versions(),
            **files(),
            **annotator.identity,
        }
        return self.cache.embeddings.space(facts)


def json_entry(content: Any) -> Entry:
    """Something that json can write, as it is kept."""
    value = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()
    return Entry(value, (len(value),))


def json_content(entry: Entry) -> Any:
    """What `json_entry` kept; None where the entry is no json."""
    try:
        return json.loads(entry.value)
    except ValueError:
        return None


@cache
def _versions() -> dict[str, str | None]:
    return libraries()


def _content(report: str) -> bytes:
    return hashlib.sha256(report.encode("utf-8", "surrogatepass")).digest()
