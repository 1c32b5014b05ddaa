"""Pairs of an original report and a perturbed one, as the benchmarks read them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidTable, VLScoreError
from vlscore.perturb import KINDS
from vlscore.reports import TextPolicy, select
from vlscore.studies import read_rows

PERTURBATIONS_FILE = "perturbations.jsonl"


@dataclass(frozen=True)
class Pair:
    """One perturbation of one report.

    Attributes:
        study_id: whose report it is; perturbations of one study share it.
        kind: of perturbation, as in "remove-pathology".
        is_significant: whether a good metric should notice.
        original: the report, which stands as the reference.
        perturbed: the changed report, which stands as the candidate.
        category: ReXVal's error category, where the change is an error.
    """

    study_id: str
    kind: str
    is_significant: bool
    original: str
    perturbed: str
    category: str | None = None


def pairs_file(place: str | Path) -> Path:
    """The file of records at a place: the file itself, or that in the folder of `vlscore perturb`.

    Raises: InvalidTable where there is none.
    """
    path = Path(place)
    if path.is_dir():
        path = path / PERTURBATIONS_FILE
    if not path.is_file():
        raise InvalidTable(
            f"{path}: no such file; make one with `vlscore perturb reports.csv --out {place}`"
        )
    return path


def read_pairs(place: str | Path) -> list[Pair]:
    """Pairs from a file of records, or from the folder that `vlscore perturb --out` wrote.

    Raises: InvalidTable naming the row that is no record, or the place that holds none.
    """
    path = pairs_file(place)
    pairs = []
    for row, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {row}: {record}")
        try:
            pairs.append(pair_of(record))
        except (KeyError, ValueError) as error:
            raise InvalidTable(f"{path}, row {row}: {_reason(error)}") from None
    if not pairs:
        raise InvalidTable(f"{path}: holds no perturbations")
    return pairs


def pair_of(record: Mapping[str, Any]) -> Pair:
    """A Pair from one record; raises KeyError or ValueError where it is none."""
    for name in ("kind", "original", "perturbed"):
        if not isinstance(record[name], str):
            raise ValueError(f'"{name}" holds a {type(record[name]).__name__}, not a text')
    return Pair(
        study_id=str(record["study_id"]),
        kind=record["kind"],
        is_significant=_is_significant(record["expected"]),
        original=record["original"],
        perturbed=record["perturbed"],
        category=record.get("category") or None,
    )


def select_pairs(
    pairs: Sequence[Pair], policy: TextPolicy
) -> tuple[list[Pair], dict[int, VLScoreError]]:
    """What the policy takes of both reports, once for all metrics.

    Both are taken as references are, since a perturbed report has the original's headings.

    Returns: the pairs; and position -> why a pair lacks the section. Such pairs stay as they were.
    """
    chosen, failures = list(pairs), {}
    for position, pair in enumerate(pairs):
        try:
            chosen[position] = replace(
                pair,
                original=select(pair.original, policy, "reference"),
                perturbed=select(pair.perturbed, policy, "reference"),
            )
        except VLScoreError as error:
            failures[position] = error
    return chosen, failures


def kinds_of(pairs: Iterable[Pair]) -> list[str]:
    """The kinds there are: in the registry's order, then others in that of their appearance."""
    there = dict.fromkeys(pair.kind for pair in pairs)
    known = [name for name in KINDS if name in there]
    return [*known, *(name for name in there if name not in known)]


def _is_significant(expected: Any) -> bool:
    try:
        return {"significant": True, "insignificant": False}[expected]
    except (KeyError, TypeError):
        raise ValueError(
            f'"expected" is "significant" or "insignificant", not {expected!r}'
        ) from None


def _reason(error: Exception) -> str:
    return f'field "{error.args[0]}" is absent' if isinstance(error, KeyError) else str(error)
