"""Embeddings of the images of studies, by id; embedded once, in chunks of a resumable folder."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from vlscore.core import ResumableFolder
from vlscore.data import BadRow, StudyImages, StudyTable
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.errors import InvalidStudy, VLScoreError
from vlscore.evaluation.row_chunks import ChunkWriter, chunks_of_kind, read_arrays, write_arrays

STUDIES_AT_ONCE = 64
_IMAGES = "images"


@dataclass(eq=False)
class StudyVectors:
    """Embeddings of the images of studies.

    Attributes:
        vectors: study id -> (d,) float32.
        failures: study id -> why it has none.
        black: (d,) of an image whose pixels are all 0; None where no image was embedded.
    """

    vectors: dict[str, Tensor] = field(default_factory=dict)
    failures: dict[str, VLScoreError] = field(default_factory=dict)
    black: Tensor | None = None

    def update(self, other: "StudyVectors") -> None:
        """Add the embeddings and failures of other studies."""
        self.vectors.update(other.vectors)
        self.failures.update(other.failures)

    def rows(self, studies: Sequence[str], dim: int) -> tuple[Tensor, dict[int, VLScoreError]]:
        """Return (n, dim) vectors of the studies, nan where there is none, and position -> why."""
        vectors = torch.full((len(studies), dim), torch.nan)
        failures: dict[int, VLScoreError] = {}
        for row, name in enumerate(studies):
            if name in self.vectors:
                vectors[row] = self.vectors[name]
            else:
                failures[row] = self.failures.get(name) or InvalidStudy(
                    f"study {name}: no image is given for it"
                )
        return vectors, failures


def images_of(
    table: StudyTable, wanted: Collection[str]
) -> tuple[dict[str, StudyImages], list[BadRow]]:
    """Return the images of the wanted studies of a table by id, and all its bad rows."""
    found, bad = {}, []
    for row in table:
        if isinstance(row, BadRow):
            bad.append(row)
        elif row.id in wanted:
            found[row.id] = StudyImages(row.id, row.images, row.views)
    return found, bad


def embed_images(
    embedder: StudyEmbedder, images: Mapping[str, StudyImages], *, workers: int = 0
) -> Iterator[tuple[list[str], StudyVectors]]:
    """Yield the ids of some studies and the embeddings of their images, until all are embedded."""
    waiting = iter(images.items())
    with embedder.decoder(workers) as decoder:
        while chunk := list(islice(waiting, STUDIES_AT_ONCE)):
            shown = [
                embedder.begin(StudyViews(study.images, study.views), decoder) for _, study in chunk
            ]
            embedded = embedder.embed_studies(shown)
            names = [study_id for study_id, _ in chunk]
            yield (
                names,
                StudyVectors(
                    {
                        name: embedded.vectors[row].clone()
                        for row, name in enumerate(names)
                        if row not in embedded.failures
                    },
                    {names[row]: error for row, error in embedded.failures.items()},
                ),
            )


def embed_in_chunks(
    chunks: ChunkWriter,
    embedder: StudyEmbedder,
    images: Mapping[str, StudyImages],
    *,
    workers: int = 0,
) -> None:
    """Embed the images of the studies that no chunk holds yet; images are the first rows."""
    left = dict(islice(images.items(), min(chunks.done, len(images)), None))
    nothing = torch.full((embedder.dim,), torch.nan)
    for names, part in embed_images(embedder, left, workers=workers) if left else ():
        paths = [path for name in names for path in left[name].images]
        vectors = torch.stack([part.vectors.get(name, nothing) for name in names])
        failed = {name: str(error) for name, error in part.failures.items()}
        with chunks.append(len(names), len(failed), paths, kind=_IMAGES) as place:
            write_arrays(place, {"names": names, "failed": failed}, vectors=vectors.numpy())


def embedded_in(folder: ResumableFolder) -> StudyVectors:
    """Return what `embed_in_chunks` wrote into the chunks of a folder."""
    studies = StudyVectors()
    for chunk in chunks_of_kind(folder, _IMAGES):
        arrays, facts = read_arrays(chunk.path)
        vectors, failed = torch.from_numpy(arrays["vectors"]), facts["failed"]
        names = facts["names"]
        studies.vectors |= {n: vectors[k] for k, n in enumerate(names) if n not in failed}
        studies.failures |= {name: InvalidStudy(reason) for name, reason in failed.items()}
    return studies
