"""Verdicts of images on the claims of a table's reports: `vlscore claims`."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.claims import (
    CANNOT_TELL,
    CONTRADICTED,
    SUPPORTED,
    ImageEvidence,
    check_rate,
    claims_of_reports,
    evidence_digest,
    expected_wrong,
    read_evidence,
    verdicts_of,
)
from vlscore.core import OnProgress, __version__, checked_arguments, file_digest, frame, no_progress
from vlscore.data import StudyTable, as_table, columns_of, shared_ids_note
from vlscore.embedding import EmbeddedTable, StudyEmbedder, embed_table
from vlscore.errors import Failure, InvalidSetting
from vlscore.evaluation.claim_evidence import evidence_of, open_fit, read_labels_of
from vlscore.evaluation.command_settings import EvidenceSettings
from vlscore.stats import Content, Presentation, Result, TextTable, text_table

if TYPE_CHECKING:
    import pandas

EVIDENCE, CLAIMS = "evidence.npz", "claims.csv"
_TOTALS_CAPTION = (
    "Wrong: expected share of wrong ones among the supported, and among the contradicted, which is "
    "the mean probability of a wrong verdict. The rate is that of each of these shares."
)
_FINDINGS_CAPTION = (
    "With, without: calibration images. AUC: area under the ROC curve on them, with Newcombe's "
    "95 % interval; a finding whose interval includes .5 gets no verdict. A side or a change is "
    "calibrated among images that have the finding. Decided: share of the claims with a verdict; "
    "the others are: cannot tell. The rate is not that of a single finding."
)
_OWN_IMAGE = (
    "the evidence may be learnt from their own images and reports, and the rate does not hold then"
)
_PROMISE = (
    "of each total of supported, and of contradicted, claims at most {:.0%} are expected to be "
    "wrong: on images like those that calibrated, with labels like theirs, and where the errors of "
    "the reports do not depend on those of the encoder. It is no promise for another hospital or "
    "machine (docs/claims.md)"
)


@checked_arguments
def claims(
    studies: str | Path | StudyTable,
    out: str | Path,
    embedder: StudyEmbedder | None = None,
    *,
    fit: str | Path | StudyTable | None = None,
    calibrate: str | Path | StudyTable | None = None,
    labels: Sequence[str | Path] = (),
    evidence: str | Path | None = None,
    rate: float = 0.1,
    settings: EvidenceSettings | None = None,
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
            them, or NIH's. A study without a row there is labelled by its report; a table of
            labels of other studies is refused.
        evidence: evidence.npz of an earlier call in place of `fit`.
        rate: false discovery rate of each printed total; see `verdicts_at`.
        settings: how evidence is fitted.
        on_progress: called with (rows of all tables that are embedded, rows failed).

    Returns: the result with the frames "verdicts", the totals of statements and denials of each
        report role, and "findings", one row a finding.
    Raises: InvalidTable, InvalidSetting: an input cannot be used; `out` holds another run.
    """
    check_rate(rate)
    if (fit is None) is (evidence is None):
        raise InvalidSetting("give a table to fit on (--fit), or evidence that was fitted earlier")
    settings, embedder = settings or EvidenceSettings(), embedder or StudyEmbedder()
    table = _table_of_claims(as_table(studies))
    embedder = embedder.for_table(table)
    to_fit = [
        open_fit(each, settings)
        for each in (fit, calibrate)
        if each is not None and evidence is None
    ]
    key = {
        "command": "claims",
        "vlscore": __version__,
        **table.key,
        "signature": str(embedder.signature),
        "rate": rate,
        "settings": asdict(settings),
        "fit": [each.key for each in to_fit],
        "evidence": None if evidence is None else evidence_digest(evidence),
        "labels": [file_digest(Path(path)) for path in labels if columns_of(path)],
    }

    def compute(path: Path) -> Content:
        embedded = _embedded((*to_fit, table), embedder, workers, on_progress)
        failed, about = list[Failure](), list[str]()
        if evidence is not None:
            found = read_evidence(evidence, str(embedder.signature))
        else:
            known = read_labels_of(labels, to_fit, settings.blank_labels)
            to_fit_on = zip(to_fit, embedded, strict=False)
            found, failed, about = evidence_of(to_fit_on, known, embedder, settings)
        found.save(path / EVIDENCE)
        began = time.monotonic()
        images = next(embedded)
        seconds = time.monotonic() - began
        for each in to_fit:
            ids, theirs = (study.id for study in images.studies), (row.id or "" for row in each)
            about += shared_ids_note(table, ids, each, theirs, _OWN_IMAGE)
        frames, rows = _verdicts(found, images, rate)
        return Content(
            frames,
            {CLAIMS: rows},
            [*failed, *images.failed],
            {"claims": embedder.signature},
            [*about, _PROMISE.format(rate)],
            {
                "table": str(table.path.resolve()),
                "studies": len(images.studies),
                "encoder": embedder.card.to_dict(),
                "evidence": evidence_digest(path / EVIDENCE),
                "seconds_embedding": round(seconds, 3),
                "seconds": round(time.monotonic() - began, 3),
            },
        )

    notes = (*table.notes, *embedder.notes, *embedder.training_notes(table))

    def images() -> Iterator[Path]:
        return chain.from_iterable(each.image_files() for each in (table, *to_fit))

    return Result.make(out, key, compute, images=images, overwrite=overwrite, notes=notes)


def _embedded(
    tables: Iterable[StudyTable], embedder: StudyEmbedder, workers: int, on_progress: OnProgress
) -> Iterator[EmbeddedTable]:
    """Embed the images of tables, one after the other; progress counts the rows of all."""
    before = 0
    for table in tables:

        def on_rows(done: int, failed: int, before: int = before) -> None:
            on_progress(before + done, failed)

        found = embed_table(
            table, embedder, None, roles=["image"], workers=workers, on_progress=on_rows
        )
        before += found.rows
        yield found


def _table_of_claims(opened: StudyTable) -> StudyTable:
    """Return a table with images and the reports to check: candidates, or else references."""
    if opened.columns.candidate in opened.found:
        return as_table(opened, {"image", "candidate"}, {"reference"})
    return as_table(opened, {"image", "reference"})


def _verdicts(
    evidence: ImageEvidence, images: EmbeddedTable, rate: float
) -> "tuple[dict[str, pandas.DataFrame], pandas.DataFrame]":
    """Return the frames of verdicts on all claims, and a row for each claim."""
    stated = [
        claim
        for number, study in enumerate(images.studies)
        for claim in claims_of_reports(number, study.candidate, study.reference)
    ]
    vectors = images.vectors["image"].astype(float)
    rows = verdicts_of(evidence, vectors, stated, rate=rate, has_prior=images.has_prior)
    rows.insert(0, "id", [images.studies[number].id for number in rows.pop("image")])
    claimed = [name for name, _ in Counter(rows["finding"]).most_common()]
    names = dict.fromkeys((*claimed, *evidence.findings))
    findings = [_finding_row(evidence, name, rows) for name in names]
    return {"findings": frame(findings), "verdicts": frame(_totals(rows))}, rows


def _totals(rows: "pandas.DataFrame") -> list[dict[str, Any]]:
    """Return a row for the statements, and one for the denials, of each report role.

    They are the families in which verdicts are decided, so that the rate is theirs.
    """
    return [
        {
            "report": role,
            "claims": kind,
            "number": len(own),
            SUPPORTED: int((own["verdict"] == SUPPORTED).sum()),
            f"{SUPPORTED}, wrong": expected_wrong(own, SUPPORTED),
            CONTRADICTED: int((own["verdict"] == CONTRADICTED).sum()),
            f"{CONTRADICTED}, wrong": expected_wrong(own, CONTRADICTED),
            CANNOT_TELL: int((own["verdict"] == CANNOT_TELL).sum()),
            "no evidence": int((~own["has_evidence"]).sum()),
        }
        for (role, kind), own in rows.groupby(["report", "claim"], sort=False)
    ]


def _finding_row(evidence: ImageEvidence, name: str, rows: "pandas.DataFrame") -> dict[str, Any]:
    mine = rows[rows["finding"] == name]
    found: dict[str, Any] = {"finding": name, "with": 0, "without": 0, "AUC": None, "fitted": 0}
    if name in evidence.column:
        k = evidence.column[name]
        with_it, without = evidence.calibration(k)
        found |= {"with": len(with_it), "without": len(without), "AUC": evidence.areas[k]}
        found["fitted"] = int(evidence.fitted[k])
    decided = mine["verdict"] != CANNOT_TELL
    found |= {
        "claims": len(mine),
        "decided": float(decided.mean()) if len(mine) else None,
        "supported": int((mine["verdict"] == SUPPORTED).sum()),
        "contradicted": int((mine["verdict"] == CONTRADICTED).sum()),
    }
    return found


def _tables(run: Result) -> list[TextTable]:
    title = f"Verdicts on the claims of {run.record['studies']} studies"
    findings = run.frames["findings"]
    claimed = findings[findings["claims"] > 0]
    return [
        text_table(title, run.frames["verdicts"], _TOTALS_CAPTION),
        text_table("Findings that are claimed", claimed, _FINDINGS_CAPTION),
    ]


PRESENTATION = Presentation(_tables, page="vlscore.pages.claim_views:claims_view")
