"""What the views of several commands share: options, studies, intervals, marks in reports.

Marks show what the judge and the finding extraction read, and what a change changed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from vlscore.core import OnProgress, no_progress
from vlscore.data import Study
from vlscore.errors import VLScoreError
from vlscore.findings import Polarity, extract
from vlscore.metrics import RuleJudge, load_tables, statements_of
from vlscore.pages.page_parts import TRIANGLE, Block, Highlight, RunView, pieces_of
from vlscore.pages.run_studies import studies_by_row, table_of, text_policy_of
from vlscore.stats import Result

#: Category of the judge -> class of its mark on the page.
KINDS: Mapping[str, str] = {
    "false_finding": "invented",
    "omitted_finding": "missed",
    "wrong_location": "place",
    "wrong_severity": "severity",
    "false_comparison": "comparison",
    "omitted_comparison": "comparison",
}
_POLARITIES = {
    Polarity.POSITIVE: "positive",
    Polarity.NEGATIVE: "denied",
    Polarity.UNCERTAIN: "uncertain",
}
Id = TypeVar("Id")
Text = TypeVar("Text")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True)
class PageOptions:
    """What a page may hold, and where its inputs are.

    Attributes:
        texts: whether reports, ids and paths are on the page.
        table: table of the studies, where run.json names none or it was moved.
        image_root: folder that image paths start from.
        on_progress: called with (cases read, 0).
    """

    texts: bool = True
    table: str | Path | None = None
    image_root: str | Path | None = None
    on_progress: OnProgress = no_progress


def tables_named(record: Mapping[str, Any]) -> Mapping[str, str]:
    found = record.get("tables")
    return found if isinstance(found, Mapping) else {}


def read_texts(
    view: RunView, options: PageOptions, read: Callable[[], dict[Id, Text]]
) -> dict[Id, Text]:
    """Return the reports that `read` returns; none, and a note, where their table is not there."""
    if not options.texts:
        return {}
    try:
        return read()
    except (VLScoreError, TypeError) as error:
        view.notes.append(
            f"Reports are not shown: {error}. Name the table with --studies "
            "(in Python: table=) and make the page again."
        )
        return {}


def studies_of(
    run: Result, view: RunView, options: PageOptions, *needs: str
) -> Mapping[int, Study]:
    def read() -> dict[int, Study]:
        table = table_of(run, needs, options.table, options.image_root)
        return studies_by_row(table, text_policy_of(run, view.signatures))

    return read_texts(view, options, read)


def cases_of(
    texts: Sequence[Text | None], options: PageOptions, blocks: Callable[[int, Text], list[Block]]
) -> list[list[Block]] | None:
    """Return the blocks of each row; None where no text could be read.

    Args:
        texts: what each row has to show, such as its study; None where that is absent.
        blocks: function of a row's number and what it has to show.
    """
    if all(text is None for text in texts):
        return None
    found: list[list[Block]] = []
    for row, text in enumerate(texts):
        found.append([] if text is None else blocks(row, text))
        options.on_progress(len(found), 0)
    return found


def judged_study(study: Study, errors: Any = None, title: str = "") -> list[Block]:
    """Return the block of a study's texts, as `judged_block`; none without two texts."""
    if study.candidate is None or study.reference is None:
        return []
    return [judged_block(study.candidate, study.reference, errors, title)]


def triangle_of(numbers: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the numbers that draw a triangle; None where one is absent, or it has no base."""
    found = {name: float(numbers.get(name, nan)) for name in TRIANGLE}
    is_drawn = not any(map(isnan, found.values())) and found["image_reference"] > 0
    return found if is_drawn else None


def bounds_of(
    record: Mapping[str, Any], name: str
) -> tuple[float | None, float | None, float | None]:
    """Return an interval of a frame's row: the columns x, x.low and x.high."""
    return record.get(name), record.get(f"{name}.low"), record.get(f"{name}.high")


@cache
def _judge() -> RuleJudge:
    return RuleJudge()


def judged_block(
    candidate: str,
    reference: str,
    errors: Iterable[Mapping[str, Any]] | None = None,
    title: str = "",
    also: Mapping[str, Sequence[Highlight]] = MappingProxyType({}),
) -> Block:
    """Return both texts with their errors and the findings on which they agree marked.

    Args:
        candidate, reference: one report each.
        errors: of the candidate, as `ErrorItem.to_dict` writes them; default: what the judge by
            rules finds, without the patient's age.
        title: of the block.
        also: further marks, by "candidate" and "reference".
    """
    if errors is None:
        errors = (each.to_dict() for each in _judge().judge(candidate, reference).errors)
    sides: dict[str, list[Highlight]] = {"candidate": [], "reference": []}
    listed: list[dict[str, Any]] = []
    for number, error in enumerate(errors, start=1):
        kind, reason = KINDS[error["category"]], error["reason"]
        if (side := error.get("supports")) is not None:
            known = f"sides with the {side}" if side in sides else "does not decide"
            reason = f"{reason}; the image {known}"
        shown = {name: error[name] for name in ("severity", "finding", "correction")}
        listed.append({"kind": kind, "reason": reason, **shown})
        for side, marks in sides.items():
            if (quote := error[side]) is not None:
                marks.append(Highlight(quote["start"], quote["end"], kind, number))
    texts = []
    for side, text in (("candidate", candidate), ("reference", reference)):
        agreed = _agreed(text, sides[side])
        texts.append((side, pieces_of(text, [*sides[side], *agreed, *also.get(side, ())])))
    return Block(title, texts, listed)


def _agreed(text: str, wrong: Sequence[Highlight]) -> list[Highlight]:
    """Return marks of the statements that no error quotes."""
    found = []
    for statement in statements_of(text, load_tables()).statements:
        start, end = statement.quoted
        if not any(mark.start < end and start < mark.end for mark in wrong):
            found.append(Highlight(start, end, "agreed"))
    return found


def findings_block(report: str) -> Block:
    """Return a report with its findings marked as positive, denied or uncertain."""
    marks = [Highlight(*each.span, _POLARITIES[each.polarity]) for each in extract(report)]
    return Block("", [("report", pieces_of(report, marks))])


def changed_block(original: str, changed: str) -> Block:
    """Return two versions of a report with the words that differ marked.

    >>> changed_block("No edema.", "Mild edema.").texts[1]
    ('changed', [['Mild', 'added', []], ' edema.'])
    """
    one, other = _WORDS.findall(original), _WORDS.findall(changed)
    removed: list[Highlight] = []
    added: list[Highlight] = []
    starts, ends = _starts(one), _starts(other)
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            removed.append(Highlight(starts[a], starts[b], "removed"))
            added.append(Highlight(ends[c], ends[d], "added"))
    return Block(
        "", [("original", pieces_of(original, removed)), ("changed", pieces_of(changed, added))]
    )


def _starts(words: Sequence[str]) -> list[int]:
    """Return the position of each word, and the end of the text."""
    found = [0]
    for word in words:
        found.append(found[-1] + len(word))
    return found
