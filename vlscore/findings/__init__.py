"""Findings that a report states: observation, polarity, side, place, severity, with spans."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
