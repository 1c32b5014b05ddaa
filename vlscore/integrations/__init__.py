"""vlscore inside other tools: a metric of torchmetrics, a reward of TRL, the names of vlscore-cxr.

Nothing of vlscore imports this package. torchmetrics is imported with the first use of its metric.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
