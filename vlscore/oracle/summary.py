"""What the answers of an oracle come to, in a few numbers."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlscore._files import plain
from vlscore._signature import Signature
from vlscore.oracle.answers import Answer
from vlscore.stats import Interval, bootstrap_mean, bootstrap_median


@dataclass(frozen=True)
class OracleSummary:
    """Numbers of one search; intervals are 95 % bootstrap intervals over studies.

    Attributes:
        signature: what the hits depend on.
        studies: rows of the table; `searched` and `failed` of them.
        without_hits: studies for which nothing qualified.
        mean, median: of the best hits' scores; None without any.
        compared, verbatim: best hits that were compared with their reference, and those that equal
            it, line breaks aside.
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
        """Plain data, ready for json."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found: dict[str, Any] = plain({**content, "signature": str(self.signature)})
        return found


class Tally:
    """Counts answers as they come; eight bytes a study."""

    def __init__(self) -> None:
        self.studies = self.failed = self.without_hits = self.compared = self.verbatim = 0
        self._best: list[float] = []

    def add(self, answers: Iterable[Answer]) -> None:
        """Count some more."""
        for answer in answers:
            self.studies += 1
            self.failed += answer.error is not None
            self.without_hits += answer.error is None and not answer.hits
            for hit in answer.hits[:1]:
                self._best.append(hit.found.score)
                self.compared += hit.verbatim is not None
                self.verbatim += bool(hit.verbatim)

    def summary(self, signature: Signature, recall: Mapping[int, float]) -> OracleSummary:
        """The numbers of all that were counted."""
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


def read_interval(found: Mapping[str, float | None]) -> Interval:
    """An interval from json, which has no nan: a bound that is not defined was written as null."""
    return Interval(**{name: math.nan if v is None else v for name, v in found.items()})


def read_summary(path: Path) -> OracleSummary:
    """The summary that `to_dict` became in a file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for name in ("mean", "median"):
        content[name] = None if content[name] is None else read_interval(content[name])
    content["signature"] = Signature.parse(content["signature"])
    content["recall"] = {int(k): share for k, share in content["recall"].items()}
    return OracleSummary(**content)
