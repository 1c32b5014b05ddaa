"""Studies to vectors: choice of views, decoding, batches, the cache of embeddings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
