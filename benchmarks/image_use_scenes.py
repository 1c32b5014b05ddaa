"""Phantom scenes under one encoder: every text and picture of the image-use test, embedded once.

The scene is the truth. A study has a reference that states it, a candidate with known errors, and
references that are wrong about it (imperfect_references.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from imperfect_references import FORMS, ImperfectStudy, imperfect_studies
from numpy.typing import NDArray
from torch import Tensor

from vlscore.data import PhantomStudy, Split, render, sample_studies
from vlscore.embedding import StudyEmbedder, StudyViews

_AT_ONCE = 64
_LEVELS = np.float32(4095)


@dataclass(frozen=True)
class Scenes:
    """The studies of several seeds, one after the other.

    Attributes:
        split: of the reports' phrasings.
        seed_of: (n,) the seed of each study.
        studies: n of them.
        imperfect: form -> (number of the study, its imperfect reference and candidates).
    """

    split: Split
    seed_of: NDArray[np.int64]
    studies: Sequence[PhantomStudy]
    imperfect: Mapping[str, Sequence[tuple[int, ImperfectStudy]]]

    @property
    def errors(self) -> NDArray[np.int64]:
        """(n,) true errors of each candidate, against the scene."""
        return np.array([study.errors.total for study in self.studies])

    @cached_property
    def imperfect_form(self) -> NDArray[np.int64]:
        """(n,) the form of the imperfect reference that stands for all, in turn; -1 for none."""
        can = [[number for number, _ in self.imperfect[form]] for form in FORMS]
        held = [set(numbers) for numbers in can]
        chosen = np.full(len(self.studies), -1)
        for number in range(len(self.studies)):
            turns = [(number + k) % len(held) for k in range(len(held))]
            chosen[number] = next((k for k in turns if number in held[k]), -1)
        return chosen

    @property
    def other_study(self) -> NDArray[np.int64]:
        """(n,) the study of the same seed whose image is taken for a swapped one."""
        rows = np.arange(len(self.studies))
        other = np.empty_like(rows)
        for seed in np.unique(self.seed_of):
            mine = rows[self.seed_of == seed]
            other[mine] = np.roll(mine, 1)
        return other

    def texts(self) -> list[str]:
        """Every distinct text."""
        found = [text for study in self.studies for text in (study.reference, study.candidate)]
        for drawn in self.imperfect.values():
            for _, each in drawn:
                found += [each.reference, each.true, each.false, each.copied]
        return list(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class Imperfect:
    """Embeddings of m studies whose reference is imperfect in one form; (m, d) each.

    Attributes:
        rows: (m,) numbers of the studies.
        references, true, false, copied: as in ImperfectStudy.
    """

    rows: NDArray[np.int64]
    references: Tensor
    true: Tensor
    false: Tensor
    copied: Tensor


@dataclass(frozen=True, eq=False)
class EmbeddedScenes:
    """Scenes under one encoder, float64.

    Attributes:
        images, candidates, references: (n, d).
        black: (d,) of a black image.
        imperfect: form -> its embeddings.
        C: of VLScore: the encoder's, else measured on scenes set aside for choices.
        signature: of the embeddings.
    """

    scenes: Scenes
    images: Tensor
    candidates: Tensor
    references: Tensor
    black: Tensor
    imperfect: Mapping[str, Imperfect]
    C: float | None
    signature: str
    name: str = field(default="")


def draw_scenes(seeds: Sequence[int], count: int, *, split: Split) -> Scenes:
    """The first `count` scenes of each seed, and what reports say of them."""
    studies: list[PhantomStudy] = []
    imperfect: dict[str, list[tuple[int, ImperfectStudy]]] = {form: [] for form in FORMS}
    for seed in seeds:
        first = len(studies)
        studies += sample_studies(seed, count, split=split)
        for form, drawn in imperfect.items():
            drawn += [
                (first + each.position, each)
                for each in imperfect_studies(seed, count, form, split=split)
            ]
    return Scenes(split, np.repeat(seeds, count), studies, imperfect)


def pictures_of(scenes: Scenes) -> list[NDArray[np.float32]]:
    """The images of all scenes, grey levels in [0, 1]."""
    return [render(study.scene).astype(np.float32) / _LEVELS for study in scenes.studies]


def embed_scenes(
    embedder: StudyEmbedder, scenes: Scenes, pictures: Sequence[NDArray[np.float32]]
) -> dict[str, NDArray[np.float32]]:
    """Vectors of all pictures, of a black one, and of all texts: what takes the time.

    Raises: the error of a picture or text that cannot be embedded.
    """
    images = []
    for begin in range(0, len(pictures), _AT_ONCE):
        shown = [StudyViews((picture,)) for picture in pictures[begin : begin + _AT_ONCE]]
        images.append(_all(embedder.embed_studies(shown)))
    texts = _all(embedder.embed_texts(scenes.texts()))
    black = embedder.embed_black().numpy()
    return {"images": np.concatenate(images), "black": black, "texts": texts}


def arrange(
    scenes: Scenes, vectors: Mapping[str, Any], *, C: float | None, signature: str
) -> EmbeddedScenes:
    """Vectors of `embed_scenes`, each where it belongs."""
    row_of = {text: row for row, text in enumerate(scenes.texts())}
    texts = torch.from_numpy(np.asarray(vectors["texts"], np.float64))

    def of(wanted: Sequence[str]) -> Tensor:
        return texts[[row_of[text] for text in wanted]]

    return EmbeddedScenes(
        scenes,
        torch.from_numpy(np.asarray(vectors["images"], np.float64)),
        of([study.candidate for study in scenes.studies]),
        of([study.reference for study in scenes.studies]),
        torch.from_numpy(np.asarray(vectors["black"], np.float64)),
        {
            form: Imperfect(
                np.array([number for number, _ in drawn]),
                of([each.reference for _, each in drawn]),
                of([each.true for _, each in drawn]),
                of([each.false for _, each in drawn]),
                of([each.copied for _, each in drawn]),
            )
            for form, drawn in scenes.imperfect.items()
        },
        C,
        signature,
    )


def _all(embedded: Any) -> NDArray[np.float32]:
    for error in embedded.failures.values():
        raise error
    found: NDArray[np.float32] = embedded.vectors.numpy()
    return found
