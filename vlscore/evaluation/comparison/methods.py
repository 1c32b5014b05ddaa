"""The paragraph of a methods section on a comparison."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vlscore.core import with_noun
from vlscore.evaluation.comparison.paper_table import chosen_numbers, numbers_in
from vlscore.evaluation.methods_text import (
    cite,
    data,
    joined,
    on_intervals,
    on_metrics,
    on_missing,
)
from vlscore.evaluation.scored import BASELINE

if TYPE_CHECKING:
    from vlscore.stats import Result


def paragraph(result: "Result", columns: Sequence[str] = ()) -> str:
    """Return the paragraph of a methods section on a comparison.

    Args: columns: numbers of the table that it describes, as of `TableSettings`.
    """
    key = result.key
    shown = chosen_numbers(numbers_in(result), columns)
    titles: dict[str, str] = {}
    for each in shown:
        before = f"{titles[each['of']]}, " if each["of"] in titles else ""
        titles[each["of"]] = f"{before}{each['title']}"
    corpus = {each["of"] for each in shown if each["of_corpus"]}
    systems = list(result.frame("texts")["system"])
    parts = [
        f"We compared {with_noun(len(systems), 'system')} ({', '.join(map(data, systems))}) on the "
        f"same {with_noun(result.record['studies'], 'study')} with vlscore "
        f"{data(result.record['vlscore'])}.",
        *_of_baselines(systems, key.get("train") is not None),
        *_of_empty_reports(result),
        *on_missing([each["n"] for each in shown], result.record["studies"], "every system has"),
        *on_metrics(result, titles, corpus),
        on_intervals(key["resamples"], key.get("patient_column")),
    ]
    count = 0
    if "differences" in result.frames:
        tests = result.frame("differences")
        names = [each["metric"] for each in shown]
        count = int((tests["metric"].isin(names) & tests["p"].notna()).sum())
    if count:
        pairs = "every two systems"
        if key.get("against"):
            pairs = f"{data(key['against'])} and each other system"
        if any(name.startswith(BASELINE) for name in systems):
            pairs += ", but not between two baselines,"
        whole = " of whole patients" if key.get("patient_column") else ""
        parts.append(
            f"Differences between {pairs} were tested by two-sided paired permutation tests "
            f"{cite('randomization')} ({key['permutations']:,} permutations{whole}). p values were "
            f"adjusted {cite('false-discovery-rate')} over {with_noun(count, 'test')} of the "
            "metrics above; differences with an adjusted p below 0.05 whose interval excludes 0 "
            "are called significant."
        )
    if key.get("by"):
        parts.append(
            f"Each metric's primary number was also compared within the studies of each value of "
            f"{', '.join(map(data, key['by']))}; p values were adjusted over all values of a "
            "column."
        )
    parts.append(f"The seed was {data(key['seed'])}.")
    return joined(parts)


def _of_baselines(systems: Sequence[str], is_trained: bool) -> list[str]:
    """Return a sentence that says what each baseline among the systems is."""
    reports = "the training reports" if is_trained else "the references of these studies"
    what = {
        "constant": f"the most frequent of {reports}",
        "normal": f"the most frequent normal sentences of {reports}",
        "random": f"one of {reports}, drawn at random",
        "nearest-image": f"the {'training report' if is_trained else 'reference of another study'} "
        "whose image is nearest in the space of the encoder",
    }
    found = [
        f"{BASELINE}{name} is {text}"
        for name, text in what.items()
        if f"{BASELINE}{name}" in systems
    ]
    return [f"Of the baselines, {'; '.join(found)}."] if found else []


def _of_empty_reports(result: "Result") -> list[str]:
    """Return a sentence on candidates that are empty, which are scored as they are."""
    texts = result.frame("texts")
    empty = texts[texts["empty"] > 0]
    if not len(empty):
        return []
    counts = [
        f"{count} of {data(name)}"
        for name, count in zip(empty["system"], empty["empty"], strict=True)
    ]
    return [f"Empty candidates were scored as empty reports: {', '.join(counts)}."]
