"""Index of a corpus: the embeddings of a table's reports or images, in a folder of results.

| file | holds |
|---|---|
| vectors.npy | (n, d) float32, one row a distinct text (or image) |
| reports.parquet | the text (of an image its path) and the ids of each row |
| index.faiss | index for approximate search, if one was asked for |
| failures.csv | rows of the table that could not be used |
| run.json | what the vectors depend on, and the digests of the files |

An index may come from an untrusted source: no file is unpickled, and what is read is checked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vlscore.core import (
    RECORD,
    OnProgress,
    Signature,
    difference,
    finished_run,
    from_plain,
    no_progress,
    plain,
    text_digest,
)
from vlscore.data import (
    Report,
    ReportTable,
    Study,
    StudyTable,
    TextPolicy,
    as_reports,
    as_table,
    is_encodable,
)
from vlscore.embedding import EmbeddedRows, StudyEmbedder
from vlscore.encoders import encoder_from_file
from vlscore.errors import Failure, InvalidIndex, InvalidStudy, InvalidTable
from vlscore.retrieval.approximate import build_approximate, check_factory
from vlscore.stats import Content, Result

VECTORS, REPORTS, FAISS = "vectors.npy", "reports.parquet", "index.faiss"
_FACTS = "index"
# Rows that are read and embedded at a time.
_REPORTS_AT_ONCE, _IMAGES_AT_ONCE = 500, 100
_SCHEMA = pa.schema([("text", pa.string()), ("ids", pa.list_(pa.string()))])


@dataclass(frozen=True)
class IndexFacts:
    """What an index holds; entry "index" of run.json.

    Attributes:
        kind: what the vectors embed: "report" or "image".
        encoder, checksum: name of the encoder and sha256 of its weights.
        demonstration: the encoder is the bundled one, trained on synthetic phantoms.
        signature: encoder, text or image policy and precision in one line.
        rows, dim: shape of the vectors; one row a distinct text (or image).
        items: number of reports (or images), repeated ones counted.
        approximate: the FAISS factory string of an approximate index, or None.
    """

    kind: str
    encoder: str
    checksum: str
    demonstration: bool
    signature: str
    rows: int
    dim: int
    items: int
    approximate: str | None = None


class Index(Result):
    """Index: vectors of a corpus, mapped from disk, with its texts and ids."""

    @cached_property
    def facts(self) -> IndexFacts:
        """What the index holds. Raises: InvalidIndex for a record of something else."""
        try:
            facts: IndexFacts = from_plain(IndexFacts, self.record[_FACTS])
        except (KeyError, TypeError, ValueError):
            facts = IndexFacts("", "", "", False, "", -1, -1, -1)
        texts = (facts.kind, facts.encoder, facts.checksum, facts.signature)
        is_sound = facts.kind in ("report", "image") and facts.rows > 0 and facts.dim > 0
        if not is_sound or not all(text.isprintable() for text in texts):
            raise InvalidIndex(f"{self.folder / RECORD}: no index made this record")
        return facts

    @property
    def signature(self) -> Signature:
        """What the vectors depend on."""
        return Signature.parse(self.facts.signature)

    def __len__(self) -> int:
        return self.facts.rows

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """(n, d) float32, a memory map."""
        path, shape = self.folder / VECTORS, (self.facts.rows, self.facts.dim)
        try:
            # Copy-on-write, because torch accepts only writable arrays; the file does not change.
            vectors: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidIndex(f"{path} is damaged: {error}") from None
        if vectors.shape != shape or vectors.dtype.str != "<f4" or not vectors.flags.c_contiguous:
            raise InvalidIndex(f"{path} does not hold {shape[0]} x {shape[1]} float32 vectors")
        return vectors

    @cached_property
    def _table(self) -> pa.Table:
        path = self.folder / REPORTS
        try:
            table = pq.read_table(path).select(_SCHEMA.names).cast(_SCHEMA)
            table.validate(full=True)
        except (OSError, MemoryError, KeyError, ValueError, pa.ArrowException) as error:
            raise InvalidIndex(f"{path} is damaged: {error}") from None
        ids = pa.compute.list_flatten(table["ids"])
        if len(table) != self.facts.rows or sum(c.null_count for c in (*table.columns, ids)):
            raise InvalidIndex(f"{path} does not hold the texts and ids of {self.facts.rows} rows")
        return table

    def text(self, row: int) -> str:
        """Return the report of a row; in an index of images, the path."""
        return str(self._table["text"][row].as_py())

    def texts(self) -> list[str]:
        """Return the reports of all rows, in the order of the corpus."""
        return list(self._table["text"].to_pylist())

    def ids(self, row: int) -> list[str]:
        """Return the ids of all reports with the text of this row."""
        return list(self._table["ids"][row].as_py())

    def all_ids(self) -> list[list[str]]:
        """Return the ids of every row."""
        return list(self._table["ids"].to_pylist())

    @cached_property
    def _rows_of_text(self) -> Mapping[Any, Iterable[int]]:
        return _rows_by([text_digest(words(text))] for text in self.texts())

    @cached_property
    def _rows_of_id(self) -> Mapping[Any, Iterable[int]]:
        return _rows_by(self.all_ids())

    def excluded_rows(self, study: Study, *, copies: bool, id_column: str | None) -> list[int]:
        """Return rows that a study must not find: its oracle would be trivially perfect.

        Args:
            copies: exclude the reference's own text, line breaks ignored.
            id_column: column of ids, the study's own or its patient's; a row is excluded if all the
                studies with this text are listed, because then no other study has it.

        Returns: their numbers, ascending.
        Raises: InvalidStudy if the study lacks what is needed.
        """
        barred: set[int] = set()
        if copies:
            if study.reference is None:
                raise InvalidStudy("there is no reference whose copies could be excluded")
            barred.update(self._rows_of_text.get(text_digest(words(study.reference)), ()))
        if id_column is not None:
            if id_column not in study.extra:
                raise InvalidStudy(f'no column "{id_column}" to exclude ids by')
            value = study.extra[id_column]
            several = value if isinstance(value, list) else str(value or "").split(";")
            ids = {str(each).strip() for each in several} - {""}
            touched = {row for id in ids for row in self._rows_of_id.get(id, ())}
            barred.update(row for row in touched if ids.issuperset(self.ids(row)))
        return sorted(barred)

    def encoder_name(self, option: str = "--encoder") -> str:
        """Return the name of its encoder, to load it; raise UnknownName if not registered.

        Args: option: option that names a user's own encoder, for the message.
        """
        return encoder_from_file(self.facts.encoder, self.folder / RECORD, option)

    def check_made_with(self, embedder: StudyEmbedder, text_policy: TextPolicy) -> None:
        """Raise InvalidIndex unless the index was made with this encoder and these settings."""
        if embedder.checksum != self.facts.checksum:
            raise InvalidIndex(
                f"{self.folder} was made with {self.facts.encoder} "
                f"(sha256 {self.facts.checksum[:12]}), not with {embedder.card.name} "
                f"({embedder.checksum[:12]}); build an index with this encoder, or name the other "
                "one"
            )
        signature = index_signature(embedder, self.facts.kind, text_policy)
        if signature != self.signature:
            raise self._made_otherwise(difference(self.signature, signature))

    def check_text_policy(self, text_policy: TextPolicy) -> None:
        """Raise InvalidIndex unless this policy selected its reports."""
        there, here = self.signature.get("txt"), text_policy.signature()
        if there != here:
            raise self._made_otherwise(f"txt: {there} against {here}")

    def _made_otherwise(self, what: str) -> InvalidIndex:
        return InvalidIndex(
            f"{self.folder} was made with other settings: {what}. Give the same settings "
            "(txt: --section, img: --image-policy, prec: --precision), or build an index with these"
        )


def load_index(path: str | Path, *, check: bool = True) -> Index:
    """Open an index.

    Args: check: compare the files with their recorded sha256, which reads them once.
    Raises: InvalidIndex if it is not an index; ChecksumMismatch if a file has changed.
    """
    run = finished_run(path)
    if run is None:
        what = "is a file" if Path(path).is_file() else "holds no index"
        raise InvalidIndex(f"{path} {what}; `vlscore index build` makes a folder with one")
    index = Index(run.folder, run.record)
    missing = [name for name in (VECTORS, REPORTS) if name not in index.digests]
    if index.facts and missing:
        raise InvalidIndex(f"{path} has no {missing[0]}; build the index again")
    if check:
        index.check()
    return index


def index_build(
    table: str | Path | ReportTable | StudyTable,
    out: str | Path,
    embedder: StudyEmbedder,
    *,
    text_policy: TextPolicy | str | None = None,
    approximate: str | None = None,
    overwrite: bool = False,
    workers: int = 0,
    on_progress: OnProgress = no_progress,
) -> Index:
    """Embed the reports of a table into an index, or the images of a table of studies.

    Equal texts become one row with all their ids. A call with the same arguments changes nothing
    after the end of a build; after a kill it takes what was embedded from the cache.

    Args:
        table: table of reports, see `open_reports`; or a table that `open_studies` opened, of which
            the first image of each study is embedded.
        text_policy: section of the reports that is embedded; default: whole reports.
        approximate: FAISS factory string ("IVF1024,Flat", "HNSW32", ...) for an approximate index
            in addition to exact search.
        overwrite: replace the index in `out`.
        workers: processes that decode images; 0 decodes in this one.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read, or none of its rows can be used.
        InvalidSetting: `out` holds another index.
        FolderInUse: another process is writing it.
    """
    policy, card = TextPolicy.named(text_policy), embedder.card
    if isinstance(table, StudyTable):
        opened: StudyTable | ReportTable = as_table(table, {"image"})
    else:
        opened = as_reports(table)
    kind = "image" if isinstance(opened, StudyTable) else "report"
    if approximate is not None:
        check_factory(approximate, card.dim)
    signature = str(index_signature(embedder, kind, policy))
    key = {
        "command": "index build",
        **opened.key,
        "checksum": embedder.checksum,
        "signature": signature,
        "approximate": approximate,
    }

    def compute(path: Path) -> Content:
        import pandas

        vectors, ids, failures = _embedded(opened, policy, embedder, workers, on_progress)
        np.save(path / VECTORS, vectors, allow_pickle=False)
        if approximate is not None:
            build_approximate(vectors, approximate, path / FAISS)
        facts = IndexFacts(
            kind,
            card.name,
            embedder.checksum,
            card.demonstration,
            signature,
            rows=len(vectors),
            dim=card.dim,
            items=sum(map(len, ids.values())),
            approximate=approximate,
        )
        rows = pandas.DataFrame({"text": list(ids), "ids": list(map(list, ids.values()))})
        return Content(
            frames={},
            rows={REPORTS: rows},
            failures=failures,
            signatures={"index": signature},
            facts={_FACTS: plain(facts), "table": str(opened.path.resolve())},
        )

    images = opened.image_files if isinstance(opened, StudyTable) else None
    return Index.make(out, key, compute, images=images, overwrite=overwrite)


def _embedded(
    table: ReportTable | StudyTable,
    policy: TextPolicy,
    embedder: StudyEmbedder,
    workers: int,
    on_progress: OnProgress,
) -> tuple[NDArray[np.float32], dict[str, dict[str, None]], list[Failure]]:
    """Embed the distinct reports of a table, or the images of a table of studies.

    Returns: their vectors (n, d); each text (or path) with its ids; rows that cannot be used.
    """
    ids: dict[str, dict[str, None]] = {}
    reasons: dict[str, str] = {}
    failures: list[Failure] = []
    vectors: list[NDArray[np.float32]] = []
    done = 0
    on_progress(0, 0)
    with ExitStack() as stack:
        if isinstance(table, StudyTable):
            decoder = stack.enter_context(embedder.decoder(workers))
            rows, at_once = _images(table), _IMAGES_AT_ONCE
            embed: Callable[..., EmbeddedRows] = partial(embedder.embed_images, decoder=decoder)
        else:
            rows, at_once, embed = table.selected(policy), _REPORTS_AT_ONCE, embedder.embed_texts
        while some := list(islice(rows, at_once)):
            texts = dict.fromkeys(row.text for row in some if isinstance(row, Report))
            new = [text for text in texts if text not in ids and text not in reasons]
            found = embed(new)
            reasons |= {new[k]: str(error) for k, error in found.failures.items()}
            own = found.vectors.numpy()
            for k in np.flatnonzero(~np.isfinite(own).all(axis=1)):
                reasons.setdefault(new[k], "the encoder returned an embedding that is not finite")
            vectors.append(own[[text not in reasons for text in new]])
            ids |= {text: {} for text in new if text not in reasons}
            for row in some:
                if isinstance(row, Failure):
                    failures.append(row)
                elif row.text in reasons:
                    failures.append(Failure(row.row, row.id, reasons[row.text]))
                else:
                    ids[row.text][row.id] = None
            done += len(some)
            on_progress(done, len(failures))
    if not ids:
        first = failures[0]
        reason = f"row {first.row} ({first.id}): {first.reason}"
        raise InvalidTable(f"{table.path}: none of its {done} rows can be used; {reason}")
    return np.concatenate(vectors), ids, failures


def words(text: str) -> str:
    """Return a text with single blanks, because copies of a report differ in line breaks."""
    return " ".join(text.split())


def _rows_by(names: Iterable[Sequence[Any]]) -> Mapping[Any, Iterable[int]]:
    """Return each name with the rows that have it."""
    from pandas import Series

    each = Series(list(names), dtype=object).explode()
    rows: Mapping[Any, Iterable[int]] = each.groupby(each, sort=False).groups
    return rows


def index_signature(embedder: StudyEmbedder, kind: str, text_policy: TextPolicy) -> Signature:
    """Return what an index's vectors depend on: encoder, text or image policy, precision."""
    facts = embedder.signature
    input = {"txt": text_policy.signature()}
    if kind == "image":
        input = {"img": embedder.image_policy.signature(), "views": "first"}
    signature = Signature("index").plus(enc=facts.get("enc")).plus(input)
    return signature.plus(facts.without("img", "views"))


def _images(table: StudyTable) -> Iterator[Report | Failure]:
    """Yield the first image of each study as a report whose text is the path."""
    for row in table:
        if isinstance(row, Failure):
            yield row
        elif is_encodable(path := str(row.images[0])):
            yield Report(row.id, path, row.row)
        else:
            reason = f"the image's name {path!a} holds bytes that are not UTF-8: rename the file"
            yield Failure(row.row, row.id, reason)
