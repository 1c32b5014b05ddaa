"""Labels and findings of a table of reports."""

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from vlscore.core import OnProgress, __version__, cells, frame, json_line, no_progress
from vlscore.data import BadRow, ReportTable, TextPolicy, open_reports
from vlscore.errors import InvalidReport, InvalidSetting, InvalidTable
from vlscore.findings import (
    CHEXPERT_LABELS,
    Axis,
    Finding,
    LabelPolicy,
    Polarity,
    Status,
    chexpert_labels,
    extract,
    extraction_name,
)
from vlscore.stats import Content, Failure, Result, text_table

FORMATS = ("csv", "jsonl")
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
# Value of a label -> what it says of a report.
_STATED = {1: "stated", -1: "uncertain", 0: "denied", None: "not mentioned"}


def findings(
    path: str | Path,
    out: str | Path,
    *,
    policy: LabelPolicy | None = None,
    format: str = "csv",
    text_policy: TextPolicy | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Result:
    """Label every report of a table, in constant memory.

    Args:
        path: table of reports; see `open_reports` for the columns.
        out: folder for the results: labels and findings (.csv or .jsonl) besides the usual ones.
            The frame "counts" has one row a label: in how many reports it is stated, uncertain,
            denied and not mentioned.
        policy: what uncertain labels become.
        format: "csv" or "jsonl".
        text_policy: which section of the reports is read; default: all of the text.
        id_column, text_column: names of columns; see `open_reports`.
        overwrite: compute again; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Raises: InvalidTable where the table cannot be read or holds no report; InvalidSetting for an
        unknown format, and where `out` holds other results; FolderInUse.
    """
    policy = policy or LabelPolicy()
    if format not in FORMATS:
        raise InvalidSetting(f"labels are written as {' or '.join(FORMATS)}, not {format!r}")
    table = open_reports(path, id_column=id_column, text_column=text_column)
    key = {
        "vlscore": __version__,
        "extraction": extraction_name(),
        "command": "findings",
        "table_sha256": table.sha256,
        "columns": [id_column, text_column],
        "policy": asdict(policy),
        "text_policy": None if text_policy is None else str(text_policy),
        "format": format,
    }

    def compute(folder: Path) -> Content:
        counts, failures = _label(
            table, folder, format, policy, text_policy, on_progress or no_progress
        )
        reports = sum(counts[CHEXPERT_LABELS[0]].values())
        if not reports:
            raise InvalidTable(f"{table.path}: holds no report")
        found = frame(
            {"label": label, **{name: counts[label][value] for value, name in _STATED.items()}}
            for label in CHEXPERT_LABELS
        )
        shown = text_table(f"Labels of {reports} reports", found)
        facts = {"table": str(table.path.resolve()), "reports": reports}
        return Content({"counts": found}, [shown], failures=failures, facts=facts)

    return Result.make(out, key, compute, overwrite=overwrite, notes=table.notes)


def _label(
    table: ReportTable,
    folder: Path,
    format: str,
    policy: LabelPolicy,
    text_policy: TextPolicy | None,
    on_progress: OnProgress,
) -> tuple[dict[str, Counter[int | None]], list[Failure]]:
    """Write labels and findings; return label -> value -> number of reports, and failed rows."""
    counts = {label: Counter[int | None]() for label in CHEXPERT_LABELS}
    failures: list[Failure] = []
    with ExitStack() as stack:
        labels, findings = (
            _writer(
                stack.enter_context(
                    (folder / f"{name}.{format}").open("w", encoding="utf-8", newline="")
                ),
                format,
                columns,
            )
            for name, columns in (
                ("labels", ("study_id", *CHEXPERT_LABELS)),
                ("findings", _FINDING_COLUMNS),
            )
        )
        for done, row in enumerate(table, start=1):
            try:
                if isinstance(row, BadRow):
                    raise InvalidReport(row.reason)
                text = row.text if text_policy is None else row.selected(text_policy).text
                found = extract(text)
                own = chexpert_labels(found)
                written = {label: policy.written(value) for label, value in own.items()}
                labels({"study_id": row.id, **written})
                for finding in found:
                    findings(_described(row.id or "", text, finding, policy))
                for label, value in written.items():
                    counts[label][value] += 1
            except InvalidReport as error:
                failures.append(Failure(row.row, row.id or "", str(error)))
            on_progress(done, len(failures))
    return counts, failures


def _writer(
    stream: IO[str], format: str, columns: tuple[str, ...]
) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that writes a record as a line of a .csv or .jsonl file."""
    if format == "jsonl":
        return lambda record: print(json_line(record), end="", file=stream)
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(columns)

    def write(record: Mapping[str, Any]) -> None:
        lines.writerow(
            cells(";".join(each) if isinstance(each, list) else each for each in record.values())
        )

    return write


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
