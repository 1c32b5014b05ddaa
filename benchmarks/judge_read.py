"""Claim: on pairs of reports that were read for errors, one command says which judge finds more:
the rules, or a language model behind an endpoint.

Protocol: each line of the files has `id`, `candidate`, `reference`, `rating` (1 to 5) and `errors`
(each with `category`, `finding` and `words`, copied from the candidate, or for an omission from the
reference). An error counts as found where the judge has one of the same category whose words and
finding share at least half of the shorter one's words with it; each error of a judge counts once.
Precision, recall and F1 over all errors and by category; tau_b of the judge's rating, and of its
number of errors, with those that were read. Intervals: 95 %, bootstrap over studies. Pairs that the
model could not judge are left out for both judges, and counted. On files that the rules were tuned
on, in part or whole, theirs is an in-sample upper bound.

Run: python benchmarks/judge_read.py read.jsonl [planted.jsonl ...]
         [--model NAME --endpoint URL [--send-to HOST]] [--out FILE]
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine, publish

from vlscore.errors import InvalidTable
from vlscore.metrics import (
    EndpointModel,
    ErrorItem,
    JudgeCase,
    Judgement,
    ModelJudge,
    RuleJudge,
    rating,
)
from vlscore.stats import TextTable, correlation_interval, interval

RESAMPLES = 1000
_SMALL = frozenset(("the", "a", "of", "is", "are", "and", "in", "with", "there", "no", "or"))
_NEEDED = ("id", "candidate", "reference", "rating", "errors")
Counts = tuple[int, int, int]


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Return the pairs of a file; raise InvalidTable naming the first line that lacks a field."""
    pairs = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            pair = json.loads(line)
            missing = [name for name in _NEEDED if name not in pair]
        except (ValueError, TypeError) as error:
            raise InvalidTable(f"{path}, line {number}: not a json object") from error
        if missing:
            raise InvalidTable(f"{path}, line {number} lacks {', '.join(missing)}")
        pairs.append(pair)
    return pairs


def counts_of(pair: dict[str, Any], judgement: Judgement) -> dict[str, Counts]:
    """Return category -> errors found, invented and missed, in one pair."""
    left = [(str(error.category), _words_of(error)) for error in judgement.errors]
    found, missed = Counter[str](), Counter[str]()
    for error in pair["errors"]:
        words = _words(f"{error['words']} {error['finding']}")
        fitting = (e for e in left if e[0] == error["category"] and _overlap(e[1], words))
        match = next(fitting, None)
        if match is None:
            missed[error["category"]] += 1
        else:
            left.remove(match)
            found[error["category"]] += 1
    invented = Counter(category for category, _ in left)
    names = {*found, *missed, *invented}
    return {name: (found[name], invented[name], missed[name]) for name in names}


def confused(
    pairs: Sequence[dict[str, Any]], judgements: Sequence[Judgement]
) -> Counter[tuple[str, str]]:
    """Return (category read, category of the judge) -> errors whose words overlap.

    An error that has no counterpart stands opposite "nothing".
    """
    counts: Counter[tuple[str, str]] = Counter()
    for pair, judgement in zip(pairs, judgements, strict=True):
        left = [(str(error.category), _words_of(error)) for error in judgement.errors]
        read = [(e["category"], _words(f"{e['words']} {e['finding']}")) for e in pair["errors"]]
        for same in (True, False):
            for category, words in list(read):
                fitting = (
                    e for e in left if _overlap(e[1], words) and (e[0] == category or not same)
                )
                if (match := next(fitting, None)) is not None:
                    left.remove(match)
                    read.remove((category, words))
                    counts[category, match[0]] += 1
        counts.update((category, "nothing") for category, _ in read)
        counts.update(("nothing", category) for category, _ in left)
    return counts


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.lower())) - _SMALL


def _words_of(error: ErrorItem) -> frozenset[str]:
    quotes = [quote.words for quote in (error.candidate, error.reference) if quote is not None]
    return _words(" ".join([*quotes, error.finding]))


def _overlap(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= max(1, min(len(one), len(other)) // 2)


def rows_of(
    name: str, pairs: Sequence[dict[str, Any]], judgements: Sequence[Judgement]
) -> list[tuple[str, ...]]:
    """Return the rows of one judge: all errors, then each category."""
    by_category: dict[str, list[Counts]] = defaultdict(lambda: [(0, 0, 0)] * len(pairs))
    for row, (pair, judgement) in enumerate(zip(pairs, judgements, strict=True)):
        for category, counts in counts_of(pair, judgement).items():
            by_category[category][row] = counts
    studies = [pair["id"] for pair in pairs]
    whole = np.sum([np.array(each) for each in by_category.values()], axis=0)
    rows = [_row(name, "all", whole, studies)] if by_category else []
    for category in sorted(by_category):
        rows.append(_row(name, category, np.array(by_category[category]), studies))
    return rows


def _row(
    name: str, category: str, counts: "np.ndarray[Any, Any]", studies: Sequence[str]
) -> tuple[str, ...]:
    found, invented, missed = counts.sum(0).tolist()
    low, high = np.nanpercentile(_drawn(counts, studies), [2.5, 97.5])
    return (
        name,
        category,
        f"{_share(found, found + invented)}",
        f"{_share(found, found + missed)}",
        f"{_share(2 * found, 2 * found + invented + missed)} [{low:.3f}, {high:.3f}]",
        str(found + missed),
    )


def _drawn(counts: "np.ndarray[Any, Any]", studies: Sequence[str]) -> "np.ndarray[Any, Any]":
    """Return F1 of each bootstrap sample of studies."""
    codes = np.unique(np.array(studies), return_inverse=True)[1]
    sums = np.array([counts[codes == k].sum(0) for k in range(codes.max() + 1)])
    weights = np.random.default_rng(0).multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES
    )
    found, invented, missed = (weights @ sums).T
    whole = 2 * found + invented + missed
    return np.where(whole > 0, 2 * found / np.maximum(whole, 1), np.nan)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def agreement_row(
    name: str,
    pairs: Sequence[dict[str, Any]],
    judgements: Sequence[Judgement],
    score: Callable[[Judgement], float] = rating,
) -> tuple[str, ...]:
    """Return tau_b of a judge's scores and numbers of errors with those that were read."""
    studies = [pair["id"] for pair in pairs]
    read = np.array([pair["rating"] for pair in pairs], dtype=float)
    counted = np.array([len(pair["errors"]) for pair in pairs], dtype=float)
    ratings = np.array([score(judgement) for judgement in judgements])
    errors = np.array([judgement.count for judgement in judgements], dtype=float)
    found = [
        correlation_interval(one, other, groups=studies, resamples=RESAMPLES, seed=0)
        for one, other in ((ratings, read), (errors, counted))
    ]
    return (name, *(interval(each, 3) for each in found), str(len(pairs)))


def report(paths: Sequence[Path], judge: ModelJudge | None) -> str:
    """Return the tables of all files: the rules, and the model where there is one."""
    rules = RuleJudge()
    judges: dict[str, RuleJudge | ModelJudge] = {"rules": rules}
    if judge is not None:
        judges["model"] = judge
    parts = []
    for path in paths:
        pairs = read_pairs(path)
        cases = [JudgeCase(pair["candidate"], pair["reference"]) for pair in pairs]
        judged = {name: [o.judgement for o in j.judge_all(cases)] for name, j in judges.items()}
        kept = [k for k in range(len(pairs)) if all(each[k] for each in judged.values())]
        some = [pairs[k] for k in kept]
        errors, agreement = [], []
        for name, found in judged.items():
            own = [each for k in kept if (each := found[k]) is not None]
            errors += rows_of(name, some, own)
            agreement.append(agreement_row(name, some, own))
        columns = ("judge", "category", "precision", "recall", "F1", "errors read")
        left_out = f"{len(pairs) - len(kept)} pairs could not be judged and are left out."
        parts.append(TextTable(f"{path.name}: errors found", columns, tuple(errors), left_out))
        columns = ("judge", "tau_b of ratings", "tau_b of numbers of errors", "pairs")
        parts.append(TextTable(f"{path.name}: agreement", columns, tuple(agreement)))
    names = "; ".join(f"{name}: `{each.name}`" for name, each in judges.items())
    tables = "\n".join(table.markdown() for table in parts)
    return f"# Judges on pairs read for errors\n\n{describe_machine()}\n\n{names}.\n\n{tables}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--endpoint")
    parser.add_argument("--send-to", default="")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    judge = None
    if arguments.model:
        hosts = [host for host in arguments.send_to.split(",") if host]
        judge = ModelJudge(EndpointModel(arguments.model, arguments.endpoint, send_to=hosts))
    publish(report(arguments.files, judge), arguments.out)


if __name__ == "__main__":
    main()
