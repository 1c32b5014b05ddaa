"""Metrics of generated reports, the plan that computes them, and the scorer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
