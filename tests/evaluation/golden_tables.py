"""Tables of studies from which the stored values in data/values_*.json were computed."""

import csv
from pathlib import Path

import numpy as np

from tests.demonstration import demo_rows
from vlscore.data import sample_studies

SYSTEMS = ("ours", "theirs", "third")
TEXT_METRICS = "bleu-1,bleu-4(smoothing=exp),rouge-l,chrf,cider-d,findings-f1"
IMAGE_METRICS = "vlscore,cosine,image-gain-cosine,bleu-4"


def _write(path: Path, rows: list[dict]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def text_tables(folder: Path) -> dict[str, Path]:
    """Write tables of 70 studies of 30 patients for three systems; one has an empty report."""
    references = [study.reference for study in sample_studies(2026, 12)]
    sentences = sorted({s for reference in references for s in reference.split(". ")})
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(70):
        chosen = rng.choice(len(sentences), 4, replace=False)
        rows.append([sentences[each].rstrip(".") + "." for each in chosen])
    tables = {}
    for number, name in enumerate(SYSTEMS):
        records = []
        for k, parts in enumerate(rows):
            kept = [*parts[number : number + 2], sentences[int(rng.integers(len(sentences)))]]
            records.append(
                {
                    "id": f"s{k}",
                    "reference": " ".join(parts),
                    "candidate": "" if (k, number) == (5, 1) else " ".join(kept),
                    "patient": f"p{k % 30}" if k % 11 else "",
                    "sex": "FM"[k % 2] if k % 7 else "",
                }
            )
        tables[name] = _write(folder / f"{name}.csv", records)
    values = [
        {"system": name, "id": f"s{k}", "other": "" if k == 3 else round(float(rng.random()), 6)}
        for name in SYSTEMS[:2]
        for k in range(70)
    ]
    tables["values"] = _write(folder / "values.csv", values)
    return tables


def image_tables(folder: Path) -> dict[str, Path]:
    """Write tables of 12 demonstration studies for two systems; one image is missing."""
    demo = demo_rows()
    tables = {}
    for number, name in enumerate(SYSTEMS[:2]):
        records = [
            {
                "id": row["id"],
                "image": "missing.dcm" if k == 4 else row["image"],
                "reference": row["reference"],
                "candidate": row["candidate"] if number == 0 else demo[k - 1]["reference"],
            }
            for k, row in enumerate(demo)
        ]
        tables[name] = _write(folder / f"{name}.csv", records)
    return tables
