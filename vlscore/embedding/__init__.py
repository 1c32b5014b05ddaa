"""The engine between files and embeddings."""

from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.engine import Embedded, EmbeddingEngine

__all__ = ["Embedded", "EmbeddingEngine", "ImageDecoder", "PendingPixels"]
