"""Image-aware evaluation of generated chest X-ray reports.

    import vlscore
    result = vlscore.score("chest.dcm", "Small left effusion.", "Left pleural effusion.")
    print(float(result), result.signature)

The names below load their sub-packages, and torch, on first use.
"""

import lazy_loader

# Warns where vlscore-cxr, which has the same name, is installed over it.
import vlscore.core  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
