"""What is counted of judgements, and its tables."""

from collections.abc import Collection, Mapping, Sequence
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
    import pandas

    names = [name for name in (*SCORES, IMAGE_RATING) if name in totals]
    all_errors = pandas.DataFrame(errors, columns=["category", "severity", "finding", "supports"])

    def by_category(column: str, values: Collection[Any]) -> "pandas.DataFrame":
        """Count the errors of each category by the values of a column."""
        counts = pandas.crosstab(all_errors["category"], all_errors[column])
        counts = counts.reindex(
            index=list(map(str, ErrorCategory)), columns=list(values), fill_value=0
        )
        return counts.rename(columns=str).rename_axis(columns=None).reset_index()

    frames = {
        "scores": frame(
            {"score": name, "mean": bootstrap_mean(totals[name]) if len(totals) else UNDEFINED}
            for name in names
        ),
        "errors": by_category("severity", SEVERITIES),
    }
    frames["errors"]["all"] = [int(totals[str(category)].sum()) for category in ErrorCategory]
    if errors:
        frames["findings"] = _findings(all_errors)
    if has_images:
        frames["image"] = by_category("supports", (CANDIDATE, REFERENCE, NOBODY))
    return frames


def _findings(errors: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return one row a finding, those of the largest sum of severities first."""
    import pandas

    kinds = {
        str(ErrorCategory.OMITTED_FINDING): "missed",
        str(ErrorCategory.FALSE_FINDING): "false",
    }
    kind, total = errors["category"].map(kinds).fillna("other errors"), "sum of severities"
    found = pandas.crosstab(errors["finding"], kind)
    found = found.reindex(columns=["missed", "false", "other errors"], fill_value=0)
    found[total] = errors.groupby("finding")["severity"].sum()
    ordered = found.sort_values(total, ascending=False, kind="stable")
    return ordered.rename_axis(columns=None).reset_index()


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
