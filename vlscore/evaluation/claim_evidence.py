"""Evidence of images on findings, fitted to tables: labelled cases, words, and what is left out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.claims import CHANGES, Cases, ImageEvidence, fit_evidence, labels_of
from vlscore.core import unit_rows
from vlscore.data import StudyTable, as_table
from vlscore.embedding import WITH_PRIOR, EmbeddedTable, StudyEmbedder
from vlscore.errors import Failure, InvalidTable
from vlscore.evaluation.command_settings import EvidenceSettings
from vlscore.evaluation.label_tables import ClaimLabels, read_claim_labels


def open_fit(table: str | Path | StudyTable, settings: EvidenceSettings) -> StudyTable:
    """Open a table to fit or to calibrate on."""
    also = [settings.group_column] if settings.group_column else []
    return as_table(table, {"image"}, {"reference"}, also=also, unique=False)


def read_labels_of(
    paths: Iterable[str | Path], tables: Sequence[StudyTable], blank: str
) -> dict[str, ClaimLabels]:
    """Read tables of labels of the studies in some tables: id -> finding -> label.

    Raises: InvalidTable for a table of labels that names none of these studies.
    """
    paths = list(paths)
    if not paths:
        return {}
    ids = {row.id: None for table in tables for row in table if row.id}
    known: dict[str, ClaimLabels] = {}
    for path in paths:
        own = read_claim_labels(path, blank=blank)
        if own.keys().isdisjoint(ids):
            raise InvalidTable(
                f"{path}: names no study of {' or '.join(str(each.path) for each in tables)}: its "
                f"ids are like {next(iter(own), '')!r}, theirs like {next(iter(ids), '')!r}"
            )
        known |= own
    return known


def evidence_of(
    tables: Iterable[tuple[StudyTable, EmbeddedTable]],
    labels: Mapping[str, ClaimLabels],
    embedder: StudyEmbedder,
    settings: EvidenceSettings,
) -> tuple[ImageEvidence, list[Failure], list[str]]:
    """Return the evidence of one table, or of one to fit and one to calibrate.

    Studies without a report and labels are left out.

    Args:
        tables: each with the embeddings of its images.
        labels: id -> finding -> label, of some studies; see `cases_of`.

    Returns: also the rows that could not be used, and notes on where labels come from.
    Raises: InvalidTable where no study of a table is left.
    """
    failed: list[Failure] = []
    notes: list[str] = []
    parts: list[Cases] = []
    for table, images in tables:
        failed += [row._replace(row=str(table.path)) for row in images.failed]
        used = [k for k, s in enumerate(images.studies) if s.id in labels or s.reference]
        studies = [images.studies[k] for k in used]
        failed += [
            Failure(str(table.path), study.id, "it has neither a report nor labels")
            for study in images.studies
            if not (study.id in labels or study.reference)
        ]
        if not studies:
            raise InvalidTable(
                f"{table.path}: no study has a report or labels, such as {images.studies[0].id!r}: "
                "give a column with the references, or --labels"
            )
        labelled = sum(study.id in labels for study in studies)
        if labels and labelled < len(studies):
            notes.append(
                f"{table.path}: {labelled} of {len(studies)} studies have labels in --labels; the "
                "others are labelled by their reports"
            )
        with_prior = embedder.views == WITH_PRIOR
        parts.append(cases_of(images, labels, settings.group_column, with_prior).take(used))
    if len(parts) == 1:
        parts = list(parts[0].split(settings.calibration_share, settings.seed))
    fitting, calibrating = parts
    directions = None
    if not settings.no_zero_shot:
        directions = directions_of(embedder, sorted(calibrating.labels))
    evidence = fit_evidence(
        fitting,
        calibrating,
        directions=directions,
        signature=str(embedder.signature),
        seed=settings.seed,
    )
    return evidence, failed, notes


def cases_of(
    images: EmbeddedTable,
    labels: Mapping[str, ClaimLabels],
    group_column: str | None,
    with_prior: bool,
) -> Cases:
    """Return labelled cases: labels of a table, else those that a study's report states.

    A finding that a report does not name is absent.

    Args:
        labels: id -> finding -> 1, 0, or None where it is unknown; of some studies.
        with_prior: whether vectors show earlier images, where there are some.
    """
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


def directions_of(embedder: StudyEmbedder, findings: Sequence[str]) -> dict[str, Any]:
    """Return finding -> (d,) vector of words that state it, less that of words that deny it."""
    texts = [
        sentence.format(", ".join(reversed(finding.split(", "))).replace(",", ""))
        for finding in findings
        for sentence in ("There is {}.", "There is no {}.")
    ]
    vectors = embedder.embed_texts(texts).vectors.double().numpy()
    unit = np.nan_to_num(unit_rows(vectors))
    return dict(zip(findings, unit[::2] - unit[1::2], strict=True))
