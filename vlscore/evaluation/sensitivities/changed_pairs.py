"""Pairs of an original report and a perturbed one: read, selected, and embedded, each text once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import Signature
from vlscore.data import StudyImages, TextPolicy, read_rows, select
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidTable, VLScoreError
from vlscore.evaluation.study_vectors import StudyVectors, embed_images
from vlscore.metrics import EmbeddingTriples
from vlscore.perturb import KINDS
from vlscore.stats import places_by_group

PERTURBATIONS_FILE = "perturbations.jsonl"


@dataclass(frozen=True)
class Pair:
    """One perturbation of one report.

    Attributes:
        study_id: whose report it is; perturbations of one study share it.
        kind: of perturbation, as in "remove-pathology".
        is_significant: whether a good metric should notice.
        original: the report, which is the reference.
        perturbed: the changed report, which is the candidate.
        category: ReXVal's error category, where the change is an error.
    """

    study_id: str
    kind: str
    is_significant: bool
    original: str
    perturbed: str
    category: str | None = None


def pairs_file(place: str | Path) -> Path:
    """Return the file of records: the path itself, or that in the folder of `vlscore perturb`.

    Raises: InvalidTable where there is none.
    """
    path = Path(place)
    if path.is_dir():
        path = path / PERTURBATIONS_FILE
    if not path.is_file():
        raise InvalidTable(
            f"{path}: no such file; make one with `vlscore perturb reports.csv --out {place}`"
        )
    return path


def read_pairs(place: str | Path) -> list[Pair]:
    """Read pairs from a file of records, or from the folder that `vlscore perturb --out` wrote.

    Raises: InvalidTable naming the row that is no record, or the place that holds none.
    """
    path = pairs_file(place)
    pairs = []
    for row, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {row}: {record}")
        try:
            pairs.append(pair_of(record))
        except (KeyError, ValueError) as error:
            raise InvalidTable(f"{path}, row {row}: {_reason(error)}") from None
    if not pairs:
        raise InvalidTable(f"{path}: holds no perturbations")
    return pairs


def pair_of(record: Mapping[str, Any]) -> Pair:
    """Return the Pair of one record; raise KeyError or ValueError if it is none."""
    for name in ("kind", "original", "perturbed"):
        if not isinstance(record[name], str):
            raise ValueError(f'"{name}" holds a {type(record[name]).__name__}, not a text')
    return Pair(
        study_id=str(record["study_id"]),
        kind=record["kind"],
        is_significant=_is_significant(record["expected"]),
        original=record["original"],
        perturbed=record["perturbed"],
        category=record.get("category") or None,
    )


def select_pairs(
    pairs: Sequence[Pair], policy: TextPolicy
) -> tuple[list[Pair], dict[int, VLScoreError]]:
    """Select the section of both reports that the policy names, once for all metrics.

    Both are taken as references are, since a perturbed report has the original's headings.

    Returns: the pairs; and position -> why a pair lacks the section. Such pairs stay as they were.
    """
    chosen, failures = list(pairs), {}
    for position, pair in enumerate(pairs):
        try:
            chosen[position] = replace(
                pair,
                original=select(pair.original, policy, "reference"),
                perturbed=select(pair.perturbed, policy, "reference"),
            )
        except VLScoreError as error:
            failures[position] = error
    return chosen, failures


def kinds_of(pairs: Iterable[Pair]) -> list[str]:
    """Return the kinds of the pairs: in the registry's order, then others as they appear."""
    there = dict.fromkeys(pair.kind for pair in pairs)
    known = [name for name in KINDS if name in there]
    return [*known, *(name for name in there if name not in known)]


def means_by_study(studies: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """Return study -> mean of its values."""
    rows_of = places_by_group(studies)
    return {study: float(values[rows].mean()) for study, rows in rows_of.items()}


def _is_significant(expected: Any) -> bool:
    try:
        return {"significant": True, "insignificant": False}[expected]
    except (KeyError, TypeError):
        raise ValueError(
            f'"expected" is "significant" or "insignificant", not {expected!r}'
        ) from None


def _reason(error: Exception) -> str:
    return f'field "{error.args[0]}" is absent' if isinstance(error, KeyError) else str(error)


@dataclass(frozen=True, eq=False)
class EmbeddedPairs:
    """Embeddings of n pairs.

    Attributes:
        images: (n, d), of each pair's study; None without images.
        originals, perturbed: (n, d), of the reports.
        failures: position of a pair -> why it has no embeddings.
        truncated: how many distinct reports the encoder did not read to the end.
        signature: what the embeddings depend on.
        C: constant of VLScore; None where it is unknown.
        studies: embeddings of the images by study, for showing a pair another image.
    """

    images: Tensor | None
    originals: Tensor
    perturbed: Tensor
    failures: dict[int, VLScoreError]
    truncated: int
    signature: Signature
    C: float | None
    studies: StudyVectors

    def triples(self, candidates: Tensor, images: Tensor | None = None) -> EmbeddingTriples:
        """Return the originals as references, with these candidates and, if given, other images."""
        i = self.images if images is None else images
        return EmbeddingTriples(
            i, candidates, self.originals, self.signature, self.C, self.failures
        )


def embed_pairs(
    pairs: Sequence[Pair],
    embedder: StudyEmbedder,
    images: Mapping[str, StudyImages] | StudyVectors | None = None,
    *,
    C: float | None = None,
    workers: int = 0,
) -> EmbeddedPairs:
    """Embed every pair; failures are listed, never raised.

    Args:
        images: by study id, or embedded already; None where only texts are compared.
        C: constant of VLScore; default: the encoder's.
        workers: processes that decode images; 0 decodes in this one.
    """
    texts = list(dict.fromkeys(t for pair in pairs for t in (pair.original, pair.perturbed)))
    found = embedder.embed_texts(texts)
    row_of = {text: row for row, text in enumerate(texts)}
    originals = [row_of[pair.original] for pair in pairs]
    perturbed = [row_of[pair.perturbed] for pair in pairs]
    failures: dict[int, VLScoreError] = {}
    for position, rows in enumerate(zip(originals, perturbed, strict=True)):
        for row in rows:
            if row in found.failures:
                failures.setdefault(position, found.failures[row])
    studies = _studies(embedder, images, {pair.study_id for pair in pairs}, workers)
    vectors: Tensor | None = None
    if images is not None:
        vectors, missing = studies.rows([pair.study_id for pair in pairs], embedder.dim)
        failures = {**missing, **failures}
    return EmbeddedPairs(
        images=vectors,
        originals=found.vectors[originals],
        perturbed=found.vectors[perturbed],
        failures=dict(sorted(failures.items())),
        truncated=int(found.truncated.sum()),
        signature=embedder.signature,
        C=embedder.C if C is None else C,
        studies=studies,
    )


def _studies(
    embedder: StudyEmbedder,
    images: Mapping[str, StudyImages] | StudyVectors | None,
    wanted: set[str],
    workers: int,
) -> StudyVectors:
    if images is None:
        return StudyVectors()
    if isinstance(images, StudyVectors):
        return images
    studies = StudyVectors(black=embedder.embed_black())
    needed = {name: study for name, study in images.items() if name in wanted}
    for _, part in embed_images(embedder, needed, workers=workers):
        studies.update(part)
    return studies
