"""Facts about the rows of an evaluation: counts of special cases, and a user's own columns."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vlscore.data import Study, StudyTable, is_missing, read_rows
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.score_table import VIEW_GUESSED
from vlscore.evaluation.scored import ERROR, ID, ROW, Scored
from vlscore.metrics import FLAGS, NUMBERS, Metric, Scorer, percentile_column
from vlscore.text import ReportSections, has_headings, split_sections

HEADINGS = "references with headings, scored whole"
UNLIKE = "impressions scored against findings, or the reverse"
# Beyond these, a candidate is near the line through image and reference, but not near the latter.
_FOOT_NEAR = (-0.5, 1.5)


def counts_of(
    rows: Sequence[Study | Failure], scored: Scored, scorer: Scorer
) -> list[dict[str, Any]]:
    """Return how many rows have values, and how many are special cases, where there are some."""
    scores = scored.rows
    studies = [row for row in rows if isinstance(row, Study)]
    failed = len({row for row, _ in scored.failures})
    found: dict[str, int] = {
        "rows": len(scores),
        "rows with every value": len(scores) - failed,
    }
    for flag in FLAGS:
        if flag in scores:
            found[f"{flag.partition('_')[0]}s truncated"] = int(scores[flag].sum())
    if "foot" in scores:
        low, high = _FOOT_NEAR
        foot = scores["foot"]
        found["foot far from the reference"] = int(((foot < low) | (foot > high)).sum())
    suspicious = [study.suspicious for study in studies]
    noticed = {
        "empty candidates, scored as they are": sum(
            not (study.candidate or "").strip() for study in studies
        ),
        **{
            f'{role}s that say "nan", "None", "[\'...\']" or the like': sum(
                role in roles for roles in suspicious
            )
            for role in ("candidate", "reference")
        },
        "studies whose frontal view is a guess": int(scores[VIEW_GUESSED].sum())
        if VIEW_GUESSED in scores
        else 0,
        **section_counts(studies, studies, scorer),
    }
    found |= {name: count for name, count in noticed.items() if count}
    return [{"what": name, "n": count} for name, count in found.items()]


def section_counts(
    studies: Iterable[Study], pairs: Iterable[Study], scorer: Scorer
) -> dict[str, int]:
    """Return how many references have headings, but are scored whole, and how many pairs differ.

    Those differ of which "auto" takes the impression of one report, and the findings of the other.
    Reports without titles are compared with either.
    """
    policy, found = scorer.text_policy, {HEADINGS: 0, UNLIKE: 0}
    sections = {policy.section_of("reference"), policy.section_of("candidate")}
    if not scorer.needs.references:
        return found
    if policy.section_of("reference") == "all":
        found[HEADINGS] = sum(s.parts is None and has_headings(s.reference or "") for s in studies)
    elif sections == {"auto"}:
        for pair in pairs:
            taken = _taken(pair.parts or split_sections(pair.reference or ""))
            both = {taken, _taken(split_sections(pair.candidate or ""))}
            found[UNLIKE] += both == {"findings", "impression"}
    return found


def _taken(sections: "ReportSections | Mapping[str, str]") -> str | None:
    """Return which section "auto" takes; None for a report without both, or with both in one."""
    return next((name for name in ("findings", "impression") if sections.get(name)), None)


def section_notes(counts: Mapping[str, int], studies: int, candidates: int) -> Iterator[str]:
    """Yield what a reader must know of the sections that are scored.

    Args: counts: what `section_counts` found of so many studies, and candidates.
    """
    headings, unlike = counts.get(HEADINGS, 0), counts.get(UNLIKE, 0)
    if headings:
        have = "has" if headings == 1 else "have"
        yield (
            f"{headings} of {studies} references {have} headings, and are scored whole, indication "
            "and headings included; --section reference=findings,candidate=all scores the findings "
            "alone"
        )
    if unlike:
        have = "has its" if unlike == 1 else "have their"
        yield (
            f"{unlike} of {candidates} candidates {have} impression scored against the findings of "
            "the reference, or the reverse, since one of the two reports lacks the other section; "
            "--section findings or --section impression leaves such studies out, as failed rows"
        )


def read_own(
    names: Sequence[str], table: StudyTable, metrics: Iterable[Metric]
) -> dict[str, dict[int, str | None]]:
    """Return column -> number of a row -> its text, None for an empty cell.

    Raises: InvalidTable for a column that the table lacks; InvalidSetting for one whose name the
        results have already, of a metric too.
    """
    if lacking := [name for name in names if name not in table.found]:
        raise InvalidTable(
            f"{table.path}: no column {', '.join(lacking)}; found: {', '.join(table.found)}"
        )
    taken = {ROW, ID, ERROR, VIEW_GUESSED, *NUMBERS, *FLAGS}
    for metric in metrics:
        if unlucky := taken & set(metric.columns):
            raise InvalidSetting(
                f"the metric {metric} has the column {min(unlucky)}, which every table of scores "
                "has already; give the metric another name"
            )
        taken |= {*metric.columns, percentile_column(metric)}
    if twice := [name for name in names if name in taken]:
        raise InvalidSetting(
            f"{table.path}: the results have a column {twice[0]} already; give yours another name"
        )
    found: dict[str, dict[int, str | None]] = {name: {} for name in names}
    for number, record in read_rows(table.path, names) if names else ():
        for name, column in found.items():
            column[number] = None if isinstance(record, str) else _text(record.get(name))
    return found


def _text(value: Any) -> str | None:
    if is_missing(value):
        return None
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
