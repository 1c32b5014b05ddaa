"""Claim: `vlscore audit` tells generators that look at real films from others that do not.

Protocol. Generators, all of which copy reports of the training part of the Indiana collection:

- encoder: `vlscore baseline nearest-image`, the report of the training film that is nearest to a
  small image-text encoder of ours: three seeds as one (`ensemble`), each trained by
  `vlscore.training.train` on the frontal films and reports of the training part. Its settings are
  those of docs/training.md for images of several hospitals, with 96 pixels and from random weights.
  A held-out twentieth of the training part chooses the epoch.
- pixels: the report of the training film that is nearest by a ridge regression from 32 x 32 pixels
  to the findings that our reading finds in the training reports (cosine of its predictions).
- constant: `vlscore baseline constant`, the most frequent report.
- random: `vlscore baseline random`, a report drawn anew for each film.

Films: (1) the first frontal film of each study of the development part, which none of the above has
seen, squeezed to 256 x 256 pixels as the copy has them. The collection names no patients; its parts
are divided by study. Regions of findings are rough rectangles by side and zone. (2) The films with
boxes of NIH ChestX-ray14, another hospital's, 256 x 256 pixels; regions are these boxes, and
rectangles for findings without a box. Up to ten findings of a study have their region hidden: those
of the boxes, of the first reports of "encoder" and "pixels" (column `candidate`), and of the
reference. Everything is made and read by `audit_make` and `audit_read`; intervals are 95 %, over
studies. (3) For the speed of `audit_make` alone: 8 films of (1) as DICOM files of 2,048 x 2,500
pixels with 16 bits and some noise, with three regions each.

What was expected before: constant and random do not depend on the film in any way, the two others
do. A copied report is that of the whole film, and most of what it states, an encoder of this size
has not learnt to see; so little grounding by region. No setting was chosen on these films. Rules of
the verdicts were: "changes with the film", after a first run with "pixels" alone, which said "does
not look" of findings that go with another film but not with their region; and that "reads" needs an
adjusted p below .05, after a run in which "pixels" seemed to read one finding of 25 at p = .29.

Run: python benchmarks/audit_real.py FOLDER WORK [--out benchmarks/results/audit_real.md]
with FOLDER/iu/studies.jsonl, FOLDER/iu/images, FOLDER/nih/films.jsonl and FOLDER/nih/images. WORK
is a folder outside of the repository for tables, encoders, films and reports; what is complete
there is not made again, and an interrupted training is resumed. Half an hour of one core.
"""

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from data import NIH_FILMS, SQUARED_IMAGES
from machine import describe_machine, publish
from PIL import Image

from vlscore.core import atomic_write, unit_rows, with_noun, write_json
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import AuditSettings, audit_make, audit_read, baseline, open_audited
from vlscore.evaluation.audit.film_writing import write_film
from vlscore.findings import extract
from vlscore.stats import Result, markdown
from vlscore.training import Execution, Preparation, Start, TrainingSettings, train

Made = TypeVar("Made", bound=Result)

SEEDS, REGIONS = 3, 10
SIDE, PENALTY, LEAST = 32, 30.0, 20
SETTINGS = TrainingSettings(
    objective="convirt",
    epochs=12,
    batch_size=64,
    learning_rate=1.5e-3,
    weight_decay=0.1,
    augmentation="hospitals",
    sentences="shuffled",
    findings_weight=1.0,
    validate_every=2,
    precision="bf16",
)
START = Start(style="convirt", side=96, pixels="equalised")
# Large films: number, columns and rows, and findings whose regions are hidden.
LARGE, PIXELS = 8, (2048, 2500)
THREE = "Cardiomegaly. Small left effusion. Right lower lobe opacity."
# The stored images are a little larger than what the encoder takes, for rotations.
KEPT = 112


def pixels(path: Path) -> np.ndarray:
    """Return SIDE x SIDE grey levels as one vector of mean 0 and length 1."""
    with Image.open(path) as image:
        grey = np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX), np.float64)
    vector = grey.ravel() - grey.mean()
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


class Ridge:
    """Generator that copies the report of the nearest training film, by a ridge regression."""

    def __init__(self, films: Iterable[Path], reports: list[str]) -> None:
        self.reports = reports
        found = [{each.observation for each in extract(text).present} for text in reports]
        counts: dict[str, int] = {}
        for each in found:
            for name in each:
                counts[name] = counts.get(name, 0) + 1
        names = sorted(name for name, count in counts.items() if count >= LEAST)
        targets = np.array([[name in each for name in names] for each in found], np.float64)
        targets = (targets - targets.mean(0)) / targets.std(0)
        inputs = np.stack([pixels(path) for path in films]) * SIDE
        self._centre = inputs.mean(0)
        inputs = inputs - self._centre
        gram = inputs.T @ inputs + PENALTY * len(inputs) / SIDE * np.eye(inputs.shape[1])
        self._weights = np.linalg.solve(gram, inputs.T @ targets)
        self._vectors = unit_rows(inputs @ self._weights)

    def __call__(self, path: Path) -> str:
        vector = unit_rows((pixels(path) * SIDE - self._centre)[None] @ self._weights)
        return self.reports[int((self._vectors @ vector[0]).argmax())]


def studies_of(folder: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the studies of the training and of the development part: id, image, report."""
    parts: tuple[list[dict[str, str]], list[dict[str, str]]] = ([], [])
    for line in (folder / "studies.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        frontal = [each["file"] for each in row["images"] if each["view"] == "frontal"]
        report = " ".join(row[name] or "" for name in ("findings", "impression")).strip()
        if frontal and report:
            study = {
                "id": row["id"],
                "image": str((folder / frontal[0]).resolve()),
                "reference": report,
            }
            parts[row["part"] != "training"].append(study)
    return parts


def with_boxes(folder: Path) -> list[dict[str, object]]:
    """Return the films of NIH that have boxes."""
    rows = map(json.loads, (folder / "films.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        {"id": row["id"], "image": str((folder / row["image"]).resolve()), "boxes": row["boxes"]}
        for row in rows
        if row["boxes"]
    ]


def write(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """Write a table, one row a line; return its path."""
    with atomic_write(path) as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def encoder_of(table: Path, work: Path) -> tuple[StudyEmbedder, str]:
    """Return the trained encoder, and a line on how it was trained and what it reaches."""
    seconds, reached, count = 0.0, [], 0
    for seed in range(SEEDS):
        out = work / "encoders" / f"seed-{seed}"
        run, spent = clocked(
            out,
            lambda seed=seed, out=out: train(
                Preparation(open_studies(table, needs={"image", "reference"}), side=KEPT),
                out,
                replace(SETTINGS, seed=seed),
                START,
                execution=Execution(work / "pairs", device="cpu", keep_seconds=60),
            ),
        )
        best = run.record["best_validation"]
        seconds += spent
        reached.append(best["image to text R@10"])
        count = run.record["validation_pairs"]
    line = (
        f"Encoder: {SEEDS} seeds, {seconds:.0f} s of one processor together. R@10 of the report of "
        f"a film among those of the {count} studies held out: "
        f"{', '.join(f'{each:.3f}' for each in reached)}; chance is {10 / count:.3f}."
    )
    return StudyEmbedder("ensemble", weights=str(work / "encoders"), device="cpu"), line


def speed_of_large_films(studies: list[dict[str, str]], place: Path) -> str:
    """Return a line on how fast `audit_make` is with films as large as a hospital's."""
    place.mkdir(exist_ok=True)
    rows = []
    for k, row in enumerate(studies[:LARGE]):
        with Image.open(row["image"]) as image:
            grey = np.asarray(image.convert("L").resize(PIXELS, Image.Resampling.BICUBIC))
        noise = np.random.default_rng(k).normal(0, 200, grey.shape)
        film = np.clip(grey * 257.0 + noise, 0, 65535).astype(np.uint16)
        write_film(film, place / f"{k}.dcm")
        rows.append({"id": str(k), "image": f"{k}.dcm", "reference": THREE})
    table = open_audited(write(place / "studies.jsonl", rows))
    spent, size, films = {}, {}, 0
    for kind in ("png", "dicom"):
        began = time.process_time()
        settings = AuditSettings(format=kind)
        made = audit_make(table, place / kind, settings, overwrite=True)
        spent[kind], films = time.process_time() - began, made.record["films"]
        files = (made.folder / "films").iterdir()
        size[kind] = sum(path.stat().st_size for path in files) / 1e6
    width, height = PIXELS
    each = (
        f"{spent[kind] / LARGE:.1f} s of one processor and {size[kind] / LARGE:.0f} MB as {name}"
        for kind, name in (("png", "PNG"), ("dicom", "DICOM"))
    )
    return f"{films / LARGE:.0f} films of {width:,} x {height:,} pixels a study: {', '.join(each)}."


def clocked(out: Path, make: Callable[[], Made]) -> tuple[Made, float]:
    """Return a result, and the seconds of a processor that the call took which computed it."""
    file = out.with_name(f"{out.name}-seconds.json")
    began = time.process_time()
    made = make()
    if not made.unchanged:
        write_json(file, time.process_time() - began)
    return made, float(json.loads(file.read_text(encoding="utf-8")))


def audited(
    studies: list[dict[str, object]],
    train: Path,
    look: Ridge,
    embedder: StudyEmbedder,
    place: Path,
) -> str:
    """Return what the audit says of all generators, as text of the page."""
    place.mkdir(exist_ok=True)

    def copied(table: Path, name: str) -> Path:
        """Write the reports of a baseline for the films of a table; return their file."""
        own = embedder if name == "nearest-image" else None
        baseline(name, table, place / f"{table.stem}-{name}", train=train, embedder=own)
        return place / f"{table.stem}-{name}" / "candidates.jsonl"

    shown = [{name: row[name] for name in ("id", "image")} for row in studies]
    first = copied(write(place / "first.jsonl", shown), "nearest-image")
    nearest = {row["id"]: row["candidate"] for row in map(json.loads, first.open())}
    rows = [
        {**row, "candidate": f"{nearest[row['id']]}\n\n{look(Path(str(row['image'])))}"}
        for row in studies
    ]
    table = open_audited(write(place / "studies.jsonl", rows))
    made, spent = clocked(
        place / "audit",
        lambda: audit_make(table, place / "audit", AuditSettings(regions=REGIONS)),
    )
    films = place / "audit" / "films.csv"
    with films.open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    written = ({"id": f["id"], "candidate": look(films.parent / f["image"])} for f in found)
    paths = {
        "encoder": copied(films, "nearest-image"),
        "pixels": write(place / "pixels.jsonl", written),
        "constant": copied(films, "constant"),
        "random": copied(films, "random"),
    }
    given = [f"{name}={path}" for name, path in paths.items()]
    read, seconds = clocked(
        place / "read", lambda: audit_read(place / "audit", given, place / "read")
    )
    count = made.record["studies"]
    line = (
        f"{with_noun(made.record['films'], 'film')} of {with_noun(count, 'study')}, made in "
        f"{spent:.0f} s of one processor ({count / spent:.1f} studies a second); reports of "
        f"{len(paths)} generators read in {seconds:.0f} s ({count * len(paths) / seconds:.0f} "
        "studies a second)."
    )
    notes = [f"- {note}" for note in (*made.notes, *read.notes)]
    return "\n\n".join([line, "\n".join(notes), markdown(read.tables)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    work, indiana, nih = options.work.resolve(), options.folder / "iu", options.folder / "nih"
    work.mkdir(parents=True, exist_ok=True)
    sources = [SQUARED_IMAGES.check(indiana / "studies.jsonl")]
    sources.append(NIH_FILMS.check(nih / "films.jsonl"))
    known, tested = studies_of(indiana)
    table = write(work / "train.jsonl", known)
    embedder, line = encoder_of(table, work)
    look = Ridge((Path(row["image"]) for row in known), [row["reference"] for row in known])
    parts = ["# Does an audit tell who looks at real films?", describe_machine(), *sources, line]
    parts.append(str(__doc__).split("\n\nRun:")[0])
    for title, studies in (
        ("Indiana, regions by side and zone", tested),
        ("NIH, regions by boxes", with_boxes(nih)),
    ):
        parts.append(f"## {title}")
        place = work / title.split(",")[0].lower()
        parts.append(audited(studies, table, look, embedder, place))
    parts += ["## Large films", speed_of_large_films(tested, work / "large")]
    publish("\n\n".join([*parts, ""]), options.out)


if __name__ == "__main__":
    main()
