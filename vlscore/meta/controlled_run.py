"""Controlled corpora and the stress test over a file, into a folder of results."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore._files import plain, write_json
from vlscore._frames import frame
from vlscore._record import run_record
from vlscore._resumable import ResumableFolder
from vlscore.display import TextTable, markdown
from vlscore.errors import InvalidReport
from vlscore.meta.controlled import Controlled, OnProgress, Sampling, controlled_corpora
from vlscore.meta.controlled_tables import headline_tables, matrices
from vlscore.meta.labelled_sentences import (
    LabelledSentences,
    label_sentences,
    write_labelled,
)
from vlscore.meta.unmention import Stress, unmention_test
from vlscore.reports import TextPolicy, select, select_from_parts
from vlscore.scorer import Scorer
from vlscore.studies import BadRow, ReportTable

if TYPE_CHECKING:
    import pandas

_CONTENT = "controlled.json"
_RESULTS = (_CONTENT, "sentences.csv", "tables.md", "tables.tex")


@dataclass(frozen=True)
class ControlledRun:
    """Controlled corpora and their files.

    Attributes:
        folder: with controlled.json, sentences.csv, the tables and run.json; docs/controlled.md
            describes them.
        content: of controlled.json.
        tables: of everything; the first of them are `headlines`.
        notes: what a user should know besides.
        result, stress: the numbers; None where the run had ended before. `stress` is also None
            where sentences were given, not reports.
        unchanged: everything was there already.
    """

    folder: Path
    content: dict[str, Any]
    tables: list[TextTable]
    notes: tuple[str, ...]
    result: Controlled | None = None
    stress: Stress | None = None
    unchanged: bool = False

    @property
    def headlines(self) -> list[TextTable]:
        """The tables that are printed: all but the matrices."""
        return self.tables[: self.content["headlines"]]

    @property
    def signatures(self) -> list[str]:
        """What the numbers of each metric depend on."""
        return list(self.content["signatures"].values())

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a metric, observation and task: auc with its interval, n. Needs pandas."""
        return frame(self.content["separations"], self.content["signatures"])


def run_controlled(
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
) -> ControlledRun:
    """Compare labelled sentences of reports under every metric, and write tables and numbers.

    Args:
        source: reports, whose sentences our rules label and which take the stress test as well; or
            sentences that others labelled.
        out: folder for the results.
        scorer: the metrics, none of which looks at images.
        observations: of the reports' sentences.
        text_policy: which section of a report counts.
        sampling: how many pairs stand behind every number.
        most_reports: of the stress test.
        overwrite: replace earlier results.
        on_progress: called with (pairs done, values lacking).

    Raises: InvalidSetting, FolderInUse.
    """
    began = time.monotonic()
    sampling = sampling or Sampling()
    policy = TextPolicy.named(text_policy)
    key = {
        "sha256": source.sha256,
        "columns": source.sources if isinstance(source, ReportTable) else None,
        "observations": observations,
        "section": policy.signature(),
        "metrics": {name: str(s) for name, s in scorer.signatures.items()},
        "sampling": plain(sampling),
        "most_reports": most_reports,
    }
    with ResumableFolder(out, key, results=_RESULTS, overwrite=overwrite) as folder:
        if folder.record is not None:
            return _read(folder.out, folder.record)
        stress: Stress | None = None
        bad: list[BadRow] = []
        notes: list[str] = []
        if isinstance(source, ReportTable):
            reports = list(_texts(source, policy, bad))
            sentences = label_sentences((text for _, text in reports), observations)
            notes += source.notes
        else:
            sentences = source
            bad += source.bad
        result = controlled_corpora(scorer, sentences, sampling, on_progress=on_progress)
        if isinstance(source, ReportTable):
            stress = unmention_test(
                scorer,
                reports,
                most=most_reports,
                resamples=sampling.resamples,
                seed=sampling.seed,
                on_progress=on_progress,
            )
        notes += [f"{name} is left out: {why}" for name, why in result.left_out.items()]
        notes += [f"{n} pairs have no {m}" for m, n in result.failures.items() if n]
        headlines = headline_tables(result, stress)
        tables = [*headlines, *matrices(result)]
        content: dict[str, Any] = plain(
            {
                "sentences": len(sentences),
                "labelled_by": sentences.labelled_by,
                "counts": result.counts,
                "signatures": {name: str(s) for name, s in result.signatures.items()},
                "cells": result.cells,
                "separations": result.separations,
                "stress": None if stress is None else stress.to_dict(),
                "told_the_answer": sorted(result.told),
                "tables": tables,
                "headlines": len(headlines),
                "failures": bad,
            }
        )

        def write(place: Path) -> dict[str, Any]:
            write_json(place / _CONTENT, content)
            write_labelled(place / "sentences.csv", sentences)
            text = markdown(tables, content["signatures"].values())
            (place / "tables.md").write_text(text, encoding="utf-8")
            latex = "\n".join(table.latex() for table in tables)
            (place / "tables.tex").write_text(latex, encoding="utf-8")
            return run_record(notes=notes, seconds=round(time.monotonic() - began, 3))

        folder.finish(write, rows=0)
        return ControlledRun(folder.out, content, tables, tuple(notes), result, stress)


def _texts(table: ReportTable, policy: TextPolicy, bad: list[BadRow]) -> Iterator[tuple[str, str]]:
    """(id, text that counts) of every report; rows without one go to `bad`."""
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


def _read(out: Path, record: Mapping[str, Any]) -> ControlledRun:
    """A finished run, from its files."""
    content = json.loads((out / _CONTENT).read_text(encoding="utf-8"))
    tables = [
        TextTable(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])), t["caption"])
        for t in content["tables"]
    ]
    return ControlledRun(out, content, tables, tuple(record["notes"]), unchanged=True)
