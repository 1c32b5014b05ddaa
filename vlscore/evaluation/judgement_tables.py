"""What is counted of judgements, and its tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vlscore.core import frame
from vlscore.metrics import CANDIDATE, NOBODY, REFERENCE, SEVERITIES
from vlscore.perturb import ErrorCategory
from vlscore.stats import UNDEFINED, Presentation, Result, TextTable, bootstrap_mean, text_table

if TYPE_CHECKING:
    import pandas

SCORES = ("rating", "grade", "sum", "maximum", "count", "significant")
#: Score of a study with evidence of its image.
IMAGE_RATING = "rating_with_image"
# Findings in the printed table.
_MOST_FINDINGS = 15


def judgement_frames(
    totals: "pandas.DataFrame", errors: Sequence[Mapping[str, Any]], *, has_images: bool
) -> "dict[str, pandas.DataFrame]":
    """Return the means of the scores, and errors by category, finding, and side of the image."""
    names = [name for name in (*SCORES, IMAGE_RATING) if name in totals]
    severities = Counter((each["category"], each["severity"]) for each in errors)
    frames = {
        "scores": frame(
            {"score": name, "mean": bootstrap_mean(totals[name]) if len(totals) else UNDEFINED}
            for name in names
        ),
        "errors": frame(
            {
                "category": str(category),
                **{str(grade): severities[str(category), grade] for grade in SEVERITIES},
                "all": int(totals[str(category)].sum()),
            }
            for category in ErrorCategory
        ),
    }
    if errors:
        frames["findings"] = _findings(errors)
    if has_images:
        sides = Counter((each["category"], each["supports"]) for each in errors)
        frames["image"] = frame(
            {
                "category": str(category),
                **{side: sides[str(category), side] for side in (CANDIDATE, REFERENCE, NOBODY)},
            }
            for category in ErrorCategory
        )
    return frames


def _findings(errors: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """Return one row a finding, those of the largest sum of severities first."""
    found: dict[str, dict[str, int]] = {}
    columns = {
        str(ErrorCategory.OMITTED_FINDING): "missed",
        str(ErrorCategory.FALSE_FINDING): "false",
    }
    for error in errors:
        empty = dict.fromkeys(("missed", "false", "other errors", "sum of severities"), 0)
        own = found.setdefault(error["finding"], empty)
        own[columns.get(error["category"], "other errors")] += 1
        own["sum of severities"] += error["severity"]
    ordered = sorted(found.items(), key=lambda item: (-item[1]["sum of severities"], item[0]))
    return frame({"finding": finding, **own} for finding, own in ordered)


def _tables(run: Result) -> list[TextTable]:
    frames = run.frames
    errors = frames["errors"]
    shown = errors.assign(category=errors["category"].str.replace("_", " "))
    tables = [
        text_table(f"Scores of {run.record['reports']} reports", frames["scores"], digits=4),
        text_table("Errors by category and severity", shown),
    ]
    if "findings" in frames:
        found, caption = frames["findings"], ""
        if len(found) > _MOST_FINDINGS:
            caption = f"The first {_MOST_FINDINGS} of {len(found)}; result.json has all."
        tables.append(text_table("Findings that cost most", found.head(_MOST_FINDINGS), caption))
    if "image" in frames:
        tables.append(text_table("Errors: the image sides with", frames["image"]))
    if "answers" in frames:
        (counts,) = frames["answers"].to_dict("records")
        rows = [{"number of": n.replace("_", " "), "all": each} for n, each in counts.items()]
        title = "Answers of the model, also those from the cache"
        tables.append(text_table(title, rows, digits=4))
    return tables


PRESENTATION = Presentation(_tables, page="vlscore.pages.command_views:judge_view")
