"""Claim: scores that use the image order six real generators otherwise than scores of texts do.

Protocol. The reports of six generators for test studies of the Indiana collection (data.py),
each against the study's own findings and impression, with its image, in `vlscore compare`: metrics
of words, of findings, and of image and text, with baselines made from the training reports. The
encoder was trained like "convirt" of real_encoders.py (seed 0, 8 epochs), but without any study
that has a generated report, because an encoder that trained on a study's image and report knows
that reference. Five generators share 258 studies with images; the sixth shares 42 of these, which
are compared apart.

Which studies make the difference: mean difference of the two systems named, in each score, among
studies that the coders coded as normal and among the others.

Intervals: 95 %, bootstrap over studies; p: paired permutation tests, adjusted (Benjamini-Hochberg).

Run: python benchmarks/real_generators.py DATA WORK [--out benchmarks/results/real_generators.md]
"""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from machine import describe_machine, publish
from real_data import CHOOSE, PARTS, TRAIN, WORK, RealData, open_encoder, parser_of
from real_encoders import Recipe, fit_table
from scipy.stats import kendalltau

from vlscore.core import atomic_write
from vlscore.data import open_reports
from vlscore.evaluation import ComparisonSettings, compare, paper_table
from vlscore.metrics import Scorer
from vlscore.stats import Result, TextTable, grouped_mean, interval, markdown

# Fewer epochs than the final encoders of real_encoders.py, for its time.
RECIPE = Recipe("convirt", "convirt", {"epochs": 8})
OF_TEXTS = ("bleu-4", "rouge-l", "findings-f1")
OF_IMAGES = (
    "vlscore",
    "cosine",
    "clipscore",
    "image-gain-distance",
    "image-gain-distance(image=2.0)",
    "image-gain-cosine",
)
SIXTH = "cvt2distilgpt2"


def candidates_of(data: RealData) -> dict[str, dict[str, str]]:
    """Return generator -> study id -> its report."""
    found = {}
    for path in sorted((data.data / "generated").glob("*.jsonl")):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found[path.stem] = {row["id"]: row["candidate"] for row in rows}
    if len(found) < 2:
        raise SystemExit(f"{data.data / 'generated'} has fewer than two generators' files")
    return found


def studies_of(data: RealData) -> dict[str, dict[str, str]]:
    """Return study id -> its row, of all parts."""
    lines = (line for part in PARTS for line in data.table(part).open(encoding="utf-8"))
    return {row["id"]: row for row in map(json.loads, lines)}


def write_systems(data: RealData, names: Sequence[str], folder: Path) -> list[Path]:
    """Write a table for each generator: the studies that all of them have, with images."""
    known, found = studies_of(data), candidates_of(data)
    shared = sorted(set(known).intersection(*(found[name] for name in names)))
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        path = folder / f"{name}.jsonl"
        with atomic_write(path) as stream:
            for id in shared:
                row = {**known[id], "candidate": found[name][id]}
                stream.write(json.dumps(row) + "\n")
        paths.append(path)
    return paths


def train_apart(data: RealData) -> Path:
    """Train the encoder without any study that has a generated report; return its folder."""
    generated = {id for each in candidates_of(data).values() for id in each}
    path = data.work / "iu_train_without_generated.jsonl"
    if not path.is_file():
        rows = data.table(TRAIN).read_text(encoding="utf-8").splitlines(keepends=True)
        with atomic_write(path) as stream:
            stream.writelines(row for row in rows if json.loads(row)["id"] not in generated)
    held = data.work / "iu_choose_without_generated.jsonl"
    if not held.is_file():
        rows = data.table(CHOOSE).read_text(encoding="utf-8").splitlines(keepends=True)
        with atomic_write(held) as stream:
            stream.writelines(row for row in rows if json.loads(row)["id"] not in generated)
    out = data.work / "generators" / "convirt"
    return fit_table(data, RECIPE, out, 0, path, held)


def order_table(run: Result, names: Sequence[str]) -> TextTable:
    """Return how alike the metrics order the generators: Kendall's tau of their means."""
    measured = run.frame("systems").set_index(["metric", "system"])
    chosen = [name for name in (*OF_TEXTS, *OF_IMAGES) if name in measured.index.levels[0]]

    def means(metric: str) -> list[float]:
        """Return the mean of each generator; larger is better."""
        of = measured.loc[metric]
        sign = 1 if of["higher_is_better"].iloc[0] else -1
        return [sign * float(of.loc[name, "value"]) for name in names]

    rows = []
    for metric in chosen:
        by_name = dict(zip(names, means(metric), strict=True))
        order = sorted(names, key=lambda name: -by_name[name])
        taus = [f"{kendalltau(means(metric), means(other)).statistic:.2f}" for other in OF_TEXTS]
        rows.append((metric, " > ".join(order), *taus))
    columns = ("score", "order, best first", *(f"tau with {name}" for name in OF_TEXTS))
    return TextTable("Orders of the generators", columns, tuple(rows))


def difference_table(folder: Path, data: RealData, names: Sequence[str]) -> TextTable:
    """Return mean differences of every two generators, among normal studies and the others."""
    values = pq.read_table(folder / "values.parquet").to_pydict()
    known = studies_of(data)
    ids = np.array(values["id"])
    systems = np.array(values["system"])
    normal = np.array([known[id]["mesh"] == "normal" for id in ids])
    rows = []
    for first, second in combinations(names, 2):
        cells = []
        for metric in ("findings-f1", "image-gain-distance"):
            column = np.array(values[metric], np.float64)
            for chosen in (normal, ~normal):
                one, other = (
                    dict(zip(ids[k], column[k], strict=True))
                    for k in ((systems == name) & chosen for name in (first, second))
                )
                # A study without a frontal image has no value of a score that looks at the image.
                both = [id for id in sorted(one) if np.isfinite(one[id] - other[id])]
                moved = [one[id] - other[id] for id in both]
                cells.append(interval(grouped_mean(moved, both)) if both else "-")
        rows.append((f"{first} - {second}", *cells))
    columns = ("difference", "findings-f1, normal studies", "others")
    columns += ("image-gain-distance, normal studies", "others ")
    title = "Which studies make the difference"
    count = int((normal & (systems == names[0])).sum())
    return TextTable(title, columns, tuple(rows), f"{count} studies are coded as normal.")


def main() -> None:
    options = parser_of(__doc__, WORK).parse_args()
    torch.set_num_threads(1)
    data = RealData(options.data, options.work)
    data.make_tables()
    weights = train_apart(data)
    every = sorted(candidates_of(data))
    groups = {"five": [name for name in every if name != SIXTH]}
    if SIXTH in every:
        groups["six"] = every
    train = open_reports(data.work / "iu_train_without_generated.jsonl")
    report = ["# Generators on real images", describe_machine(), data.describe()]
    report.append("`python benchmarks/real_generators.py` says what each table is.")
    for group, names in groups.items():
        paths = write_systems(data, names, data.work / "generators" / group)
        scorer = Scorer(open_encoder(weights), metrics=[*OF_TEXTS, *OF_IMAGES])
        run = compare(
            paths,
            data.work / "generators" / f"compared-{group}",
            scorer,
            ComparisonSettings(baselines=True, train=train),
            image_root=data.work,
        )
        # Differences of every two of nine systems would fill pages; the folder has them.
        tables = [paper_table(run), order_table(run, names)]
        tables.append(difference_table(run.folder, data, names))
        report += [f"## {len(names)} generators, {run.record['studies']} studies"]
        report.append(markdown(tables, run.signatures.values() if group == "five" else []))
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
