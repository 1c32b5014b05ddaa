"""Claim: Pino's comparison (2022; MLMI 2021) of templates with learned generators, made again:
which of them leads depends on the metric, words of the reference or findings.

Protocol: studies of the Indiana collection, in two sets: 258 studies with the reports of five
generators (references of findings and impression), and 336 with those of a sixth (findings alone).
Every baseline learns from all other studies of the collection that are at hand, none of which has
the id of a tested study. `vlscore baseline` writes its candidates, `vlscore compare --text-only`
its numbers: corpus BLEU-1 and BLEU-4, means over studies of ROUGE-L, CIDEr-D, findings-f1, MIRQI
and the rating of the judge by rules, F1 of CheXpert's labels over the corpus (macro and micro).
Nearest images, the linear probe and zero-shot labels use the bundled encoder, which was trained on
synthetic phantoms for DEMONSTRATION: they show that the commands work, not what an encoder of real
images reaches. Images are used as they are in the copy, squeezed to squares. Templates with labels
of the reference are an UPPER BOUND. The extraction that reads their labels also computes
findings-f1, MIRQI, the judge's rating and the F1 of labels; these four columns therefore favour
templates with labels of the reference.

The same on phantoms: 600 studies to learn from and 200 others in held-out phrasings; the table's
own candidates, which have known errors, take the place of a learned generator.

Run: python benchmarks/baselines.py FOLDER [--out benchmarks/results/baselines.md]
with FOLDER/iu/studies.jsonl, FOLDER/iu/images and FOLDER/generated/*.jsonl
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data import CVT2DISTILGPT2, GENERATED, SQUARED_IMAGES
from machine import describe_machine, publish

from vlscore.data import open_studies
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import BaselineSettings, ComparisonSettings, baseline, compare
from vlscore.evaluation.baselines.baseline_base import TRAIN, find_baseline
from vlscore.metrics import Scorer
from vlscore.stats import TextTable, interval, interval_in, markdown

METRICS = "bleu-1,bleu-4,rouge-l,cider-d,findings-f1,mirqi,judge"
# Column of the result -> the number of `vlscore compare`.
COLUMNS = {
    "bleu-1": "bleu-1 corpus",
    "bleu-4": "bleu-4 corpus",
    "rouge-l": "rouge-l",
    "cider-d": "cider-d",
    "findings-f1": "findings-f1",
    "label F1, macro": "findings-f1 macro-13 (corpus)",
    "label F1, micro": "findings-f1 micro-13 (corpus)",
    "mirqi": "mirqi",
    "judge": "judge",
}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "constant": ("constant", {}),
    "normal": ("normal", {}),
    "random": ("random", {}),
    "top-words": ("top-words", {}),
    "top-sentences": ("top-sentences", {}),
    "nearest-image (demonstration encoder)": ("nearest-image", {}),
    "templates, zero-shot (demonstration encoder)": ("templates", {"labels": "zero-shot"}),
    "templates, probe (demonstration encoder)": ("templates", {"labels": "probe"}),
    "templates single, reference labels (upper bound)": ("templates", {"style": "single"}),
    "templates grouped, reference labels (upper bound)": ("templates", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    images = options.folder / "iu" / "studies.jsonl"
    generated = {name: options.folder / "generated" / f"{name}.jsonl" for name in GENERATED}
    sixth = options.folder / "generated" / "cvt2distilgpt2.jsonl"
    sources = [SQUARED_IMAGES.check(images), CVT2DISTILGPT2.check(sixth)]
    sources += [GENERATED[name].check(path) for name, path in generated.items()]
    embedder = StudyEmbedder("phantom")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        both = ("findings", "impression")
        tables = [
            _real("Five generators", images, generated, both, place / "five", embedder),
            _real(
                "A sixth generator",
                images,
                {sixth.stem: sixth},
                ("findings",),
                place / "one",
                embedder,
            ),
            _phantoms(place / "phantoms", embedder),
        ]
    report = "\n\n".join(
        [
            "# Baselines beside learned generators",
            describe_machine(),
            _protocol(),
            "\n".join(f"- {line}" for line in sources),
            markdown(tables),
        ]
    )
    publish(report + "\n", options.out)


def _protocol() -> str:
    """Return the docstring without the line that says how to run it."""
    return __doc__.split("\n\nRun:")[0]


def _real(
    title: str,
    images: Path,
    systems: dict[str, Path],
    sections: Sequence[str],
    place: Path,
    embedder: StudyEmbedder,
) -> TextTable:
    """Return the table of some generators and all baselines, on the studies that have images."""
    place.mkdir()
    shown = {row["id"]: row for row in _rows(images) if _frontal(row)}
    first = _rows(next(iter(systems.values())))
    tested = {row["id"]: row["reference"] for row in first if row["id"] in shown}
    training = [
        {"id": id, "image": _frontal(row), "reference": text}
        for id, row in shown.items()
        if id not in tested and (text := " ".join(filter(None, map(row.get, sections))))
    ]
    studies = [
        {"id": id, "image": _frontal(shown[id]), "reference": text} for id, text in tested.items()
    ]
    for name, path in systems.items():
        _write(place / f"{name}.jsonl", [row for row in _rows(path) if row["id"] in tested])
    train = _write(place / "train.jsonl", training)
    table = _write(place / "studies.jsonl", studies)
    made = [f"{name}={place / f'{name}.jsonl'}" for name in systems]
    made += _baselines(table, train, place, embedder, images.parent)
    note = f"{len(studies)} studies; baselines learn from {len(training)} others."
    return _compared(title, note, made, place)


def _phantoms(place: Path, embedder: StudyEmbedder) -> TextTable:
    write_dataset(place / "train", count=600, seed=21)
    write_dataset(place / "test", count=200, seed=22, split="held_out")
    table, train = place / "test" / "studies.jsonl", place / "train" / "studies.jsonl"
    made = [f"candidates with known errors={table}"]
    made += _baselines(table, train, place, embedder)
    return _compared("Phantoms", "200 studies; baselines learn from 600 others.", made, place)


def _baselines(
    table: Path, train: Path, place: Path, embedder: StudyEmbedder, image_root: Path | None = None
) -> list[str]:
    """Write the candidates of all baselines; return "name=table" of each."""
    studies, others = (open_studies(p, needs=(), image_root=image_root) for p in (table, train))
    made = []
    for title, (name, given) in WAYS.items():
        settings = BaselineSettings(**given)
        learns = TRAIN in find_baseline(name, settings).needs
        run = baseline(
            name,
            studies,
            place / title,
            train=others if learns else None,
            settings=settings,
            embedder=embedder,
        )
        made.append(f"{title}={run.folder / 'candidates.jsonl'}")
    return made


def _compared(title: str, note: str, systems: list[str], place: Path) -> TextTable:
    run = compare(
        systems,
        place / "compared",
        Scorer(metrics=METRICS),
        ComparisonSettings(against=systems[-1].partition("=")[0], resamples=1000, permutations=999),
    )
    measured = run.frame("systems").set_index(["metric", "system"])
    rows = []
    for system in run.frame("texts")["system"]:
        cells = []
        for name in COLUMNS.values():
            cells.append(interval(interval_in(measured.loc[name, system], "value")))
        rows.append((system, *cells))
    caption = (
        "In brackets: 95 % bootstrap intervals over studies, where there is one. Higher is better."
    )
    return TextTable(f"{title}: {note}", ("system", *COLUMNS), tuple(rows), caption)


def _frontal(row: dict[str, Any]) -> str | None:
    """Return the first frontal image of a study; None where it has none."""
    return next((image["file"] for image in row["images"] if image["view"] == "frontal"), None)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
