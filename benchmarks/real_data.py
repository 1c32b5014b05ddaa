"""Images, reports and manual codings for the benchmarks on real images: tables, parts, vectors.

The data folder has the layout that docs/real.md describes: `iu/studies.jsonl` with `iu/images`
(see squeezed_images.py), `generated/*.jsonl`, and `radpref/`. Everything that is made from it
lies in a work folder outside of the repository, and is made once.

Parts. "train" trains encoders and probes. "choose" is the half of the development part on which
every choice was made. "report" is the other half, which was measured once, at the end; where the
data has a test part, that is "report", and the other half of the development part is not used. The
halves are chosen by a hash of the study's id; studies with the same report, or of the same patient,
are in the same half.
"""

import argparse
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import describe_file
from findings_vs_codings import CLEAN, Concept
from numpy.typing import NDArray
from squeezed_images import write_studies

from vlscore.core import atomic_write
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.training import Preparation
from vlscore.training.training_pairs import Pairs, as_radiograph, prepare

WORK = "folder outside the repository for what is made"
Array = NDArray[np.float64]
PARTS = TRAIN, CHOOSE, REPORT = "train", "choose", "report"
SOURCE = "https://openi.nlm.nih.gov (Demner-Fushman et al. 2016), CC BY-NC-ND 4.0"
_AT_ONCE = 64
FRONTAL, BOTH_VIEWS = "first-frontal", "frontal+lateral"
# Folder of the decoded training images, for each policy of views.
PAIRS = {FRONTAL: "pairs", BOTH_VIEWS: "pairs-lateral"}
# Most encoders take 96 pixels; the stored images are a little larger, for rotations.
KEPT = 112

# Findings that the coders coded in at least 20 training studies, and that one image can show.
FINDINGS = (
    "cardiomegaly",
    "pleural effusion",
    "atelectasis",
    "opacity, any wording",
    "hyperinflation",
    "low lung volumes",
    "calcified granuloma",
    "degenerative change of spine or joint",
    "aortic tortuosity",
    "atherosclerosis",
    "catheter",
    "surgical clips and staples",
    "scoliosis",
    "vascular congestion",
    "emphysema",
)
CONCEPTS: dict[str, Concept] = {each.name: each for each in CLEAN if each.name in FINDINGS}


def parser_of(document: str | None, work: str = "the folder that real_encoders.py wrote") -> Any:
    """Return the parser of a script on real images, described by its docstring's first line."""
    parser = argparse.ArgumentParser(description=(document or "").split("\n")[0])
    parser.add_argument("data", type=Path, help="the folder of docs/real.md")
    parser.add_argument("work", type=Path, help=work)
    parser.add_argument("--out", type=Path)
    return parser


def is_coded(mesh: str, concept: Concept) -> bool:
    """Return whether a manual coding ("Cardiomegaly/mild;Spine/degenerative") has a finding."""
    return any(re.match(concept.coding, term.strip()) for term in mesh.split(";"))


@dataclass(frozen=True, eq=False)
class Part:
    """Studies of one part with their decoded images.

    Attributes:
        table: path of its table.
        pairs: images and reports; studies without an image or a report are left out.
        mesh: manual coding of each pair.
    """

    table: Path
    pairs: Pairs
    mesh: Sequence[str]

    def coded(self, name: str) -> NDArray[np.bool_]:
        """Return (n,) bool, whether each study has a finding in its manual coding."""
        return np.array([is_coded(each, CONCEPTS[name]) for each in self.mesh], bool)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """Return (n,) bool, False for studies that the coders did not code."""
        return np.array([bool(each) and "No Indexing" not in each for each in self.mesh], bool)


@dataclass(frozen=True)
class RealData:
    """Data folder and work folder.

    Attributes:
        data: folder in the layout of docs/real.md.
        work: folder for tables, images, encoders and vectors.
        side: shorter side of the decoded images, in pixels.
    """

    data: Path
    work: Path
    side: int = KEPT

    def table(self, part: str) -> Path:
        """Return the path of a part's table."""
        return self.work / f"iu_{part}.jsonl"

    def pairs_name(self, views: str) -> str:
        """Return the name of the folder of decoded training images."""
        return PAIRS[views] if self.side == KEPT else f"{PAIRS[views]}-{self.side}"

    def make_tables(self) -> None:
        """Write a table for each part, and the images in their proportions.

        Tables of an earlier call stay if their studies are those of the data folder. A changed part
        "report", such as a new test part, replaces the earlier one; the encoders remain.

        Raises: SystemExit if the studies that the encoders were trained or chosen on have changed.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        everything = self.work / "iu.jsonl"
        restored = write_studies(self.data / "iu", everything, self.work / "films")
        parts = divide(_rows(everything))
        print(", ".join(f"{name}: {len(rows)} studies" for name, rows in parts.items()))
        for reason in restored.left_out:
            print(f"left out: {reason}", flush=True)
        changed = [
            part
            for part, rows in parts.items()
            if not self.table(part).is_file() or not _same(_rows(self.table(part)), rows)
        ]
        fixed = [part for part in changed if part != REPORT and self.table(part).is_file()]
        if fixed:
            raise SystemExit(
                f"{self.work}: was made with other studies of the part {' and '.join(fixed)} than "
                f"{self.data / 'iu'} has; give another work folder (make real WORK=FOLDER)"
            )
        if REPORT in changed and self.table(REPORT).is_file():
            print("the part report has changed: its images are read again", flush=True)
            images = self.work.glob(f"{PAIRS[BOTH_VIEWS]}*-{REPORT}")
            for made in (*images, *self._compared()):
                shutil.rmtree(made, ignore_errors=True)
        for part in changed:
            with atomic_write(self.table(part)) as stream:
                stream.writelines(json.dumps(row) + "\n" for row in parts[part])

    def _compared(self) -> list[Path]:
        """Return the folders in which real_generators.py compared the studies of all parts."""
        return sorted((self.work / "generators").glob("compared-*"))

    def preparation(
        self, part: str, table: Path | None = None, views: str = FRONTAL
    ) -> Preparation:
        """Return what `train` and `prepare` read of a part, or of another table."""
        studies = open_studies(table or self.table(part), needs={"image", "reference"})
        return Preparation(studies, side=self.side, views=views)

    def part(self, name: str) -> Part:
        """Return a part with its images of both views, which are decoded once."""
        # `train` looks for the validation pairs beside those of the training table.
        ends = {TRAIN: "", CHOOSE: "-validation"}
        folder = self.pairs_name(BOTH_VIEWS) + ends.get(name, f"-{name}")
        pairs = prepare(self.preparation(name, views=BOTH_VIEWS), self.work / folder)
        mesh = {row["id"]: row["mesh"] or "" for row in _rows(self.table(name))}
        return Part(self.table(name), pairs, [mesh[id] for id in pairs.ids])

    def describe(self) -> str:
        """Return one line about the data."""
        return f"Data: {describe_file(self.data / 'iu' / 'studies.jsonl')}: {SOURCE}."


def _rows(table: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]


def _same(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether images, reports and codings are equal; images may lie in another folder."""

    def content(row: Mapping[str, Any]) -> list[Any]:
        images = [Path(path).name for path in row["image"]]
        return [*(row[name] for name in ("id", "findings", "impression", "mesh")), images]

    return list(map(content, rows)) == list(map(content, others))


def divide(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Divide the rows of all studies into the parts; this file's docstring has the rule.

    Raises: SystemExit if a study has no known part, so that none is left out unseen.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {part: [] for part in PARTS}
    development = []
    for row in rows:
        split = row["split"]
        if split == "validate":
            development.append(row)
        elif split in ("train", "test"):
            parts[TRAIN if split == "train" else REPORT].append(row)
        else:
            raise SystemExit(
                f'study {row["id"]} has the part {split!r}; write "training", '
                '"development-test" or "test" into iu/studies.jsonl (docs/real.md)'
            )
    has_test = bool(parts[REPORT])
    first: dict[str, str] = {}
    for row in development:
        for key in _together(row):
            first[key] = min(first.get(key, row["id"]), row["id"])
    for row in development:
        leader = min(first[key] for key in _together(row))
        is_chosen = hashlib.sha256(leader.encode()).digest()[0] % 2 == 1
        if is_chosen or not has_test:
            parts[CHOOSE if is_chosen else REPORT].append(row)
    return parts


def _together(row: Mapping[str, Any]) -> list[str]:
    """Return keys that studies of the same half share: the report, and the patient if known."""
    text = " ".join(row[name] or "" for name in ("findings", "impression"))
    keys = ["text " + " ".join(text.lower().split())]
    return keys if row.get("patient") is None else [*keys, f"patient {row['patient']}"]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of a part by one encoder: (n, d) of images and reports, (d,) of a black image."""

    images: Array
    reports: Array
    black: Array


def open_encoder(folder: Path, name: str = "small") -> StudyEmbedder:
    """Return a trained encoder, on one core; of both views if it has a tower for lateral ones."""
    embedder = StudyEmbedder(name, weights=str(folder), device="cpu")
    if not embedder.encoder.has_lateral_tower:
        return embedder
    return StudyEmbedder(embedder.encoder, device="cpu", views=BOTH_VIEWS)


def image_vectors(embedder: StudyEmbedder, pairs: Pairs) -> Array:
    """Return (n, d) float64 vectors of the decoded images, as `vlscore evaluate` makes them.

    With a tower for lateral views: half the sum of both views; a missing one counts as zeros.
    """
    frontal = _embedded(embedder, pairs, pairs.image, range(len(pairs)), "embed_images")
    if embedder.views == FRONTAL:
        return frontal
    rows = np.flatnonzero(pairs.has_lateral).tolist()
    lateral = np.zeros_like(frontal)
    if rows:
        lateral[rows] = _embedded(
            embedder, pairs, lambda row: pairs.image(row, 1), rows, "embed_lateral_images"
        )
    return (frontal + lateral) / 2


def _embedded(
    embedder: StudyEmbedder, pairs: Pairs, image: Any, rows: Sequence[int], method: str
) -> Array:
    encoder, found = embedder.encoder, []
    with torch.inference_mode():
        for first in range(0, len(rows), _AT_ONCE):
            few = rows[first : first + _AT_ONCE]
            images = [as_radiograph(image(row), pairs.ids[row]) for row in few]
            pixels = torch.stack(list(map(encoder.preprocess, images)))
            found.append(getattr(encoder, method)(pixels))
    return torch.cat(found).double().numpy()


def text_vectors(embedder: StudyEmbedder, texts: Sequence[str]) -> Array:
    """Return (n, d) float64 vectors of texts; equal texts are read once."""
    distinct = list(dict.fromkeys(texts))
    embedded = embedder.embed_texts(distinct)
    for error in embedded.failures.values():
        raise error
    row_of = {text: row for row, text in enumerate(distinct)}
    vectors: Array = embedded.vectors.double().numpy()
    return vectors[[row_of[text] for text in texts]]


def vectors_of(embedder: StudyEmbedder, part: Part, cache: Path) -> Vectors:
    """Return the vectors of a part, from `cache` (an .npz file) if they were computed before.

    A cache that is older than the part's table is of other studies.
    """
    if cache.is_file() and cache.stat().st_mtime_ns > part.table.stat().st_mtime_ns:
        with np.load(cache, allow_pickle=False) as stored:
            return Vectors(stored["images"], stored["reports"], stored["black"])
    found = Vectors(
        image_vectors(embedder, part.pairs),
        text_vectors(embedder, part.pairs.texts),
        embedder.embed_black().double().numpy().reshape(-1),
    )
    cache.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(cache, "wb") as stream:
        np.savez(stream, images=found.images, reports=found.reports, black=found.black)
    return found
