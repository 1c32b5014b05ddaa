"""A folder in the layout that `make paper` reads, of phantoms, for tests.

Images and reports are those of phantom scenes; the checkpoint is LIMITR's in shape, filled by the
rule of the goldens. The law of the ratings: every rater counts exactly the errors that the
candidate's findings have against the scene's, all of them significant.
"""

import csv
import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from tests.encoders.goldens import Golden
from vlscore.data import Scene, corrupt, count_errors, render, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.perturb import KINDS, perturb_report

SEED = 2410
CANDIDATES = ("radgraph", "bertscore", "s_emb", "bleu")
CATEGORIES = (
    "false_finding", "omitted_finding", "wrong_location",
    "wrong_severity", "false_comparison", "omitted_comparison",
)  # fmt: skip
# Table of the authors -> our kind.
AUTHORS = {
    "location": "change-location",
    "severity": "change-severity",
    "noninformative": "replace-uninformative",
    "Insignificant": "remove-insignificant",
    "pathology": "remove-pathology",
    "constantdata": "standard-normal",
}


def scenes(count: int) -> dict[int, Scene]:
    """Study number -> scene."""
    return {50000000 + place: scene_at(SEED, place) for place in range(count)}


def report_of(study: int, scene: Scene) -> str:
    rng = np.random.default_rng([SEED, study])
    return write_report(rng, scene.findings, split="held_out", negatives=0.4, others=0.6)


def image_of(study: int) -> str:
    return f"files/p10/p1{study % 10_000_000:07d}/s{study}/dicom-{study}.jpg"


def _rows(path: Path, rows: list[dict[str, Any]]) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def write_rexval(folder: Path, count: int) -> dict[tuple[int, str], tuple[str, str, int]]:
    """Write ReXVal's two tables; return (study, candidate) -> reference, candidate, errors."""
    folder.mkdir(parents=True)
    reports, ratings, known = [], [], {}
    for number, (study, scene) in enumerate(scenes(count).items()):
        row: dict[str, Any] = {"study_id": study, "gt_report": report_of(study, scene)}
        for k, name in enumerate(CANDIDATES):
            rng = np.random.default_rng([SEED, study, k])
            stated = corrupt(rng, scene.findings, int(rng.integers(0, 5)))
            row[name] = write_report(rng, stated, split="held_out")
            errors = count_errors(stated, scene.findings)
            known[study, name] = row["gt_report"], row[name], errors.total
            ratings += [
                {
                    "study_number": number,
                    "candidate_type": name,
                    "error_category": category + 1,
                    "rater_index": rater,
                    "clinically_significant": significant,
                    "num_errors": getattr(errors, kind) if significant else 0,
                }
                for category, kind in enumerate(CATEGORIES)
                for rater in range(2)
                for significant in (True, False)
            ]
        reports.append(row)
    _rows(folder / "50_samples_gt_and_candidates.csv", reports)
    _rows(folder / "6_valid_raters_per_rater_error_categories.csv", ratings)
    return known


def write_mimic(folder: Path, count: int) -> None:
    """Write MIMIC-CXR-JPG's tables and images, and MIMIC-CXR's reports; all studies are tests."""
    home = folder / "mimic-cxr-jpg"
    metadata, split = [], []
    with zipfile.ZipFile(folder / "mimic-cxr-reports.zip", "w") as archive:
        for study, scene in scenes(count).items():
            path = home / image_of(study)
            path.parent.mkdir(parents=True)
            pixels = (render(scene, 256) >> 4).astype(np.uint8)
            Image.fromarray(pixels).save(path)
            row = {"dicom_id": path.stem, "subject_id": path.parts[-3][1:], "study_id": study}
            metadata.append({**row, "ViewPosition": "PA"})
            split.append({**row, "split": "test"})
            name = f"{Path(image_of(study)).parent}.txt"
            archive.writestr(name, f"FINDINGS: {report_of(study, scene)}")
    _rows(home / "mimic-cxr-2.0.0-metadata.csv.gz", metadata)
    _rows(home / "mimic-cxr-2.0.0-split.csv.gz", split)


def write_authors_tables(folder: Path, count: int) -> dict[str, list[tuple[str, str]]]:
    """Write tables as the authors' script makes them; return name -> (gt, output)."""
    folder.mkdir(parents=True)
    found: dict[str, list[tuple[str, str]]] = {}
    for name, kind in AUTHORS.items():
        rows = []
        for study, scene in scenes(count).items():
            report = report_of(study, scene)
            for change in perturb_report(report, kinds=[kind], study_id=str(study)):
                rows.append(
                    {"": len(rows), "Path_frontal": image_of(study), "gt": report,
                     "output": change.perturbed}
                )  # fmt: skip
        assert KINDS[kind]
        if rows:
            _rows(folder / f"{name}.csv", rows)
            found[name] = [(row["gt"], row["output"]) for row in rows]
    return found


def write_limitr(folder: Path) -> None:
    """Write a checkpoint in LIMITR's layout, and its vocabulary."""
    folder.mkdir(parents=True)
    golden = Golden.of("limitr")
    torch.save({"state_dict": golden.tensors()}, folder / "limitr.ckpt")
    golden.vocabulary(folder)
