"""From files and texts to embeddings."""

from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.engine import Embedded, EmbeddingEngine
from vlscore.embedding.studies import EmbeddedRows, StudyEmbedder, StudyViews
from vlscore.embedding.views import VIEW_POLICIES

__all__ = [
    "VIEW_POLICIES",
    "Embedded",
    "EmbeddedRows",
    "EmbeddingEngine",
    "ImageDecoder",
    "PendingPixels",
    "StudyEmbedder",
    "StudyViews",
]
