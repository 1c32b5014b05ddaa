"""Claim: `vlscore audit` tells a generator that looks a little at real films from two that do not.

Protocol. Generators, all of which copy reports of the training part of the Indiana collection:

- retrieval: the report of the training film that is most alike to a linear encoder (32 x 32 pixels,
  ridge regression on the findings that our reading finds in the training reports, cosine of the
  predictions). It looks, weakly, and at the film as a whole.
- constant: `vlscore baseline constant`, the most frequent report.
- random: `vlscore baseline random`, a report drawn anew for each film.

Films: (1) the first frontal film of each study of the development part, none of which the encoder
or the baselines know, squeezed to 256 x 256 pixels as the copy has them. Regions of findings are
rough rectangles by side and zone. (2) The films with boxes of NIH ChestX-ray14, another hospital's,
256 x 256 pixels; regions are these boxes. The findings whose regions are hidden are those of the
retrieval's own first report (column `candidate`), and of the reference or the boxes. Everything is
made and read by `audit_make` and `audit_read`; intervals are 95 %, over studies. What is expected:
constant and random do not depend on the film in any way; retrieval changes with it. No number
depends on a choice that was made on these films. One rule of the verdicts does: a first run said
"does not look" of findings that go with another film but not with their region; the rule that they
"change with the film" was made after it.

Run: python benchmarks/audit_real.py FOLDER [--out benchmarks/results/audit_real.md]
with FOLDER/iu/studies.jsonl, FOLDER/iu/images, FOLDER/nih/films.jsonl and FOLDER/nih/images
"""

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from data import NIH_FILMS, SQUARED_IMAGES
from machine import describe_machine, publish
from PIL import Image

from vlscore.core import unit_rows
from vlscore.evaluation import audit_make, audit_read, baseline, open_audited
from vlscore.findings import extract
from vlscore.stats import markdown

SIDE, PENALTY, LEAST = 32, 30.0, 20
NAMES = ("retrieval", "constant", "random")


def pixels(path: Path) -> np.ndarray:
    """Return SIDE x SIDE grey levels as one vector of mean 0 and length 1."""
    with Image.open(path) as image:
        grey = np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX), np.float64)
    vector = grey.ravel() - grey.mean()
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


class Retrieval:
    """Generator that copies the report of the most similar training film, by a linear encoder."""

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
            study = {"id": row["id"], "image": str(folder / frontal[0]), "reference": report}
            parts[row["part"] != "training"].append(study)
    return parts


def with_boxes(folder: Path) -> list[dict[str, object]]:
    """Return the films of NIH that have boxes."""
    rows = map(json.loads, (folder / "films.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        {"id": row["id"], "image": str(folder / row["image"]), "boxes": row["boxes"]}
        for row in rows
        if row["boxes"]
    ]


def write(path: Path, rows: Iterable[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def audited(studies: list[dict[str, object]], train: Path, look: Retrieval, place: Path) -> str:
    """Return what the audit says of three generators, as text of the page."""
    place.mkdir()
    rows = [{**row, "candidate": look(Path(str(row["image"])))} for row in studies]
    began = time.process_time()
    made = audit_make(open_audited(write(place / "studies.jsonl", rows)), place / "audit")
    spent = time.process_time() - began
    with (place / "audit" / "films.csv").open(encoding="utf-8", newline="") as stream:
        films = list(csv.DictReader(stream))
    written = ({"id": f["id"], "candidate": look(place / "audit" / f["image"])} for f in films)
    paths = {"retrieval": write(place / "retrieval.jsonl", written)}
    for name in NAMES[1:]:
        baseline(name, place / "audit" / "films.csv", place / name, train=train)
        paths[name] = place / name / "candidates.jsonl"
    began = time.process_time()
    given = [f"{name}={path}" for name, path in paths.items()]
    found = audit_read(place / "audit", given, place / "read")
    read = time.process_time() - began
    shown = [f"- {note}" for note in found.notes]
    record = made.record
    line = (
        f"{record['films']} films of {record['studies']} studies, made in {spent:.0f} s of one "
        f"processor; reports of three generators read in {read:.0f} s."
    )
    return "\n\n".join([line, "\n".join(shown), markdown(found.tables)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    indiana, nih = options.folder / "iu", options.folder / "nih"
    sources = [SQUARED_IMAGES.check(indiana / "studies.jsonl")]
    sources.append(NIH_FILMS.check(nih / "films.jsonl"))
    train, tested = studies_of(indiana)
    look = Retrieval((Path(row["image"]) for row in train), [row["reference"] for row in train])
    parts = ["# Does an audit tell who looks at real films?", describe_machine(), *sources]
    parts.append(str(__doc__).split("\n\nRun:")[0])
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        reports = write(place / "train.jsonl", ({**r, "report": r["reference"]} for r in train))
        for title, studies in (
            ("Indiana, regions by side and zone", tested),
            ("NIH, regions by boxes", with_boxes(nih)),
        ):
            parts.append(f"## {title}")
            parts.append(audited(studies, reports, look, place / title[:3]))
    publish("\n\n".join([*parts, ""]), options.out)


if __name__ == "__main__":
    main()
