"""The bundled studies of two generators, as tests read them."""

import json
from pathlib import Path
from typing import Any

from vlscore.core import resource_path

DEMO = resource_path("weights", "phantom", "demo")
TABLES = {"right": DEMO / "studies.jsonl", "fluent": DEMO / "fluent.jsonl"}


def demo_rows(count: int = 12) -> list[dict[str, Any]]:
    """The first studies, with images from anywhere; every second candidate has errors."""
    tables = [path.read_text(encoding="utf-8").splitlines() for path in TABLES.values()]
    rows = [json.loads(tables[k % 2][k]) for k in range(count)]
    return [{**row, "image": str(DEMO / row["image"])} for row in rows]


def demo_table(folder: Path, count: int = 12) -> Path:
    """Write these studies as a table."""
    path = folder / "studies.jsonl"
    lines = [json.dumps(row) + "\n" for row in demo_rows(count)]
    path.write_text("".join(lines), encoding="utf-8")
    return path
