"""Notes on an encoder that is used on the studies of its training."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlscore.embedding.embedder import StudyEmbedder


def training_notes(embedder: "StudyEmbedder | None", table_sha256: str) -> tuple[str, ...]:
    """Return a note if a table is the one that the encoder was trained on; else nothing."""
    if embedder is None or embedder.encoder.card.trained_on != table_sha256:
        return ()
    return (
        "the encoder was trained on this very table: its images and references are training pairs, "
        "so that these numbers say nothing of new studies; take a table that it has not seen",
    )
