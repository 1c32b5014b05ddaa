"""Image-aware evaluation of generated chest X-ray reports.

    import vlscore
    result = vlscore.score("chest.dcm", "Small left effusion.", "Left pleural effusion.")
    print(float(result), result.signature)

The names below load their rooms, and torch, on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vlscore._version import __version__

if TYPE_CHECKING:
    # What type checkers see: these names, and no others.
    from vlscore import (
        alignment,
        cache,
        calibration,
        comparison,
        display,
        embedding,
        encoders,
        errors,
        evaluation,
        findings,
        images,
        index,
        labelling,
        meta,
        metrics,
        oracle,
        perturb,
        phantom,
        reports,
        scorer,
        search,
        similarity,
        stats,
        studies,
        training,
    )
    from vlscore._signature import Signature
    from vlscore.embedding import StudyEmbedder
    from vlscore.encoders import encoder_cards, load_encoder
    from vlscore.evaluation import evaluate
    from vlscore.images import ImagePolicy, read_image
    from vlscore.metrics import Metric
    from vlscore.reports import TextPolicy
    from vlscore.scorer import Score, Scorer, ScoreTable, score
    from vlscore.studies import Study, read_studies
else:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _ROOMS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module 'vlscore' has no attribute {name!r}")


# Name -> room; loaded on first use, and torch with most of them.
_HOMES = {
    "ImagePolicy": "vlscore.images",
    "Metric": "vlscore.metrics",
    "Score": "vlscore.scorer",
    "ScoreTable": "vlscore.scorer",
    "Scorer": "vlscore.scorer",
    "Signature": "vlscore._signature",
    "Study": "vlscore.studies",
    "StudyEmbedder": "vlscore.embedding",
    "TextPolicy": "vlscore.reports",
    "encoder_cards": "vlscore.encoders",
    "evaluate": "vlscore.evaluation",
    "load_encoder": "vlscore.encoders",
    "read_image": "vlscore.images",
    "read_studies": "vlscore.studies",
    "score": "vlscore.scorer",
}
# Reachable as attributes after a plain `import vlscore`.
_ROOMS = (
    "alignment",
    "cache",
    "calibration",
    "comparison",
    "display",
    "embedding",
    "encoders",
    "errors",
    "evaluation",
    "findings",
    "images",
    "index",
    "labelling",
    "meta",
    "metrics",
    "oracle",
    "perturb",
    "phantom",
    "reports",
    "scorer",
    "search",
    "similarity",
    "stats",
    "studies",
    "training",
)

__all__ = [
    "ImagePolicy",
    "Metric",
    "Score",
    "ScoreTable",
    "Scorer",
    "Signature",
    "Study",
    "StudyEmbedder",
    "TextPolicy",
    "__version__",
    "alignment",
    "cache",
    "calibration",
    "comparison",
    "display",
    "embedding",
    "encoder_cards",
    "encoders",
    "errors",
    "evaluate",
    "evaluation",
    "findings",
    "images",
    "index",
    "labelling",
    "load_encoder",
    "meta",
    "metrics",
    "oracle",
    "perturb",
    "phantom",
    "read_image",
    "read_studies",
    "reports",
    "score",
    "scorer",
    "search",
    "similarity",
    "stats",
    "studies",
    "training",
]


def __dir__() -> list[str]:
    return sorted(__all__)
