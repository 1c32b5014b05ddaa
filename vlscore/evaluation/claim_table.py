"""Verdicts of images on the claims of a table's reports: `vlscore claims`."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.claims import (
    CANNOT_TELL,
    CHANGES,
    NIH_LABELS,
    VERDICTS,
    Cases,
    ImageEvidence,
    check_rate,
    claims_of_reports,
    evidence_digest,
    finding_of_label,
    fit_evidence,
    labels_of,
    read_evidence,
    verdicts_of,
)
from vlscore.core import (
    OnProgress,
    Signature,
    __version__,
    file_digest,
    frame,
    no_progress,
)
from vlscore.data import ColumnNames, StudyTable, columns_of, open_studies, read_rows
from vlscore.embedding import (
    WITH_PRIOR,
    EmbeddedTable,
    StudyEmbedder,
    embed_table,
    training_notes,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.command_settings import EvidenceSettings
from vlscore.evaluation.label_tables import read_labels
from vlscore.stats import Content, Result, grouped_auc, text_table, with_mark

if TYPE_CHECKING:
    import pandas

EVIDENCE, CLAIMS = "evidence.npz", "claims.csv"
_NIH_COLUMNS = ("Finding Labels", "labels")
_NIH_IDS = ("Image Index", "id")
_CAPTION = (
    "AUC: area under the ROC curve on the calibration images, 95 % bootstrap intervals over "
    "patients. Decided: share of the claims with a verdict; the others are: cannot tell."
)


def claims(
    studies: str | Path,
    out: str | Path,
    embedder: StudyEmbedder | None = None,
    *,
    fit: str | Path | None = None,
    calibrate: str | Path | None = None,
    labels: Sequence[str | Path] = (),
    evidence: str | Path | None = None,
    rate: float = 0.1,
    settings: EvidenceSettings | None = None,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    limit: int | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Judge every claim of the reports of a table by the images, at a false discovery rate.

    Args:
        studies: table with id, image, candidate, and reference if it has one.
        out: folder for the results: claims.csv, evidence.npz, tables.
        embedder: encoder and policies; default: the default encoder.
        fit: table of studies to fit probes on, with references, unless `labels` has their labels.
        calibrate: another table to calibrate on, of the hospital whose images are judged; default:
            a share of the patients of `fit`.
        labels: tables of labels of the studies in `fit` and `calibrate`: as CheXpert and MIMIC have
            them, or NIH's. A study without a row there is labelled by its report.
        evidence: evidence.npz of an earlier call in place of `fit`.
        rate: false discovery rate.
        settings: how evidence is fitted.
        limit: read only so many rows of `studies`, the first ones; None for all.
        on_progress: called with (rows of all tables that are embedded, rows failed).

    Returns: the result with the frame "findings", one row a finding.
    Raises: InvalidTable, InvalidSetting: an input cannot be used; `out` holds another run.
    """
    check_rate(rate)
    if (fit is None) is (evidence is None):
        raise InvalidSetting("give a table to fit on (--fit), or evidence that was fitted earlier")
    settings, embedder = settings or EvidenceSettings(), embedder or StudyEmbedder()
    table = _opened(studies, columns, image_root, limit)
    embedder = embedder.for_table(table)
    key = {
        "command": "claims",
        "vlscore": __version__,
        **table.key,
        "signature": str(embedder.signature),
        "rate": rate,
        "settings": asdict(settings),
        **{
            name: None if path is None else file_digest(Path(path))
            for name, path in (("fit", fit), ("calibrate", calibrate), ("evidence", evidence))
        },
        "labels": [file_digest(Path(path)) for path in labels],
    }
    before = 0

    def embedded(table: StudyTable) -> EmbeddedTable:
        """Embed the images of a table; progress counts the rows of all tables."""
        nonlocal before
        start = before
        found = embed_table(
            table,
            embedder,
            None,
            roles=["image"],
            workers=workers,
            on_progress=lambda done, failed: on_progress(start + done, failed),
        )
        before += found.rows
        return found

    def compute(path: Path) -> Content:
        if evidence is not None:
            found = read_evidence(evidence, str(embedder.signature))
            failed: list[Failure] = []
        else:
            assert fit is not None
            found, failed = _fitted(embedder, embedded, fit, calibrate, labels, settings, columns)
        found.save(path / EVIDENCE)
        began = time.monotonic()
        images = embedded(table)
        seconds = time.monotonic() - began
        content = _content(found, images, rate, embedder.signature)
        return replace(
            content,
            failures=[*failed, *content.failures],
            facts={
                "table": str(table.path.resolve()),
                "encoder": embedder.encoder.card.to_dict(),
                "evidence": evidence_digest(path / EVIDENCE),
                "seconds_embedding": round(seconds, 3),
                "seconds": round(time.monotonic() - began, 3),
            },
        )

    notes = (*table.notes, *embedder.notes, *training_notes(embedder, table.sha256))
    return Result.make(
        out, key, compute, images=table.image_files, overwrite=overwrite, notes=notes
    )


def _opened(
    path: str | Path,
    columns: ColumnNames | None,
    image_root: str | Path | None,
    limit: int | None,
) -> StudyTable:
    """Open the studies; only a table without candidates must have references."""
    has_candidate = (columns or ColumnNames()).candidate in columns_of(path)
    return open_studies(
        path,
        needs={"image", "candidate"} if has_candidate else {"image", "reference"},
        wants={"reference"} if has_candidate else (),
        columns=columns,
        image_root=image_root,
        limit=limit,
    )


def claim_rows(evidence: ImageEvidence, images: EmbeddedTable, rate: float) -> "pandas.DataFrame":
    """Return the verdict on each claim of candidates and references, with the studies' ids."""
    found = [
        claim
        for number, study in enumerate(images.studies)
        for claim in claims_of_reports(number, study.candidate, study.reference)
    ]
    rows = verdicts_of(
        evidence,
        images.vectors["image"].astype(float),
        found,
        rate=rate,
        has_prior=images.has_prior,
    )
    ids = [images.studies[number].id for number in rows.pop("image")]
    rows.insert(0, "id", ids)
    return rows


def cases_of(
    images: EmbeddedTable,
    labels: Mapping[str, Mapping[str, int | None]],
    group_column: str | None,
    with_prior: bool,
) -> Cases:
    """Return labelled cases: labels of a table, else those that a study's report states.

    Args:
        labels: id -> finding -> 1, 0, or None where it is unknown; of some studies.
        with_prior: whether vectors show earlier images, where there are some.
    Raises: InvalidTable where a study has neither labels nor a report.
    """
    lacking = [s.id for s in images.studies if s.id not in labels and not s.reference]
    if lacking:
        raise InvalidTable(
            f"{len(lacking)} studies have neither a report nor labels, such as {lacking[0]!r}"
        )
    each = [labels.get(s.id) or labels_of(s.reference or "") for s in images.studies]
    # A table of labels says nothing about findings that it has no column of.
    known = [set(labels[s.id]) if s.id in labels else None for s in images.studies]
    names = sorted({finding for found in each for finding in found})
    columns = {}
    for name in names:
        values = [
            np.nan if own is not None and name not in own else found.get(name, 0)
            for found, own in zip(each, known, strict=True)
        ]
        columns[name] = np.array([np.nan if v is None else v for v in values], float)
        if name.rpartition(", ")[2] in CHANGES:
            seen = np.array(images.has_prior) & with_prior
            columns[name][~seen] = np.nan
    groups = [
        str(study.extra.get(group_column) or study.id) if group_column else study.id
        for study in images.studies
    ]
    return Cases(images.vectors["image"].astype(float), columns, groups)


def read_claim_labels(path: str | Path) -> dict[str, dict[str, int | None]]:
    """Read study id -> finding -> label from a table of CheXpert, MIMIC or NIH ChestX-ray14.

    NIH's table has the column "Finding Labels" (or "labels"), with all labels of an image in one
    cell, and "Image Index" (or "id"); a label that is not in the cell is 0.

    Raises: InvalidTable as `read_labels`.
    """
    found = columns_of(path)
    column = next((name for name in _NIH_COLUMNS if name in found), None)
    if column is None:
        return {
            study: {finding_of_label(name): value for name, value in labels.items()}
            for study, labels in read_labels(path).items()
        }
    ids = next((name for name in _NIH_IDS if name in found), None)
    if ids is None:
        raise InvalidTable(f"{path}: has no column {' or '.join(_NIH_IDS)}")
    every = {finding_of_label(name) for name in NIH_LABELS}
    labels: dict[str, dict[str, int | None]] = {}
    for row, record in read_rows(path, {ids, column}):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {row}: {record}")
        cell = record.get(column) or ""
        stated = cell if isinstance(cell, list) else str(cell).split("|")
        present = {finding_of_label(name) for name in stated}
        labels[str(record.get(ids))] = {name: int(name in present) for name in every}
    return labels


def _fitted(
    embedder: StudyEmbedder,
    embedded: Callable[[StudyTable], EmbeddedTable],
    fit: str | Path,
    calibrate: str | Path | None,
    labels: Iterable[str | Path],
    settings: EvidenceSettings,
    columns: ColumnNames | None,
) -> tuple[ImageEvidence, list[Failure]]:
    """Return the evidence of the tables to fit and to calibrate, and their failed rows."""
    known: dict[str, dict[str, int | None]] = {}
    for path in labels:
        known |= read_claim_labels(path)
    failed: list[Failure] = []

    def cases(path: str | Path) -> Cases:
        also = [settings.group_column] if settings.group_column else []
        table = open_studies(
            path, needs={"image"}, wants={"reference"}, columns=columns, also=also, unique=False
        )
        images = embedded(table)
        failed.extend(row._replace(row=str(path)) for row in images.failed)
        return cases_of(images, known, settings.group_column, embedder.views == WITH_PRIOR)

    whole = cases(fit)
    if calibrate is None:
        fitting, calibrating = whole.split(settings.calibration_share, settings.seed)
    else:
        fitting, calibrating = whole, cases(calibrate)
    directions = None
    if not settings.no_zero_shot:
        directions = directions_of(embedder, sorted(calibrating.labels))
    found = fit_evidence(
        fitting,
        calibrating,
        directions=directions,
        signature=str(embedder.signature),
        seed=settings.seed,
    )
    return found, failed


def directions_of(embedder: StudyEmbedder, findings: Sequence[str]) -> dict[str, Any]:
    """Return finding -> (d,) vector of words that state it, less that of words that deny it."""
    texts = [
        sentence.format(", ".join(reversed(finding.split(", "))).replace(",", ""))
        for finding in findings
        for sentence in ("There is {}.", "There is no {}.")
    ]
    vectors = embedder.embed_texts(texts).vectors.double().numpy()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.nan_to_num(vectors / np.maximum(lengths, 1e-12))
    return dict(zip(findings, unit[::2] - unit[1::2], strict=True))


def _content(
    evidence: ImageEvidence, images: EmbeddedTable, rate: float, signature: Signature
) -> Content:
    """Return the verdicts on all claims, their tables, and the rows that fail."""
    rows = claim_rows(evidence, images, rate)
    findings = [_finding_row(evidence, name, rows) for name in _in_order(evidence, rows)]
    shown = [row for row in findings if row["claims"]]
    counts = Counter(zip(rows["report"], rows["verdict"], strict=True))
    totals = [
        {
            "report": role,
            "claims": sum(counts[role, verdict] for verdict in VERDICTS),
            **{verdict: counts[role, verdict] for verdict in VERDICTS},
        }
        for role in dict.fromkeys(rows["report"])
    ]
    frames = {"findings": frame(findings), "verdicts": frame(totals)}
    tables = [
        text_table(f"Verdicts on the claims of {len(images.studies)} studies", frames["verdicts"]),
        text_table("Findings that are claimed", frame(shown), _CAPTION),
    ]
    notes = [
        f"at most {rate:.0%} of the supported claims, and of the contradicted ones, are expected "
        "to be wrong, for each finding: on images like those that calibrated, with labels like "
        "theirs. It is no promise for another hospital or machine (docs/claims.md)"
    ]
    return Content(
        frames,
        with_mark(tables, [signature]),
        {CLAIMS: rows},
        images.failed,
        {"claims": signature},
        notes,
    )


def _in_order(evidence: ImageEvidence, rows: "pandas.DataFrame") -> list[str]:
    claimed = [name for name, _ in Counter(rows["finding"]).most_common()]
    return list(dict.fromkeys((*claimed, *evidence.findings)))


def _finding_row(evidence: ImageEvidence, name: str, rows: "pandas.DataFrame") -> dict[str, Any]:
    mine = rows[rows["finding"] == name]
    found: dict[str, Any] = {"finding": name, "with": 0, "without": 0, "AUC": None, "fitted": 0}
    if name in evidence.column:
        k = evidence.column[name]
        with_it, without = evidence.calibration(k)
        scores = np.concatenate([with_it, without])
        truth = np.repeat([True, False], [len(with_it), len(without)])
        groups = [str(number) for number in range(len(scores))]
        area = grouped_auc(scores, truth, groups, resamples=500)
        found |= {"with": len(with_it), "without": len(without), "AUC": area}
        found["fitted"] = int(evidence.fitted[k])
    decided = mine["verdict"] != CANNOT_TELL
    found |= {
        "claims": len(mine),
        "decided": float(decided.mean()) if len(mine) else None,
        "supported": int((mine["verdict"] == "supported").sum()),
        "contradicted": int((mine["verdict"] == "contradicted").sum()),
    }
    return found
