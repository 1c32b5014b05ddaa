"""Facts about the rows of an evaluation: counts of special cases, and a user's own columns."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vlscore.data import Study, StudyTable, is_missing, read_rows
from vlscore.errors import Failure, InvalidSetting, InvalidTable, VLScoreError
from vlscore.evaluation.score_table import VIEW_GUESSED
from vlscore.evaluation.scored import ERROR, ID, ROW, Scored
from vlscore.metrics import FLAGS, NUMBERS, Metric, Scorer, percentile_column
from vlscore.text import ReportSections, has_headings, split_sections

HEADINGS = "references with headings, scored whole"
UNLIKE = "impressions scored against findings, or the reverse"
EMPTY = "empty candidates, scored as they are"
SUSPICIOUS = '{}s that say "nan", "None", "[\'...\']" or the like'
SILENT = "references that state nothing"
_FEW_WORDS = 12
_MOST_GROUPS = 50
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
    noticed = {
        EMPTY: sum(not (study.candidate or "").strip() for study in studies),
        **{SUSPICIOUS.format(role): n for role, n in suspicious_counts(studies).items()},
        SILENT: silent_references(studies, scorer),
        "studies whose frontal view is a guess": int(scores[VIEW_GUESSED].sum())
        if VIEW_GUESSED in scores
        else 0,
        **section_counts(studies, studies, scorer),
    }
    found |= {name: count for name, count in noticed.items() if count}
    return [{"what": name, "n": count} for name, count in found.items()]


def suspicious_counts(studies: Iterable[Study]) -> dict[str, int]:
    """Return how many candidates, and references, are words that stand for a missing text."""
    found = {"candidate": 0, "reference": 0}
    for study in studies:
        for role in study.suspicious:
            found[role] += 1
    return found


def silent_references(studies: Iterable[Study], scorer: Scorer) -> int:
    """Return in how many references the rules find no statement, where a metric reads by them."""
    if not any(m.uses_findings and not m.settings.get("model") for m in scorer.steps):
        return 0
    from vlscore.findings import sentences_read

    counts: Counter[str] = Counter()
    for study in studies:
        with contextlib.suppress(VLScoreError):
            text = replace(study, candidate=None).selected(scorer.text_policy).reference or ""
            # Of a long text without any statement, the note on languages speaks.
            counts[text] += 0 < len(text.split()) <= _FEW_WORDS
    return sum(n for text, n in counts.items() if n and not sentences_read(text)[0])


def noticed_notes(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield what a reader must know of candidates and references that are no usual reports.

    Args: counts: as `counts_of` returns them.
    """
    names = [EMPTY, *map(SUSPICIOUS.format, ("candidate", "reference"))]
    names += [f"{flag.partition('_')[0]}s truncated" for flag in FLAGS]
    if found := [f"{name}: {counts[name]}" for name in names if counts.get(name)]:
        yield "; ".join(found)
    if count := counts.get(SILENT):
        yield (
            f"{SILENT}: {count}. For metrics that read findings, every candidate without an "
            "abnormal finding agrees with such a reference; leave these studies out of the table"
        )


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


def check_groups(column: str, values: Iterable[str | None]) -> None:
    """Raise InvalidSetting for a column of too many different values, such as ages or ids."""
    if (count := len({*values} - {None})) > _MOST_GROUPS:
        raise InvalidSetting(
            f"the column {column} has {count} different values: --by is for groups, of which "
            f"there can be {_MOST_GROUPS}"
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
