"""C, the area at which VLScore is 0, from the areas of a table's triangles.

Source: Dawidowicz, Hirsch, Tal 2024: C is the largest area among the studies of ReXVal.

`write_constant` writes a measured C into the card of an encoder's folder.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import (
    OnProgress,
    Signature,
    checked_arguments,
    generator,
    limit_notes,
    no_progress,
    plain,
    write_json,
)
from vlscore.data import StudyTable, TextPolicy, as_table
from vlscore.embedding import StudyEmbedder, embed_table
from vlscore.encoders import JointEncoder, read_json
from vlscore.errors import Failure, InvalidSetting, InvalidTable, WeightsNotFound
from vlscore.metrics import triangle_area
from vlscore.stats import Interval, TextTable, bootstrap, interval, number

QUANTILES = (0.5, 0.9, 0.95, 0.99)

# Draws that are repeated if a study drew its own text. After them, the remaining studies draw among
# the other texts alone.
_ROUNDS = 100


@dataclass(frozen=True)
class Calibration:
    """Constant C of an encoder, from the areas of a table's triangles.

    Attributes:
        C: the largest area. The bootstrap has no interval for a maximum; the quantiles show how
            far it is from the others.
        quantiles: share of the triangles below -> the area, with a 95 % bootstrap interval over
            studies.
        studies, triangles: how many were measured.
        candidates: what the candidates were, in words.
        table, sha256: name and digest of the table.
        signature: what the areas depend on: encoder, policies, texts.
        failed: rows that could not be used.
        notes: notes for the user, one sentence each.
    """

    C: float
    quantiles: Mapping[float, Interval]
    studies: int
    triangles: int
    candidates: str
    table: str
    sha256: str
    signature: Signature
    failed: Sequence[Failure] = field(default=(), repr=False)
    notes: Sequence[str] = ()

    @property
    def source(self) -> str:
        """Return the source of C, in the words of a card."""
        return (
            f"largest area of {self.triangles} triangles of {self.studies} studies of {self.table} "
            f"(sha256 {self.sha256[:12]}), candidates: {self.candidates}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        quantiles = {f"{share:g}": area for share, area in self.quantiles.items()}
        written = {"quantiles": quantiles, "signature": str(self.signature)}
        facts = {**vars(self), **written, "failed": len(self.failed)}
        del facts["notes"]
        found: dict[str, Any] = plain(facts)
        return found

    def text_table(self) -> TextTable:
        """Return one row a quantile, the largest last."""
        digits = 3 - min(0, math.floor(math.log10(self.C))) if self.C > 0 else 3
        rows = [(f"{share:g}", interval(area, digits)) for share, area in self.quantiles.items()]
        rows.append(("largest (C)", number(self.C, digits)))
        caption = (
            f"Areas of {self.triangles} triangles of {self.studies} studies; candidates: "
            f"{self.candidates}. In brackets: 95 % bootstrap intervals over studies; a largest "
            "value has none."
        )
        return TextTable("", ("share below", "area"), tuple(rows), caption)


@checked_arguments
def calibrate(
    encoder: str | JointEncoder | StudyEmbedder | None,
    studies: str | Path | StudyTable,
    *,
    others: int = 0,
    quantiles: Sequence[float] = QUANTILES,
    text_policy: TextPolicy | str | None = None,
    workers: int = 0,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> Calibration:
    """Measure C of an encoder on a table of studies.

    The texts' embeddings are held in memory, 4·d bytes a text.

    Args:
        encoder: a StudyEmbedder, or what one takes: a name, or a loaded encoder.
        studies: table with columns image, reference and, unless `others` is given, candidate.
        others: take as candidates, instead of the table's column, so many references of other
            studies each, drawn at random among those of other words.
        quantiles: shares of the triangles, between 0 and 1.
        text_policy: what of a report counts, as in `evaluate`.
        workers: processes that decode images.
        resamples, seed: of the bootstrap; `seed` also draws the others.
        on_progress: called with the rows read and the rows that failed.

    Raises:
        InvalidTable: the table cannot be read, has not the columns, or none of its rows can be
            used; with `others`, too few of its references differ.
        InvalidSetting: a number out of its range.
    """
    if others < 0:
        raise InvalidSetting(f"others is a number of reports, at least 0, not {others!r}")
    if not all(0 < share < 1 for share in quantiles):
        raise InvalidSetting(f"quantiles lie between 0 and 1, not {list(quantiles)}")
    embedder = encoder if isinstance(encoder, StudyEmbedder) else StudyEmbedder(encoder)
    policy = TextPolicy.named(text_policy)
    needs = {"image", "reference"} | (set() if others else {"candidate"})
    table = as_table(studies, needs)
    embedder = embedder.for_table(table)
    found = embed_table(table, embedder, policy, workers=workers, on_progress=on_progress)
    vectors = {role: torch.from_numpy(each) for role, each in found.vectors.items()}
    candidates = vectors.get("candidate")
    measured = calibrate_vectors(
        vectors["image"],
        vectors["reference"],
        found.references,
        None if candidates is None else candidates[:, None],
        others=others,
        quantiles=quantiles,
        table=table,
        signature=embedder.signature.plus(txt=policy.signature()).of("areas"),
        resamples=resamples,
        seed=seed,
    )
    notes = (*limit_notes(table.key), *measured.notes, *embedder.notes)
    notes = (*notes, *embedder.training_notes(table))
    return replace(measured, failed=found.failed, notes=notes)


def calibrate_vectors(
    images: Tensor,
    references: Tensor,
    texts: Sequence[str],
    candidates: Tensor | None = None,
    *,
    others: int = 0,
    quantiles: Sequence[float] = QUANTILES,
    table: StudyTable,
    signature: Signature,
    resamples: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Measure C as `calibrate` does, for studies that are embedded already.

    Args:
        images, references: (n, d).
        texts: the n references; those of equal words are no others of each other.
        candidates: (n, m, d); default: `others` references of other studies, drawn at random.
        table: where the studies come from.
        signature: what the vectors depend on.

    Raises: InvalidTable as `calibrate`.
    """
    if candidates is None:
        drawn = _draw_others([" ".join(text.split()) for text in texts], others, seed, table.path)
        candidates = references[torch.from_numpy(drawn)]
    areas = np.stack(
        [triangle_area(images, each, references).numpy() for each in candidates.unbind(1)], axis=1
    )
    if not areas.max() > 0:
        raise InvalidTable(
            f"{table.path}: every candidate lies on its study's line, so no area is larger than 0; "
            "give candidates that differ from their references"
        )
    named = f'the column "{table.columns.candidate}"'
    if others:
        count = "a reference" if others == 1 else f"{others} references"
        named = f"{count} of other studies for each, at random (seed {seed})"

    def quantile(share: float) -> Interval:
        def of(rows: NDArray[np.float64]) -> float:
            return float(np.quantile(areas[rows.astype(np.int64)], share))

        return bootstrap(of, np.arange(len(areas)), resamples=resamples, seed=seed)

    return Calibration(
        C=float(areas.max()),
        quantiles={share: quantile(share) for share in sorted(quantiles)},
        studies=len(areas),
        triangles=areas.size,
        candidates=named,
        table=table.path.name,
        sha256=table.sha256,
        signature=signature,
        notes=table.notes,
    )


def _draw_others(texts: Sequence[str], others: int, seed: int, path: Path) -> NDArray[np.int64]:
    """Return (n, others): for each study, other studies whose references have other words."""
    rng = generator(seed)
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    if len(numbers) < 2:
        raise InvalidTable(f"{path}: all references that can be used are equal, so none is another")
    own = np.array([numbers[text] for text in texts])
    drawn = rng.integers(len(texts), size=(len(texts), others))
    for _ in range(_ROUNDS):
        if not (same := own[drawn] == own[:, None]).any():
            return drawn
        drawn[same] = rng.integers(len(texts), size=int(same.sum()))
    same = own[drawn] == own[:, None]
    drawn[same] = _of_others(own, np.nonzero(same)[0], rng)
    return drawn


def _of_others(
    own: NDArray[np.int64], studies: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one study of another text for each of some studies, all others equally likely.

    In the order of texts, the studies of one text follow each other: a number is drawn among the
    others, and moved past the study's own text.
    """
    order = np.argsort(own, kind="stable")
    begins = np.searchsorted(own[order], own[studies], side="left")
    counts = np.bincount(own)[own[studies]]
    drawn = rng.integers(len(own) - counts)
    return np.asarray(order[drawn + counts * (drawn >= begins)])


CARD = "card.json"


def write_constant(folder: str | Path, calibration: Calibration) -> Path:
    """Write a measured C and its source into an encoder's card; return the card's path.

    The other facts of the card stay; the file is replaced in one step.

    Args: folder: of an encoder that `vlscore train` wrote.
    Raises: as `read_card`.
    """
    measured = {"C": calibration.C, "C_source": calibration.source}
    path = Path(folder) / CARD
    write_json(path, {**read_card(folder), **measured, "calibration": calibration.to_dict()})
    return path


def read_card(folder: str | Path) -> dict[str, Any]:
    """Return the card of an encoder's folder.

    Raises: WeightsNotFound where the folder has none; IncompatibleCheckpoint where it cannot be
        read.
    """
    path = Path(folder) / CARD
    if not path.is_file():
        raise WeightsNotFound(
            f"{folder} has no {CARD}, so it is no folder of a trained encoder; give the one that "
            "`vlscore train` wrote, or set C with --C"
        )
    return read_json(path, "card of an encoder")
