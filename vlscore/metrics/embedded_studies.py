"""Embeddings of studies for metrics: of the image, the candidate and the reference of each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics.arguments import Item, Needs
from vlscore.metrics.batch import EmbeddingTriples

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder, StudyViews


def embed_triples(
    embedder: "StudyEmbedder",
    needs: Needs,
    candidates: Sequence[str],
    references: Sequence[str] | None,
    shown: "Sequence[StudyViews | None]",
) -> tuple[EmbeddingTriples, dict[str, NDArray[Any]]]:
    """Return embeddings of studies, as far as metrics need them, and which texts were truncated.

    Args: shown: the images of each study; None for a study without.
    """
    from vlscore.embedding import StudyViews

    compared = references if needs.embedded_references else None
    # One list for candidates and references, so that batches hold texts of similar length.
    texts = embedder.embed_texts([*candidates, *(compared or ())])
    images = None
    if needs.images:
        images = embedder.embed_studies([each or StudyViews(()) for each in shown])
    count, flags = len(candidates), texts.truncated.numpy()
    failures: dict[int, VLScoreError] = {}
    for rows in (texts, images):
        for row, error in rows.failures.items() if rows is not None else ():
            failures.setdefault(row % count, error)
    triples = EmbeddingTriples(
        None if images is None else images.vectors,
        texts.vectors[:count],
        None if compared is None else texts.vectors[count:],
        embedder.signature,
        embedder.C,
        failures,
    )
    truncated = {"candidate_truncated": flags[:count]}
    if compared is not None:
        truncated["reference_truncated"] = flags[count:]
    return triples, truncated


def stored_triples(vectors: EmbeddingTriples, items: Sequence[Item]) -> EmbeddingTriples:
    """Return those of the studies among vectors that were computed elsewhere.

    Raises: InvalidSetting for a study that is no row of a table.
    """
    positions = [item.position for item in items if item.position is not None]
    if len(positions) < len(items):
        raise InvalidSetting(
            "vectors that were computed elsewhere belong to the rows of a table: use `evaluate`, "
            "or `metrics.compute` for arrays alone"
        )
    return vectors.take(positions)
