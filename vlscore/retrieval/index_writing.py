"""Builder of an index from a table, which can also add to an index and resume a killed build.

Rows are embedded and stored in parts. When all parts are finished, the files of the index's next
generation are written, and its manifest last: this one replacement makes the new index current.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import (
    OnProgress,
    clear_discarded,
    confirm,
    discard_chunks,
    file_digest,
    is_discarding,
    no_progress,
    sole_writer,
    unfinished_key,
)
from vlscore.data import BadRow, format_of
from vlscore.embedding import StudyEmbedder
from vlscore.errors import ChecksumMismatch, InvalidIndex, InvalidSetting, InvalidTable
from vlscore.retrieval.index_check import remove_other_generations, source_number, write_generation
from vlscore.retrieval.index_folder import (
    MANIFEST,
    Index,
    Manifest,
    load_index,
    read_manifest,
    write_manifest,
)
from vlscore.retrieval.index_parts import (
    BuildKey,
    IndexParts,
    IndexSource,
    KnownTexts,
    index_signature,
    open_source,
    request_of,
)
from vlscore.retrieval.search_settings import SourceSettings
from vlscore.retrieval.vector_search.approximate import check_factory, has_faiss
from vlscore.stats import Run

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class BuildResult(Run):
    """Result of building an index, or of adding a table to one; `facts` is index.json.

    Attributes:
        index: the index, in `folder`.
    """

    index: Index = field(kw_only=True)

    @classmethod
    def of_index(
        cls, index: Index, added: int, repeated: int, bad: Iterable[BadRow], **further: Any
    ) -> "BuildResult":
        """Return the result of a build.

        Args:
            added: number of distinct texts that the table added.
            repeated: number of reports whose text was in the index before.
            bad: rows of the table that could not be used.
            further: `resumed_from`, `unchanged`.
        """
        failures = [{"row": b.row, "id": b.id, "reason": b.reason} for b in bad]
        content = {"added_rows": added, "repeated": repeated, "failures": failures}
        return cls(index.path, asdict(index.manifest), content, index=index, **further)

    @property
    def added_rows(self) -> int:
        """Number of distinct texts that this table added."""
        return int(self.content["added_rows"])

    @property
    def repeated(self) -> int:
        """Number of reports whose text was in the index before."""
        return int(self.content["repeated"])

    @property
    def bad_rows(self) -> list[BadRow]:
        """Rows of this table that could not be used."""
        return [BadRow(**each) for each in self.content["failures"]]

    @property
    def signatures(self) -> list[str]:
        """Settings that the vectors depend on."""
        return [self.index.manifest.signature]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a distinct text: row, ids (with ";"), text. Needs pandas."""
        return self.index.to_pandas()


def index_build(
    table: str | Path,
    out: str | Path,
    embedder: StudyEmbedder,
    settings: SourceSettings | None = None,
    *,
    approximate: str | None = None,
    flat: bool = True,
    overwrite: bool = False,
    workers: int = 0,
    on_progress: OnProgress | None = None,
) -> BuildResult:
    """Embed the reports (or images) of a table into an index.

    Equal texts become one row with all their ids. A call with the same arguments resumes a killed
    build; after the end of a build it changes nothing.

    Args:
        settings: which column and section of the table is embedded; default: whole reports.
        approximate: FAISS factory string ("IVF1024,Flat", "HNSW32", ...) for an approximate index
            in addition to exact search.
        flat: write a flat FAISS file of the vectors if there is no approximate one.
        overwrite: replace the index in `out`, or discard an unfinished build.
        workers: processes that decode images; 0 decodes in this one.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read, or none of its rows can be used.
        InvalidSetting: `out` holds another index, or an unfinished build of something else.
        FolderInUse: another process is writing it.
    """
    table, out = Path(table), Path(out)
    settings = settings or SourceSettings()
    format_of(table)
    flat = flat and has_faiss()
    if approximate is not None:
        check_factory(approximate, embedder.encoder.card.dim)
    with sole_writer(out):
        was_ending = is_discarding(out)
        clear_discarded(out)
        job = _IndexBuild(
            table, out, embedder, settings, on_progress, workers=workers, flat=flat, anew=overwrite
        )
        current = None
        if (out / MANIFEST).exists():
            current = _current(out, overwrite)
            if current is not None and (done := job.finish_committed(current)) is not None:
                return done
            # A build that was killed while it removed its parts is complete; do not repeat it.
            is_asked_for = current is not None and was_ending and job.has_made(current, approximate)
            if not overwrite or is_asked_for:
                assert current is not None
                return job.unchanged(current, approximate)
        base = job.empty_manifest(approximate, current.generation if current else 0)
        return job.extend(base, None)


def index_add(
    table: str | Path,
    path: str | Path,
    embedder: StudyEmbedder,
    settings: SourceSettings | None = None,
    *,
    workers: int = 0,
    on_progress: OnProgress | None = None,
) -> BuildResult:
    """Add the rows of another table to an index; the same encoder and policies are required.

    A text that the index holds already gets the new ids and is not embedded again; an id that a
    text has already is not repeated. A call with the same arguments resumes after a kill.

    Args: workers: processes that decode images; 0 decodes in this one.
    Raises: InvalidIndex if encoder or policies differ, or the index is damaged; InvalidTable;
    FolderInUse.
    """
    table, path = Path(table), Path(path)
    settings = settings or SourceSettings()
    read_manifest(path)
    format_of(table)
    with sole_writer(path):
        clear_discarded(path)
        index = load_index(path)
        settings = replace(settings, kind=index.manifest.kind)
        signature = index_signature(embedder, settings.kind, settings.policy)
        index.check_made_with(embedder.encoder.card.name, embedder.encoder.checksum, signature)
        flat = "flat" in index.manifest.files
        job = _IndexBuild(
            table, path, embedder, settings, on_progress, workers=workers, flat=flat, anew=False
        )
        return job.finish_committed(index.manifest) or job.extend(index.manifest, index)


def _current(out: Path, overwrite: bool) -> Manifest | None:
    """Return the manifest of an existing index; None for a damaged one that will be replaced."""
    try:
        return read_manifest(out)
    except InvalidIndex:
        if not overwrite:
            raise
        return None


class _IndexBuild:
    """Build that adds one table to one index."""

    def __init__(
        self,
        table: Path,
        out: Path,
        embedder: StudyEmbedder,
        settings: SourceSettings,
        on_progress: OnProgress | None,
        *,
        workers: int,
        flat: bool,
        anew: bool,
    ) -> None:
        self._table, self._out, self._embedder = table, out, embedder
        self._settings, self._workers, self._flat, self._anew = settings, workers, flat, anew
        self._on_progress = on_progress or no_progress
        self._sha256 = file_digest(table)
        self._signature = index_signature(embedder, settings.kind, settings.policy)

    def empty_manifest(self, approximate: str | None, generation: int) -> Manifest:
        """Return a manifest without rows; its file names differ from those of a replaced index."""
        card = self._embedder.encoder.card
        return Manifest(
            kind=self._settings.kind,
            encoder=card.name,
            checksum=self._embedder.encoder.checksum,
            demonstration=card.demonstration,
            signature=str(self._signature),
            dim=card.dim,
            rows=0,
            items=0,
            bad_rows=0,
            sources=[],
            files={},
            approximate=approximate,
            generation=generation,
        )

    def extend(self, base: Manifest, index: Index | None) -> BuildResult:
        """Embed the remaining rows, and replace the index."""
        source = open_source(self._table, self._embedder, self._settings, self._workers)
        key = self._key(base)
        known = KnownTexts(index.iter_texts() if index is not None else ())
        parts = IndexParts(self._out, key, base.dim, known, anew=self._anew)
        resumed_from = parts.done
        self._on_progress(parts.done, parts.failed)
        self._embed(source, parts)
        self._check_any_good(parts)
        origin = {
            "name": _readable(self._table.name),
            "path": _readable(str(self._table)),
            "sha256": self._sha256,
            "request": key.request,
        }
        if index is not None and _brings_nothing(parts, index, origin):
            return self._finish(parts, resumed_from, unchanged=True)
        manifest = write_generation(self._out, parts, base, index, origin, flat=self._flat)
        confirm()
        write_manifest(self._out, replace(manifest, request=key.request))
        return self._finish(parts, resumed_from)

    def finish_committed(self, manifest: Manifest) -> BuildResult | None:
        """Remove the parts of a build that was killed after its index had become the current one.

        Returns: its result if it is the build that is requested now, else None.
        """
        try:
            found = unfinished_key(self._out)
        except ChecksumMismatch:
            if not self._anew:
                raise
            return None
        if (
            found is None
            or request_of(found) != manifest.request
            or found.get("generation") != manifest.generation - 1
        ):
            return None
        if manifest.request == self._key(manifest).request:
            # Damaged parts do no harm: the index holds everything in them.
            with contextlib.suppress(ChecksumMismatch):
                parts = IndexParts(self._out, found, manifest.dim, KnownTexts())
                return self._finish(parts, parts.done)
        remove_other_generations(self._out, manifest)
        discard_chunks(self._out)
        return None

    def unchanged(self, manifest: Manifest, approximate: str | None) -> BuildResult:
        """Return the existing index if it is the requested one, else raise InvalidSetting."""
        if not self.has_made(manifest, approximate):
            raise InvalidSetting(
                f"{self._out} holds another index: `vlscore index add` extends it, --overwrite "
                "replaces it"
            )
        index = load_index(self._out)
        remove_other_generations(self._out, manifest)
        return BuildResult.of_index(index, 0, 0, index.bad_rows(), unchanged=True)

    def has_made(self, manifest: Manifest, approximate: str | None) -> bool:
        """Return whether this build would make the existing index."""
        has_same_files = manifest.approximate == approximate and ("flat" in manifest.files) == (
            self._flat and approximate is None
        )
        return manifest.request == self._key(manifest).request and has_same_files

    def _key(self, base: Manifest) -> BuildKey:
        return BuildKey(
            table=_readable(self._table.name),
            sha256=self._sha256,
            checksum=self._embedder.encoder.checksum,
            signature=str(self._signature),
            settings=self._settings.to_list(),
            base=[record.sha256 for record in base.files.values()],
            generation=base.generation,
        )

    def _embed(self, source: IndexSource, parts: IndexParts) -> None:
        rest = islice(source.rows, parts.done, None)
        with source.embedding as embed:
            while chunk := list(islice(rest, source.at_once)):
                parts.append(chunk, embed, are_paths=source.texts_are_paths)
                self._on_progress(parts.done, parts.failed)

    def _check_any_good(self, parts: IndexParts) -> None:
        if parts.failed < parts.done:
            return
        reason = "the table has no rows"
        for part in parts:
            row, id, why = part.bad[0]
            reason = f"none of its {parts.done} rows can be used; row {row} ({id}): {why}"
            break
        parts.remove()
        raise InvalidTable(f"{self._table}: {reason}")

    def _finish(
        self, parts: IndexParts, resumed_from: int, *, unchanged: bool = False
    ) -> BuildResult:
        index = load_index(self._out, check=False)
        bad = [BadRow(*row) for part in parts for row in part.bad]
        added = sum(len(part.texts) for part in parts)
        good = sum(len(part.owners) for part in parts)
        remove_other_generations(self._out, index.manifest)
        parts.remove()
        return BuildResult.of_index(
            index, added, good - added, bad, resumed_from=resumed_from, unchanged=unchanged
        )


def _brings_nothing(parts: IndexParts, index: Index, origin: dict[str, str]) -> bool:
    """Return whether the same table was added before, and its bad rows have the same reasons."""
    number = source_number(index.manifest, origin)
    if number == len(index.manifest.sources):
        return False
    known = [
        (record["row"], record["id"], record["reason"])
        for record in index.bad_row_records()
        if record.get("source") == number
    ]
    bad = [tuple(row) for part in parts for row in part.bad]
    return bad == known and not any(part.texts for part in parts)


def _readable(name: str) -> str:
    """Return a file's name as printable text that can be encoded as UTF-8."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    return "".join(letter if letter.isprintable() else "?" for letter in text)
