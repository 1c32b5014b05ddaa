"""Pure functions on arrays of embeddings: triangle areas, distances, similarities."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
