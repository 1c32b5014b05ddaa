"""What an oracle found for a study, and how files hold it."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlscore._files import plain
from vlscore.search import Found

# One row a hit. `row` is that of the corpus, `place` 1 the best.
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
    """A report that was found.

    Attributes:
        found: its row and numbers.
        ids: of all reports that read like it.
        text: the report; the path, of an image.
        verbatim: whether it equals the reference, line breaks aside; None where that says nothing.
    """

    found: Found
    ids: list[str]
    text: str
    verbatim: bool | None


@dataclass(frozen=True)
class Answer:
    """One study's hits, best first, or why there are none."""

    row: int
    id: str | None
    hits: list[Hit] = field(default_factory=list)
    error: str | None = None

    def to_dict(self, signature: str) -> dict[str, Any]:
        """Plain data, ready for json: None stands for numbers that are not defined.

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
        """The answer that `to_dict` became."""
        hits = []
        for hit in content["hits"]:
            numbers = {name: hit[name] for name in _NUMBERS}
            for name, value in numbers.items():
                if value is None and name != "distance_rank":
                    numbers[name] = math.nan
            hits.append(Hit(Found(**numbers), hit["ids"], hit["text"], hit["verbatim"]))
        return cls(content["row"], content["id"], hits, content["error"])


def write_answers(path: Path, answers: Iterable[Answer], signature: str) -> None:
    """Write one study a line (jsonl)."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        for answer in answers:
            stream.write(json.dumps(answer.to_dict(signature), ensure_ascii=False) + "\n")


def read_answers(path: Path, count: int | None = None) -> Iterator[Answer]:
    """The answers of a file, the first `count` of them."""
    with path.open(encoding="utf-8", newline="") as stream:
        for line in islice(stream, count):
            yield Answer.of_dict(json.loads(line))


def hits_table(answers: Iterable[Answer]) -> pa.Table:
    """One row a hit, as HITS_SCHEMA has it; ids are joined by semicolons."""
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
