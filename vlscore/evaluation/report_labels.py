"""Labels of a table of reports, in a resumable folder."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    __version__,
    file_digest,
    from_plain,
    no_progress,
    plain,
    read_frame,
)
from vlscore.core import cell as safe_cell
from vlscore.data import BadRow, Report, TextPolicy, open_reports
from vlscore.errors import InvalidReport, InvalidSetting, InvalidTable
from vlscore.evaluation.label_agreement import (
    LabelAgreement,
    Labels,
    agreement,
    agreement_table,
    read_labels,
)
from vlscore.evaluation.row_chunks import RowFiles, RunOfRows, csv_of, join_failures, join_parts
from vlscore.findings import (
    CHEXPERT_LABELS,
    Axis,
    Finding,
    LabelPolicy,
    Polarity,
    Status,
    chexpert_labels,
    extract,
)
from vlscore.stats import FAILURES, TextTable

if TYPE_CHECKING:
    import pandas


FORMATS = ("csv", "jsonl")
_AGREEMENT, _TABLES, _COMPARED = "agreement.csv", "tables.md", "kept.jsonl"
_FINDING_COLUMNS = (
    "study_id",
    "observation",
    "label",
    "value",
    "status",
    "side",
    "zones",
    "severity",
    "change",
    "size_mm",
    "words",
)
_VALUES = {Polarity.POSITIVE: 1, Polarity.NEGATIVE: 0, Polarity.UNCERTAIN: -1}


@dataclass(frozen=True)
class LabelledReports(RunOfRows):
    """Labels of reports, and their files.

    These are labels and findings (.csv or .jsonl), failures.csv, tables.md, and agreement.csv where
    there is a table of labels to compare with.
    """

    results = (
        *(f"{name}.{suffix}" for name in ("labels", "findings") for suffix in FORMATS),
        FAILURES,
        _AGREEMENT,
        _TABLES,
    )

    @property
    def reports(self) -> int:
        """Return the number of reports that were labelled."""
        return int(self.content["reports"])

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Label -> value written ("1", "0", "-1", "") -> reports."""
        found: Mapping[str, Mapping[str, int]] = self.content["counts"]
        return found

    @property
    def agreement(self) -> list[LabelAgreement]:
        """Return agreement with the given labels; empty where none were given."""
        found: list[LabelAgreement] = from_plain(list[LabelAgreement], self.content["agreement"])
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a report, one column a label: 1, 0, -1 or <NA>. Needs pandas."""
        path = next(p for p in self.folder.glob("labels.*") if p.suffix[1:] in FORMATS)
        return read_frame(path, texts=["study_id"]).astype(dict.fromkeys(CHEXPERT_LABELS, "Int64"))


def findings(
    path: str | Path,
    out: str | Path,
    *,
    policy: LabelPolicy | None = None,
    against: str | Path | None = None,
    against_id_column: str | None = None,
    format: str = "csv",
    text_policy: TextPolicy | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> LabelledReports:
    """Label every report of a table; constant memory without `against`, and resumable.

    Args:
        path: table of reports; see `open_reports` for the columns.
        out: folder for the results.
        policy: what uncertain and unmentioned labels count as.
        against: table of labels to compare with; see `read_labels`.
        format: "csv" or "jsonl".
        text_policy: which section of the reports is read; default: all of the text.
        id_column, text_column: names of columns; see `open_reports`.
        resamples, seed: of the intervals.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where a table cannot be read, or the two have no study in common;
        InvalidSetting for an unknown format, and where `out` holds other results; FolderInUse.
    """
    policy = policy or LabelPolicy()
    if format not in FORMATS:
        raise InvalidSetting(f"labels are written as {' or '.join(FORMATS)}, not {format!r}")
    table = open_reports(path, id_column=id_column, text_column=text_column)
    given = None if against is None else read_labels(against, id_column=against_id_column)
    key = plain(
        {
            "command": "findings",
            "vlscore": __version__,
            "table_sha256": table.sha256,
            "columns": [id_column, text_column],
            "policy": asdict(policy),
            "text_policy": None if text_policy is None else str(text_policy),
            "against_sha256": None if against is None else file_digest(Path(against)),
            "format": format,
            "intervals": [resamples, seed],
        }
    )

    def compute(folder: ResumableFolder) -> None:
        run = _LabellingJob(policy, text_policy, format, given)
        run.take_all(folder, table, on_progress or no_progress)
        if not run.reports:
            raise InvalidTable(f"{table.path}: holds no report")
        source = "" if against is None else Path(against).name

        def write(place: Path) -> dict[str, Any]:
            return run.write(folder, place, source, resamples, seed)

        folder.finish(write, rows=run.rows)

    return LabelledReports.make(out, key, compute, overwrite=overwrite, notes=table.notes)


class _LabellingJob(RowFiles[Report]):
    """Job that labels rows and counts their labels."""

    def __init__(
        self,
        policy: LabelPolicy,
        text_policy: TextPolicy | None,
        format: str,
        given: Mapping[str, Labels] | None,
    ) -> None:
        super().__init__()
        self.policy, self.text_policy, self.format, self.given = policy, text_policy, format, given
        self.counts = {label: Counter[str]() for label in CHEXPERT_LABELS}

    @property
    def reports(self) -> int:
        return self.rows - self.bad

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        super().count(rows, note)
        for label, counts in note["counts"].items():
            self.counts[label].update(counts)

    def take(
        self, rows: Sequence[Report | BadRow], on_progress: OnProgress
    ) -> tuple[dict[str, str], dict[str, Any]]:
        labels, findings, compared = io.StringIO(), io.StringIO(), io.StringIO()
        failures: list[tuple[int, str | None, str]] = []
        counts = {label: Counter[str]() for label in CHEXPERT_LABELS}
        for number, row in enumerate(rows, start=1):
            try:
                if isinstance(row, BadRow):
                    raise InvalidReport(row.reason)
                text = row.text if self.text_policy is None else row.selected(self.text_policy).text
            except InvalidReport as error:
                failures.append((row.row, row.id, str(error)))
                continue
            found = extract(text)
            own = chexpert_labels(found)
            written = {label: self.policy.written(value) for label, value in own.items()}
            for label, value in written.items():
                counts[label]["" if value is None else str(value)] += 1
            self._write(labels, {"study_id": row.id, **written})
            for finding in found:
                self._write(findings, _described(row.id, text, finding, self.policy))
            if self.given is not None and row.id in self.given:
                compared.write(json.dumps([row.id, own]) + "\n")
            on_progress(self.rows + number, self.bad + len(failures))
        files = {
            "labels": labels.getvalue(),
            "findings": findings.getvalue(),
            FAILURES: csv_of(failures),
            _COMPARED: compared.getvalue(),
        }
        return files, {"failed": len(failures), "counts": counts}

    def _write(self, stream: io.StringIO, record: Mapping[str, Any]) -> None:
        if self.format == "jsonl":
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            return
        cells = ("" if value is None else value for value in record.values())
        csv.writer(stream, lineterminator="\n").writerow(
            safe_cell(";".join(cell) if isinstance(cell, list) else cell) for cell in cells
        )

    def write(
        self, folder: ResumableFolder, place: Path, source: str, resamples: int, seed: int
    ) -> dict[str, Any]:
        """Write the results, and return their content."""
        heads = {"labels": ("study_id", *CHEXPERT_LABELS), "findings": _FINDING_COLUMNS}
        for name, head in heads.items():
            first = csv_of([head]) if self.format == "csv" else ""
            join_parts(folder.chunks(), name, place / f"{name}.{self.format}", first)
        join_failures(folder.chunks(), place)
        tables = [_counts_table(self.counts, self.reports)]
        rows: list[LabelAgreement] = []
        notes = []
        if self.given is not None:
            rows, note = self._compared(folder, source, resamples, seed)
            notes += note
            tables.append(agreement_table(rows, self.policy, source))
            table = tables[-1]
            (place / _AGREEMENT).write_text(table.csv(), encoding="utf-8")
        (place / _TABLES).write_text("\n".join(t.markdown() for t in tables), encoding="utf-8")
        return {
            "reports": self.reports,
            "counts": self.counts,
            "agreement": plain([asdict(row) for row in rows]),
            "tables": [asdict(table) for table in tables],
            "notes": notes,
        }

    def _compared(
        self, folder: ResumableFolder, source: str, resamples: int, seed: int
    ) -> tuple[list[LabelAgreement], list[str]]:
        assert self.given is not None
        given, found = [], []
        for chunk in folder.chunks():
            for line in (chunk.path / _COMPARED).read_text(encoding="utf-8").splitlines():
                study, labels = json.loads(line)
                given.append(self.given[study])
                found.append(labels)
        if not found:
            some = next(iter(self.given), None)
            raise InvalidTable(
                f"{source}: none of its ids is that of a report; its first is {some!r}"
            )
        notes = []
        if lacking := self.reports - len(found):
            notes.append(f"{lacking} reports have no labels in {source} and are not compared")
        if unused := len(self.given) - len(found):
            notes.append(f"{unused} rows of {source} are of no report")
        return agreement(given, found, self.policy, resamples=resamples, seed=seed), notes


def _described(study: str, text: str, finding: Finding, policy: LabelPolicy) -> dict[str, Any]:
    """Return one mention as a row."""
    sizes = finding.on(Axis.SIZE)
    value = _VALUES[finding.polarity]
    return {
        "study_id": study,
        "observation": finding.observation,
        "label": finding.chexpert,
        "value": policy.written(value),
        "status": None if finding.status is Status.CURRENT else str(finding.status),
        "side": None if finding.side is None else str(finding.side),
        "zones": list(finding.zones),
        "severity": finding.severity,
        "change": None if finding.change is None else str(finding.change),
        "size_mm": float(sizes[0].value) if sizes else None,
        "words": finding.span.of(text),
    }


def _counts_table(counts: Mapping[str, Mapping[str, int]], reports: int) -> TextTable:
    columns = (("1", "stated"), ("-1", "uncertain"), ("0", "denied"), ("", "not mentioned"))
    return TextTable(
        f"Labels of {reports} reports",
        ("label", *(name for _, name in columns)),
        tuple(
            (label, *(str(counts[label].get(value, 0)) for value, _ in columns))
            for label in CHEXPERT_LABELS
        ),
    )
