"""Training of encoders on pairs of images and reports."""

import lazy_loader

from vlscore.core import with_former_names

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_former_names(__name__, __getattr__)
