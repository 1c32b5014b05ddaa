"""Labels and findings of a table of reports."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vlscore.core import OnProgress, __version__, checked_arguments, frame, no_progress
from vlscore.data import Report, ReportTable, TextPolicy, as_reports
from vlscore.errors import Failure, InvalidSetting
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
from vlscore.stats import Content, Presentation, Result, text_table

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


@checked_arguments
def findings(
    reports: str | Path | ReportTable,
    out: str | Path,
    *,
    policy: LabelPolicy | None = None,
    format: str = "csv",
    text_policy: TextPolicy | None = None,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Label every report of a table; labels and findings are held in memory.

    Args:
        reports: table of reports; see `open_reports` for the columns.
        out: folder for the results: labels and findings (.csv or .jsonl) besides the usual ones.
            The frame "counts" has one row a label: in how many reports it is stated, uncertain,
            denied and not mentioned.
        policy: what uncertain labels become.
        format: "csv" or "jsonl".
        text_policy: which section of the reports is read; default: all of the text.
        overwrite: compute again; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Raises: InvalidTable where the table cannot be read; InvalidSetting for an
        unknown format, and where `out` holds other results; FolderInUse.
    """
    policy = policy or LabelPolicy()
    if format not in FORMATS:
        raise InvalidSetting(f"labels are written as {' or '.join(FORMATS)}, not {format!r}")
    table = as_reports(reports)
    key = {
        "vlscore": __version__,
        "extraction": extraction_name(),
        "command": "findings",
        **table.key,
        "policy": asdict(policy),
        "text_policy": None if text_policy is None else str(text_policy),
        "format": format,
    }

    def compute(folder: Path) -> Content:
        from pandas import DataFrame

        rows = table if text_policy is None else table.selected(text_policy)
        labels, mentions, failures = _labelled(rows, policy, on_progress)
        counts = frame(
            {"label": label, **{n: sum(e[label] == v for e in labels) for v, n in _STATED.items()}}
            for label in CHEXPERT_LABELS
        )
        stated = DataFrame(mentions, columns=_FINDING_COLUMNS, dtype=object)
        if format == "csv":
            # The zones of a finding are one text.
            stated["zones"] = stated["zones"].map(";".join).astype(object)
        names = ["study_id", *CHEXPERT_LABELS]
        files = {
            f"labels.{format}": DataFrame(labels, columns=names, dtype=object),
            f"findings.{format}": stated,
        }
        facts = {"table": str(table.path.resolve()), "reports": len(labels)}
        return Content({"counts": counts}, files, failures, facts=facts)

    return Result.make(out, key, compute, overwrite=overwrite, notes=table.notes)


def _labelled(
    rows: Iterable[Report | Failure], policy: LabelPolicy, on_progress: OnProgress
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Failure]]:
    """Return the labels of each report, every mention in it, and the rows without a report."""
    labels, mentions, failures = [], [], []
    for done, row in enumerate(rows, start=1):
        if isinstance(row, Failure):
            failures.append(row)
        else:
            found = extract(row.text)
            own = chexpert_labels(found).items()
            written = {label: policy.written(value) for label, value in own}
            labels.append({"study_id": row.id, **written})
            mentions += [_described(row.id, row.text, finding, policy) for finding in found]
        on_progress(done, len(failures))
    return labels, mentions, failures


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


PRESENTATION = Presentation(
    lambda run: [text_table(f"Labels of {run.record['reports']} reports", run.frames["counts"])],
    page="vlscore.pages.command_views:findings_view",
)
