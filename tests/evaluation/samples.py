"""Tables of studies, and what a run left of them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.doubles import HashEncoder
from vlscore import evaluation
from vlscore.embedding import EmbeddingEngine
from vlscore.stats import Result

BATCH = 1
CHUNK = EmbeddingEngine(HashEncoder(), batch_size=BATCH).rows_at_once


def make_table(folder: Path, rows: int, suffix: str = ".jsonl") -> tuple[Path, list[dict]]:
    """`rows` studies with distinct images and texts; returns the table's path and its records."""
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for k in range(rows):
        image = folder / f"{k}.png"
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(image)
        records.append(
            {
                "id": f"s{k}",
                "image": image.name,
                "reference": f"reference {k % 3}",
                "candidate": f"candidate {k}",
            }
        )
    return write_table(folder / f"studies{suffix}", records), records


def write_table(path: Path, records: list[dict]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        pq.write_table(pa.Table.from_pylist(records), path)
    return path


def read_scores(result: Result) -> list[dict[str, Any]]:
    """The rows of the scores; None where there is no value."""
    rows = result.rows(f"scores.{result.record['key']['format']}")
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def numbers_of(result: Result) -> dict[str, dict[str, Any]]:
    """Name of a number -> its row of the summary."""
    return {each["metric"]: each for each in result.frame("summary").to_dict("records")}


def counts_of(result: Result) -> dict[str, int]:
    return dict(result.frame("counts").itertuples(index=False))


def results_of(folder: Path) -> dict[str, bytes]:
    """Name -> bytes of all files but the lock, run.json and images.parquet, which have times."""
    return {
        path.name: path.read_bytes() if path.is_file() else b"a folder"
        for path in folder.iterdir()
        if path.name not in (".lock", "run.json", "images.parquet")
    }


def compare(systems, out, scorer=None, *, table=None, **settings) -> Result:
    """`compare` with settings by their names."""
    chosen = evaluation.ComparisonSettings(**settings)
    return evaluation.compare(systems, out, scorer, chosen, table=table)
