"""Metrics of vlscore inside torchmetrics, Lightning, TRL, evaluate, lm-eval and inspect_ai.

Nothing of vlscore imports this room. A tool's library is imported with the first use of its name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
