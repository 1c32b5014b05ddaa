"""Answers of an oracle search for each study, their files, and their summary."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vlscore.core import Signature, from_plain, plain, reading_result
from vlscore.data import BadRow, Study, StudyTable, TextPolicy
from vlscore.embedding import EmbeddedRows, ImageDecoder, StudyEmbedder, StudyViews
from vlscore.errors import VLScoreError
from vlscore.retrieval.vector_search.array_oracle import Found
from vlscore.retrieval.vector_search.corpus import Array
from vlscore.stats import Interval, bootstrap_mean, bootstrap_median

# One table row for each hit. `row` is the row of the corpus, `place` is 1 for the best hit.
HITS_SCHEMA = pa.schema(
    [
        ("study_row", pa.int64()),
        ("study_id", pa.string()),
        ("place", pa.int64()),
        ("row", pa.int64()),
        ("score", pa.float64()),
        ("area", pa.float64()),
        ("foot", pa.float64()),
        ("height", pa.float64()),
        ("distance", pa.float64()),
        ("distance_rank", pa.int64()),
        ("verbatim", pa.bool_()),
        ("ids", pa.string()),
        ("text", pa.string()),
    ]
)
_NUMBERS = tuple(each.name for each in fields(Found))


@dataclass(frozen=True)
class Hit:
    """Report (or image) that was found.

    Attributes:
        found: its row and numbers.
        ids: ids of all reports with the same text.
        text: the report; for an image, its path.
        verbatim: whether it equals the reference except for line breaks; None if not applicable.
    """

    found: Found
    ids: list[str]
    text: str
    verbatim: bool | None


@dataclass(frozen=True)
class Answer:
    """Hits of one study, best first, or the reason why there are none."""

    row: int
    id: str | None
    hits: list[Hit] = field(default_factory=list)
    error: str | None = None

    def to_dict(self, signature: str) -> dict[str, Any]:
        """Return plain data that json can write, with None for undefined numbers.

        Args: signature: what the hits depend on.
        """
        content: dict[str, Any] = plain(
            {
                "row": self.row,
                "id": self.id,
                "error": self.error,
                "hits": [
                    {
                        **{name: getattr(hit.found, name) for name in _NUMBERS},
                        "ids": hit.ids,
                        "verbatim": hit.verbatim,
                        "text": hit.text,
                    }
                    for hit in self.hits
                ],
                "signature": signature,
            }
        )
        return content

    @classmethod
    def of_dict(cls, content: dict[str, Any]) -> "Answer":
        """Return the answer from the data of `to_dict`; raise ValueError, ... for other data."""
        hits = [
            Hit(
                from_plain(Found, hit),
                from_plain(list[str], hit["ids"]),
                from_plain(str, hit["text"]),
                from_plain(bool | None, hit["verbatim"]),
            )
            for hit in content["hits"]
        ]
        row, study, error = content["row"], content["id"], content["error"]
        return cls(
            from_plain(int, row), from_plain(str | None, study), hits, from_plain(str | None, error)
        )


def write_answers(path: Path, answers: Iterable[Answer], signature: str) -> None:
    """Write the answers as jsonl, one line for each study."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        for answer in answers:
            stream.write(json.dumps(answer.to_dict(signature), ensure_ascii=False) + "\n")


def read_answers(path: Path, count: int | None = None) -> Iterator[Answer]:
    """Yield the first `count` answers of a file.

    Raises: ChecksumMismatch for a file that `write_answers` did not write.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        lines = islice(stream, count)
        while True:
            with reading_result(path):
                line = next(lines, None)
                answer = None if line is None else Answer.of_dict(json.loads(line))
            if answer is None:
                return
            yield answer


def hits_table(answers: Iterable[Answer]) -> pa.Table:
    """Return a table with the columns of HITS_SCHEMA, one row per hit; ids joined by semicolons."""
    rows = [
        plain(
            {
                "study_row": answer.row,
                "study_id": answer.id,
                "place": place,
                **{name: getattr(hit.found, name) for name in _NUMBERS},
                "verbatim": hit.verbatim,
                "ids": ";".join(hit.ids),
                "text": hit.text,
            }
        )
        for answer in answers
        for place, hit in enumerate(answer.hits, start=1)
    ]
    return pa.Table.from_pylist(rows, schema=HITS_SCHEMA)


@dataclass(frozen=True)
class OracleSummary:
    """Summary of one search; intervals are 95 % bootstrap intervals over studies.

    Attributes:
        signature: what the hits depend on.
        studies: rows of the table; `searched` and `failed` are parts of this number.
        without_hits: studies for which no row qualified.
        mean, median: of the best hits' scores; None without any.
        compared, verbatim: best hits that were compared with their reference, and those that equal
            it except for line breaks.
        recall: approximate search: k -> share of the true hits found, on a sample of the studies.
    """

    signature: Signature
    studies: int
    searched: int
    failed: int
    without_hits: int
    mean: Interval | None
    median: Interval | None
    compared: int
    verbatim: int
    recall: dict[int, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found: dict[str, Any] = plain({**content, "signature": str(self.signature)})
        return found


class Tally:
    """Counter of answers as they come; it needs eight bytes for each study."""

    def __init__(self) -> None:
        self.studies = self.failed = self.without_hits = self.compared = self.verbatim = 0
        self._best: list[float] = []

    def add(self, answers: Iterable[Answer]) -> None:
        """Count further answers."""
        for answer in answers:
            self.studies += 1
            self.failed += answer.error is not None
            self.without_hits += answer.error is None and not answer.hits
            for hit in answer.hits[:1]:
                self._best.append(hit.found.score)
                self.compared += hit.verbatim is not None
                self.verbatim += bool(hit.verbatim)

    def summary(self, signature: Signature, recall: Mapping[int, float]) -> OracleSummary:
        """Return the summary of all counted answers."""
        return OracleSummary(
            signature=signature,
            studies=self.studies,
            searched=self.studies - self.failed,
            failed=self.failed,
            without_hits=self.without_hits,
            mean=bootstrap_mean(self._best) if self._best else None,
            median=bootstrap_median(self._best) if self._best else None,
            compared=self.compared,
            verbatim=self.verbatim,
            recall=dict(recall),
        )


def read_summary(path: Path) -> OracleSummary:
    """Read a summary that was written from `to_dict`.

    Raises: ChecksumMismatch for a file that holds something else.
    """
    with reading_result(path):
        found: OracleSummary = from_plain(
            OracleSummary, json.loads(path.read_text(encoding="utf-8"))
        )
        return found


STUDIES_AT_ONCE = 128

Begun = list[tuple[Study | BadRow, StudyViews | None]]


@dataclass(frozen=True)
class Query:
    """One study that is searched for.

    Attributes:
        row, id: row number and id in the table.
        reference: the section of the reference that is embedded; None if none is read.
        record: the requested further columns.
    """

    row: int
    id: str
    reference: str | None
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class QueryBatch:
    """Batch of table rows: embedded studies, and rows that could not be embedded.

    Attributes:
        queries: q studies.
        images, references: (q, d) float32; None if they are not read, nan for a study that lacks
            an optional input.
        failed: rows that cannot be searched for.
        inputs: images that were read.
    """

    queries: list[Query]
    images: Array | None
    references: Array | None
    failed: list[BadRow]
    inputs: list[Path]

    @property
    def rows(self) -> int:
        """Return the number of table rows."""
        return len(self.queries) + len(self.failed)


@dataclass(frozen=True)
class QueryTable:
    """Table of studies to search for.

    Attributes:
        studies: table from `open_studies`, with its required and optional inputs.
        embedder: None if nothing is embedded.
        policy: which section of a reference is used.
    """

    studies: StudyTable
    embedder: StudyEmbedder | None
    policy: TextPolicy

    def batches(
        self, *, skip: int = 0, size: int = STUDIES_AT_ONCE, workers: int = 0
    ) -> Iterator[QueryBatch]:
        """Yield the rows in order, embedded `size` at a time.

        The embeddings of a batch do not depend on earlier batches, so that a run resumed at a
        batch gets the same bits.

        Args:
            skip: number of rows to leave out at the beginning.
            workers: processes that decode images; 0 decodes in this one.
        """
        rows = islice(self.studies, skip, None)
        reads_images = self.embedder is not None and "image" in self.studies.roles
        decoder = self.embedder.decoder(workers) if self.embedder and reads_images else None
        ahead: deque[Begun] = deque()
        # The next batch is decoded while the current one is searched for.
        with decoder if decoder is not None else nullcontext():
            while chunk := list(islice(rows, size)):
                ahead.append([self._begin(row, decoder) for row in chunk])
                if len(ahead) > 1:
                    yield self._embed(ahead.popleft())
            while ahead:
                yield self._embed(ahead.popleft())

    def _begin(
        self, row: Study | BadRow, decoder: ImageDecoder | None
    ) -> tuple[Study | BadRow, StudyViews | None]:
        if isinstance(row, BadRow):
            return row, None
        try:
            row = row.selected(self.policy)
        except VLScoreError as error:
            if "reference" in self.studies.needs:
                return BadRow(row.row, row.id, str(error)), None
            row = replace(row, reference=None, parts=None)
        if decoder is None or self.embedder is None or not row.images:
            return row, None
        return row, self.embedder.begin(StudyViews(row.images, row.views), decoder)

    def _embed(self, begun: Begun) -> QueryBatch:
        failed = [row for row, _ in begun if isinstance(row, BadRow)]
        studies = [row for row, _ in begun if isinstance(row, Study)]
        shown = [views for row, views in begun if isinstance(row, Study)]
        vectors: dict[str, Tensor] = {}
        failures: dict[int, VLScoreError] = {}
        if (embedder := self.embedder) is not None:
            embedder.engine.forget()
            roles, count = self.studies.roles, len(studies)
            if "image" in roles:
                images = _some(shown, count, embedder.embed_studies, embedder.dim)
                vectors["image"] = images.vectors
                failures |= images.failures if "image" in self.studies.needs else {}
            if "reference" in roles:
                texts = [study.reference for study in studies]
                references = _some(texts, count, embedder.embed_texts, embedder.dim)
                vectors["reference"] = references.vectors
                if "reference" in self.studies.needs:
                    failures = {**references.failures, **failures}
        for position, error in failures.items():
            study = studies[position]
            failed.append(BadRow(study.row, study.id, str(error)))
        good = [position for position in range(len(studies)) if position not in failures]
        kept = {name: np.array(values[good].numpy()) for name, values in vectors.items()}
        return QueryBatch(
            [
                Query(s.row, s.id, s.reference, s.extra)
                for s in (studies[position] for position in good)
            ],
            kept.get("image"),
            kept.get("reference"),
            sorted(failed, key=lambda row: row.row),
            [path for study in studies for path in study.images],
        )


def _some(
    items: Sequence[Any], count: int, embed: Callable[[Sequence[Any]], EmbeddedRows], dim: int
) -> EmbeddedRows:
    """Embed the items that are not None; the others get nan."""
    there = [position for position, item in enumerate(items) if item is not None]
    vectors = torch.full((count, dim), torch.nan)
    truncated = torch.zeros(count, dtype=torch.bool)
    if not there:
        return EmbeddedRows(vectors, {}, truncated)
    found = embed([items[position] for position in there])
    vectors[there], truncated[there] = found.vectors, found.truncated
    return EmbeddedRows(vectors, {there[k]: e for k, e in found.failures.items()}, truncated)
