"""The tables of controlled corpora, as they are printed and pasted."""

from collections.abc import Sequence

from vlscore.display import TextTable, interval, number
from vlscore.meta.controlled import SIDES, TASKS, Controlled
from vlscore.meta.labelled_sentences import GROUPS
from vlscore.meta.unmention import COMPARED, Stress

_AREAS = (
    "Area under the ROC curve of the metric's values for whether candidate and reference agree "
    "that the finding is there; 0.5 is chance. recall: references that state the finding or are "
    "uncertain. specificity: references that deny it or do not mention it. 95 % bootstrap "
    "intervals over references; n: pairs of sentences."
)
_MATRIX = (
    "Mean value of candidates (columns) against references (rows), n pairs in parentheses. {way} "
    "A good metric has its best values on the diagonal. controlled.json has the intervals."
)
_SIDES = "absent: denied or not mentioned; present: stated or uncertain."
_STRESS = (
    "Mean value of a candidate against its reference, 95 % bootstrap intervals over n reports. "
    "denials left out: the candidate lacks the sentences that only deny; denials added: the "
    "reference lacks them; pathology left out: the candidate lacks a finding. ratio: loss by "
    "leaving denials out over that by leaving a pathology out, near 0 where a metric sees what "
    "matters; - where the latter is not clearly above 0. mistaken: share of reports where leaving "
    "denials out costs as much or more."
)


TOLD = "upper bound, told the answer"


def headline_tables(found: Controlled, stress: Stress | None) -> list[TextTable]:
    """The areas, and the stress test."""
    tables = [area_table(found, name) for name in found.observations]
    if stress is not None and any(each.n for each in stress.results):
        tables.append(stress_table(stress))
    return [table for table in tables if table.rows]


def matrices(found: Controlled) -> list[TextTable]:
    """The 2 x 2 and the 4 x 4 matrix of every metric and observation."""
    tables = []
    for metric in found.signatures:
        for name in found.observations:
            tables.append(matrix(found, metric, name, list(SIDES)))
            tables.append(matrix(found, metric, name, list(GROUPS.values())))
    return [table for table in tables if table.rows]


def area_table(found: Controlled, observation: str) -> TextTable:
    """Areas of every metric for one observation."""
    known = {
        (each.metric, each.task): each
        for each in found.separations
        if each.observation == observation
    }
    rows = []
    for metric in found.signatures:
        cells = [known.get((metric, task)) for task in TASKS]
        shown = [
            part
            for each in cells
            for part in ("-" if each is None else interval(each.auc), str(each.n if each else 0))
        ]
        rows.append((_named(metric, found.told), *shown))
    columns = tuple(part for task in TASKS for part in (task, f"n ({task})"))
    return TextTable(
        f"Do sentences agree? {observation}", ("metric", *columns), tuple(rows), _AREAS
    )


def matrix(found: Controlled, metric: str, observation: str, groups: Sequence[str]) -> TextTable:
    """Means of one metric, references by row."""
    known = {
        (each.reference, each.candidate): each
        for each in found.cells
        if (each.metric, each.observation) == (metric, observation)
    }
    rows = []
    for reference in groups:
        cells = [known.get((reference, candidate)) for candidate in groups]
        if any(cells):
            shown = ("-" if c is None else f"{number(c.mean.estimate)} ({c.n})" for c in cells)
            rows.append((reference, *shown))
    way = "Higher is better." if found.higher_is_better[metric] else "Lower is better."
    if list(groups) == list(SIDES):
        way = f"{_SIDES} {way}"
    return TextTable(
        f"{_named(metric, found.told)}: {observation}",
        ("reference", *groups),
        tuple(rows),
        _MATRIX.format(way=way),
    )


def stress_table(stress: Stress) -> TextTable:
    """The stress test, one row a metric."""
    rows = tuple(
        (
            _named(each.metric, stress.told),
            str(each.n),
            *(interval(each.means.get(name)) for name in COMPARED),
            interval(each.ratio),
            interval(each.mistaken),
        )
        for each in stress.results
    )
    columns = ("metric", "n", *COMPARED, "ratio", "mistaken")
    return TextTable("Unmentioned against negative", columns, rows, _STRESS)


def _named(metric: str, told: frozenset[str]) -> str:
    return f"{metric} ({TOLD})" if metric in told else metric
