"""Controlled corpora and the stress test on a file, in a resumable folder of results."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import (
    OnPhase,
    OnProgress,
    ResumableFolder,
    no_phase,
    plain,
    plain_dict,
    run_record,
    write_json,
)
from vlscore.data import BadRow, ReportTable, TextPolicy, select, select_from_parts
from vlscore.errors import InvalidReport
from vlscore.evaluation.command_settings import IN_SAMPLE, Sampling
from vlscore.evaluation.controlled_sentences.corpora import (
    SIDES,
    TASKS,
    Controlled,
    controlled_corpora,
)
from vlscore.evaluation.controlled_sentences.labelled_sentences import (
    GROUPS,
    LabelledSentences,
    label_sentences,
    write_labelled,
)
from vlscore.evaluation.controlled_sentences.unmention import COMPARED, Stress, unmention_test
from vlscore.metrics import Scorer
from vlscore.stats import Run, TextTable, interval, number, with_mark, write_tables

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


def headline_tables(found: Controlled, stress: Stress | None) -> list[TextTable]:
    """Return the areas, and the stress test."""
    tables = [area_table(found, name) for name in found.observations]
    if stress is not None and any(each.n for each in stress.results):
        tables.append(stress_table(stress))
    return [table for table in tables if table.rows]


def matrices(found: Controlled) -> list[TextTable]:
    """Return the 2 x 2 and the 4 x 4 matrix of every metric and observation."""
    tables = []
    for metric in found.signatures:
        for name in found.observations:
            tables.append(matrix(found, metric, name, list(SIDES)))
            tables.append(matrix(found, metric, name, list(GROUPS.values())))
    return [table for table in tables if table.rows]


def area_table(found: Controlled, observation: str) -> TextTable:
    """Return areas of every metric for one observation."""
    known = {
        (each.metric, each.task): each
        for each in found.separations
        if each.observation == observation
    }
    rows = []
    for metric in found.signatures:
        row = {"metric": _named(metric, found.told)}
        for task in TASKS:
            each = known.get((metric, task))
            row[task] = "-" if each is None else interval(each.auc)
            row[f"n ({task})"] = str(each.n if each else 0)
        rows.append(row)
    return TextTable.of(f"Do sentences agree? {observation}", rows, _AREAS)


def matrix(found: Controlled, metric: str, observation: str, groups: Sequence[str]) -> TextTable:
    """Return means of one metric, references by row."""
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
    """Return the stress test, one row a metric."""
    rows = (
        {
            "metric": _named(each.metric, stress.told),
            "n": str(each.n),
            **{name: interval(each.means.get(name)) for name in COMPARED},
            "ratio": interval(each.ratio),
            "mistaken": interval(each.mistaken),
        }
        for each in stress.results
    )
    return TextTable.of("Unmentioned against negative", rows, _STRESS)


def _named(metric: str, in_sample: frozenset[str]) -> str:
    return f"{metric} ({IN_SAMPLE})" if metric in in_sample else metric


@dataclass(frozen=True)
class ControlledRun(Run):
    """Controlled corpora and their files; docs/controlled.md describes them.

    A row of `to_pandas` is a metric, observation and task: auc with its interval, n.

    Attributes:
        result, stress: the numbers; None where the run had ended before. `stress` is also None
            where the input was sentences, not reports.
    """

    content_file = "controlled.json"
    results = (content_file, "sentences.csv", "tables.md", "tables.tex")
    rows = "separations"

    result: Controlled | None = None
    stress: Stress | None = None

    @property
    def headlines(self) -> list[TextTable]:
        """Return the tables that are printed: all but the matrices."""
        return self.tables[: self.content["headlines"]]


def controlled(
    source: ReportTable | LabelledSentences,
    out: str | Path,
    scorer: Scorer,
    *,
    observations: tuple[str, ...] | None = None,
    text_policy: TextPolicy | str | None = None,
    sampling: Sampling | None = None,
    most_reports: int = 200,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase = no_phase,
) -> ControlledRun:
    """Compare labelled sentences of reports under every metric, and write tables and numbers.

    Args:
        source: reports, whose sentences our rules label and which take the stress test as well; or
            sentences that others labelled.
        out: folder for the results.
        scorer: the metrics, none of which looks at images.
        observations: of the reports' sentences.
        text_policy: which section of a report counts.
        sampling: number of pairs from which every number is computed.
        most_reports: of the stress test.
        overwrite: replace earlier results.
        on_progress: called with (pairs done, values lacking).
        on_phase: called at the beginning of each phase: pairs of sentences, of reports, resampling.

    Raises: InvalidSetting, FolderInUse.
    """
    began = time.monotonic()
    sampling, policy = sampling or Sampling(), TextPolicy.named(text_policy)
    key = {
        "sha256": source.sha256,
        "columns": source.sources if isinstance(source, ReportTable) else None,
        "observations": observations,
        "section": policy.signature(),
        "metrics": {name: str(s) for name, s in scorer.signatures.items()},
        "sampling": plain(sampling),
        "most_reports": most_reports,
    }

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        read = _read(source, policy, observations)
        result = controlled_corpora(
            scorer, read.sentences, sampling, on_progress=on_progress, on_phase=on_phase
        )
        stress: Stress | None = None
        if isinstance(source, ReportTable):
            stress = unmention_test(
                scorer,
                read.reports,
                most=most_reports,
                resamples=sampling.resamples,
                seed=sampling.seed,
                on_progress=on_progress,
                on_phase=on_phase,
            )
        content, tables = _content(read, result, stress)

        def write(place: Path) -> dict[str, Any]:
            write_json(place / ControlledRun.content_file, content)
            write_labelled(place / "sentences.csv", read.sentences)
            write_tables(place, tables, content["signatures"].values())
            notes = [*read.notes, *_notes(result)]
            return run_record(notes=notes, seconds=round(time.monotonic() - began, 3))

        folder.finish(write, rows=0)
        return {"result": result, "stress": stress}

    return ControlledRun.make(out, key, compute, overwrite=overwrite)


@dataclass(frozen=True)
class _ReadSentences:
    """Sentences with labels, the reports that they are from, and the rows without a text."""

    sentences: LabelledSentences
    reports: Sequence[tuple[str, str]]
    bad: Sequence[BadRow]
    notes: Sequence[str]


def _read(
    source: ReportTable | LabelledSentences,
    policy: TextPolicy,
    observations: tuple[str, ...] | None,
) -> _ReadSentences:
    if isinstance(source, LabelledSentences):
        return _ReadSentences(source, (), source.bad, ())
    bad: list[BadRow] = []
    reports = list(_texts(source, policy, bad))
    sentences = label_sentences((text for _, text in reports), observations)
    return _ReadSentences(sentences, reports, bad, source.notes)


def _notes(result: Controlled) -> list[str]:
    notes = [f"{name} is left out: {why}" for name, why in result.left_out.items()]
    return notes + [f"{n} pairs have no {m}" for m, n in result.failures.items() if n]


def _content(
    read: _ReadSentences, result: Controlled, stress: Stress | None
) -> tuple[dict[str, Any], list[TextTable]]:
    """Return the content of controlled.json, and all tables."""
    headlines = headline_tables(result, stress)
    tables = with_mark([*headlines, *matrices(result)], result.signatures.values())
    content = plain_dict(
        {
            "sentences": len(read.sentences),
            "labelled_by": read.sentences.labelled_by,
            "counts": result.counts,
            "signatures": {name: str(s) for name, s in result.signatures.items()},
            "cells": result.cells,
            "separations": result.separations,
            "stress": None if stress is None else stress.to_dict(),
            "told_the_answer": sorted(result.told),
            "tables": tables,
            "headlines": len(headlines),
            "failures": list(read.bad),
        }
    )
    return content, tables


def _texts(table: ReportTable, policy: TextPolicy, bad: list[BadRow]) -> Iterator[tuple[str, str]]:
    """Yield (id, selected text) of every report; rows without one are added to `bad`."""
    for row in table:
        if isinstance(row, BadRow):
            bad.append(row)
            continue
        try:
            if row.parts is not None:
                text = select_from_parts(row.parts, policy)
            else:
                text = select(row.text, policy)
            yield row.id, text
        except InvalidReport as error:
            bad.append(BadRow(row.row, row.id, str(error)))
