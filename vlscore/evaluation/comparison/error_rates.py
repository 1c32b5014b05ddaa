"""Error rates of references: a table by finding, published ones, or two reports of each film."""

import csv
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.claims import finding_of_label
from vlscore.data import TextPolicy
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation.score_table import score_table
from vlscore.metrics import Item, Metric, Scorer
from vlscore.stats import LEAST_SUPPORT, Array, Rate, invented_of, rates_of_two

PUBLISHED = Path(__file__).parent / "published_errors"
#: It follows from the other labels, so that a rate for all findings is none of it.
NO_FINDING = "no finding"
DEFAULT = "default"
MISSED, INVENTED, FALSE = _COLUMNS = ("missed", "invented", "false_discovery")
_CELL = re.compile(r"([\d.eE+-]+)(?:\s*\[\s*([\d.eE+-]+)\s*,\s*([\d.eE+-]+)\s*\])?")
# First word of rates from second reports -> whether these are right wherever the two differ.
_SECOND = {"second": False, "truth": True}
_PEERS = (
    "both reports are equally good, and their errors independent; which is wrong where they differ "
    "is not known: every share from none to all of the findings that only one states may be true"
)

# (number r of draws, random numbers, stated (1 + r, m), films (1 + r, 1)) -> missed, invented.
Draw = Callable[[int, np.random.Generator, Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class ErrorRates:
    """Error rates of a reference for m labels.

    Attributes:
        draw: returns (1 + r, m) rates of missed and of invented findings, the estimates first; nan
            where a label has none.
        origin: what the rate of each label is taken from: "own", "default", "all findings" or
            "reports"; "" for a label without a rate.
        source: where the rates are from.
        notes: what is known, and what is assumed, one sentence each.
    """

    draw: Draw
    origin: Sequence[str]
    source: str
    notes: Sequence[str] = ()


def rates_of_findings(
    rates: Mapping[str, Mapping[str, Rate]],
    labels: Sequence[str],
    source: str,
    notes: Sequence[str] = (),
) -> ErrorRates:
    """Return the rates for some labels, each that of its finding, or the default.

    Args: rates: finding in small letters, or "default" -> "missed", and "invented" or
        "false_discovery" -> rate.
    Raises: InvalidSetting for findings of other names.
    """
    names = [name.lower() for name in labels]
    if unknown := [name for name in rates if name not in {*names, DEFAULT}]:
        raise InvalidSetting(
            f"{source}: no finding is called {unknown[0]}; there are {', '.join(labels)}"
        )
    has_default = DEFAULT in rates
    origin = [
        "own" if n in rates else "default" if has_default and n != NO_FINDING else "" for n in names
    ]

    def draw(
        count: int, rng: np.random.Generator, stated: Array, films: Array
    ) -> tuple[Array, Array]:
        missed, invented = (np.full(stated.shape, np.nan) for _ in range(2))
        # A rate of several findings is one rate: all of them have it in the same draw.
        common = {k: rate.drawn(count, rng) for k, rate in rates.get(DEFAULT, {}).items()}
        for k, (name, kind) in enumerate(zip(names, origin, strict=True)):
            if not kind:
                continue
            own = rates.get(name, {})
            drawn = {each: rate.drawn(count, rng) for each, rate in own.items()} or common
            missed[:, k] = drawn[MISSED]
            if FALSE in drawn:
                invented[:, k] = invented_of(drawn[FALSE], missed[:, k], stated[:, k], films[:, 0])
            else:
                invented[:, k] = drawn[INVENTED]
        return missed, invented

    return ErrorRates(draw, origin, source, notes)


def rates_of_reports(
    wrong: Rate,
    missed_share: tuple[float, float],
    labels: Sequence[str],
    source: str,
    notes: Sequence[str] = (),
) -> ErrorRates:
    """Return the rates for some labels, from the share of whole reports that are wrong.

    Args: missed_share: smallest and largest share of the errors that are missed findings.
    """
    origin = ["" if name.lower() == NO_FINDING else "reports" for name in labels]
    chosen = [k for k, kind in enumerate(origin) if kind]

    def draw(
        count: int, rng: np.random.Generator, stated: Array, films: Array
    ) -> tuple[Array, Array]:
        low, high = missed_share
        share = np.concatenate([[(low + high) / 2], rng.uniform(low, high, count)])
        # As many errors in a report as makes this share of reports wrong, if they are
        # independent; missed ones for each present finding, false ones for each stated.
        errors = -np.log1p(-wrong.drawn(count, rng))
        each = stated[:, chosen].sum(1) / films[:, 0]
        false = (1 - share) * errors / each
        odds = share * errors / ((1 - false) * each)
        missed, invented = (np.full(stated.shape, np.nan) for _ in range(2))
        missed[:, chosen] = (odds / (1 + odds))[:, None]
        invented[:, chosen] = invented_of(
            false[:, None], missed[:, chosen], stated[:, chosen], films
        )
        return missed, invented

    return ErrorRates(draw, origin, source, notes)


def file_of_rates(given: str | Path) -> Path:
    """Return the file of rates, or of published ones by their name. Raises: InvalidSetting."""
    path = Path(given)
    if path.is_file():
        return path
    published = {each.stem: each for each in sorted(PUBLISHED.glob("*.toml"))}
    if str(given) not in published:
        raise InvalidSetting(
            f"{given} is no file, no name of published rates ({', '.join(published)}), and "
            "no column of second reports (second:COLUMN, truth:COLUMN)"
        )
    return published[str(given)]


def read_rates(given: str | Path, labels: Sequence[str]) -> ErrorRates:
    """Read a file of rates (.toml, .csv), or published ones by their name, for some labels.

    Raises: InvalidSetting that names the file, the finding and what is wrong.
    """
    path = file_of_rates(given)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = _of_csv(text) if path.suffix.lower() == ".csv" else tomllib.loads(text)
        return _rates_in(content, path, labels)
    except VLScoreError:
        raise
    # Whatever else a file holds where rates are looked for.
    except (OSError, ValueError, csv.Error, KeyError, AttributeError, TypeError) as error:
        raise InvalidSetting(
            f"{path} is no table of error rates (docs/comparing.md): {type(error).__name__} {error}"
        ) from None


def _rates_in(content: Mapping[str, Any], path: Path, labels: Sequence[str]) -> ErrorRates:
    texts = {name: content.get(name, []) for name in ("known", "assumed")}
    source = str(content.get("source", path.name))
    notes = [f"{kind}: {', '.join(each)}" for kind, each in texts.items() if each]
    known = {"source", *texts, DEFAULT, "findings", "reports"}
    if unknown := sorted(set(content) - known):
        raise InvalidSetting(
            f"{path}: a table of error rates has no entry {unknown[0]}; it has {', '.join(known)}"
        )
    if reports := content.get("reports"):
        low, high = reports.get("missed_share", (0.0, 1.0))
        if not 0 <= low <= high <= 1:
            raise InvalidSetting(
                f"{path}: missed_share is two numbers from 0 to 1, not {low}, {high}"
            )
        wrong = _rate(reports["wrong"], f"{path}: wrong")
        return rates_of_reports(wrong, (low, high), labels, source, notes)
    stated: dict[str, Any] = {}
    for name, each in content.get("findings", {}).items():
        if (finding := finding_of_label(name)) in stated:
            raise InvalidSetting(f"{path}: {name} is a second entry of {finding}")
        stated[finding] = each
    if DEFAULT in content:
        stated[DEFAULT] = content[DEFAULT]
    if not stated:
        raise InvalidSetting(
            f"{path}: states no rate of any finding, no [default] and no [reports]"
        )
    rates = {name: _rates_of(each, f"{path}, {name}") for name, each in stated.items()}
    return rates_of_findings(rates, labels, source, notes)


def _rates_of(stated: Mapping[str, Any], place: str) -> dict[str, Rate]:
    found = {name: _rate(value, f"{place}: {name}") for name, value in stated.items()}
    if unknown := [name for name in found if name not in _COLUMNS]:
        raise InvalidSetting(f"{place}: {unknown[0]} is none of {', '.join(_COLUMNS)}")
    if MISSED not in found or (INVENTED in found) == (FALSE in found):
        raise InvalidSetting(
            f"{place}: state missed, and one of invented (share of films without the finding in "
            "which the reference states it) and false_discovery (share of its statements that "
            "are false)"
        )
    return found


def _of_csv(text: str) -> dict[str, Any]:
    rows = list(csv.DictReader(text.splitlines()))
    found: dict[str, Any] = {"findings": {}}
    for row in rows:
        name = row.pop("finding").strip()
        entries = {key.strip(): value for key, value in row.items() if value and value.strip()}
        found |= {DEFAULT: entries} if name == DEFAULT else {}
        if name != DEFAULT:
            found["findings"][name] = entries
    return found


def _rate(value: Any, place: str) -> Rate:
    """Return the rate of 0.12, "12/100", or "0.12 [0.08, 0.17]"."""
    text = str(value).strip()
    try:
        if "/" in text:
            errors, of = map(float, text.split("/"))
            return Rate.counted(errors, of)
        match = _CELL.fullmatch(text)
        if match is None:
            raise ValueError(text)
        numbers = [float(each) for each in match.groups() if each is not None]
        if len(numbers) == 3:
            return Rate.within(*numbers)
        if not 0 <= numbers[0] < 1:
            raise ValueError(text)
        return Rate(numbers[0])
    except InvalidSetting as error:
        raise InvalidSetting(f"{place}: {error}") from None
    except ValueError:
        raise InvalidSetting(
            f"{place} is {text!r}: write a rate from 0 to below 1, as 0.12, 12/100 (errors of "
            "cases) or 0.12 [0.08, 0.17] (a 95 % interval)"
        ) from None


def second_column(given: str | Path) -> tuple[bool, str] | None:
    """Return of "truth:COLUMN" or "second:COLUMN" whether it is the truth, and the column.

    >>> second_column("truth:consensus"), second_column("rates.toml")
    ((True, 'consensus'), None)
    """
    kind, colon, column = str(given).partition(":")
    if not (colon and column and kind in _SECOND) or Path(given).is_file():
        return None
    return _SECOND[kind], column


def second_report_rates(
    pairs: Sequence[tuple[str, str]],
    metric: Metric,
    policy: TextPolicy,
    is_truth: bool,
    column: str,
) -> ErrorRates:
    """Return the rates of references of which some have a second report.

    Args:
        pairs: a second report and a reference of each film, whose sections are chosen already.
        is_truth, column: as of `second_column`.

    Raises: InvalidSetting where there is none, or they state too little.
    """
    items = [Item(second, reference, None) for second, reference in pairs]
    found = score_table(items, Scorer(metrics=metric, text_policy=policy)).values[metric]
    there = [k for k in range(len(items)) if k not in found.failures]
    if found.statistics is None or not there:
        raise InvalidSetting(f"{column}: no reference has a second report that {metric} can read")
    sums, labels = found.statistics[there].sum(0).reshape(3, -1), metric.counted_labels()
    source = f"the second reports in {column}"
    return rates_of_second(sums, labels, len(there), is_truth=is_truth, source=source)


def rates_of_second(
    sums: Array, labels: Sequence[str], films: int, *, is_truth: bool, source: str
) -> ErrorRates:
    """Return the rates of references of which some films have a second report.

    Args:
        sums: (3, m) films in which both state a label, the second alone, the first alone.
        films: those with both reports.
        is_truth: the second report is right wherever the two differ; else both are equally good.

    Raises: InvalidSetting where they state too little, or agree on too little.
    """
    of_all = [k for k, name in enumerate(labels) if name.lower() != NO_FINDING]
    pooled = sums[:, of_all].sum(1, keepdims=True)
    if pooled.sum() < LEAST_SUPPORT:
        raise InvalidSetting(
            f"{source}: the {films} films with two reports have {int(pooled.sum())} stated "
            f"findings; rates need {LEAST_SUPPORT}"
        )
    is_own = sums.sum(0) >= LEAST_SUPPORT
    origin = ["own" if own else "all findings" for own in is_own]
    origin = [
        "" if name.lower() == NO_FINDING and kind != "own" else kind
        for name, kind in zip(labels, origin, strict=True)
    ]
    # The films of all findings together count once for each finding.
    columns = [(pooled[:, 0], films * len(of_all))]
    columns += [(sums[:, k], films) for k in np.flatnonzero(is_own)]
    places = np.zeros(len(labels), dtype=int)
    places[is_own] = np.arange(1, is_own.sum() + 1)

    def draw(
        count: int, rng: np.random.Generator, stated: Array, all_films: Array
    ) -> tuple[Array, Array]:
        # Unknown for all findings alike.
        share = np.concatenate([[0.5], rng.uniform(0, 1, count)])
        pairs = [
            _of_truth(each, count, rng) if is_truth else _of_peers(each, of, share, count, rng)
            for each, of in columns
        ]
        missed, false = (np.stack(each, axis=1)[:, places] for each in zip(*pairs, strict=True))
        invented = invented_of(false, missed, stated, all_films)
        lacking = [not kind for kind in origin]
        missed[:, lacking] = invented[:, lacking] = np.nan
        return missed, invented

    assumed = "the second report is right where the two differ" if is_truth else _PEERS
    return ErrorRates(draw, origin, f"{source}, {films} films", [f"assumed: {assumed}"])


def _of_truth(counts: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    both, second, first = counts
    missed = Rate.counted(second, max(both + second, 1)).drawn(count, rng)
    return missed, Rate.counted(first, max(both + first, 1)).drawn(count, rng)


def _of_peers(
    counts: Array, films: int, share: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    both, one = counts[0], counts[1] + counts[2]
    differ = Rate.counted(one, both + one).drawn(count, rng) * (both + one)
    return rates_of_two(both + one - differ, differ, np.array(float(films)), share)
