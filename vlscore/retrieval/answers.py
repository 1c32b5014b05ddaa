"""Answers of an oracle search for each study, their files, and their summary."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlscore.core import Signature, from_plain, plain, reading_result
from vlscore.retrieval.vector_search.array_oracle import Found
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
