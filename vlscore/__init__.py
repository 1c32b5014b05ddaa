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
    from vlscore._signature import Signature
    from vlscore.encoders import encoder_cards, load_encoder
    from vlscore.evaluation import evaluate
    from vlscore.images import ImagePolicy, read_image
    from vlscore.reports import TextPolicy
    from vlscore.scorer import Score, Scorer, ScoreTable, score
    from vlscore.studies import Study, read_studies

_HOMES = {
    "ImagePolicy": "vlscore.images",
    "Score": "vlscore.scorer",
    "ScoreTable": "vlscore.scorer",
    "Scorer": "vlscore.scorer",
    "Signature": "vlscore._signature",
    "Study": "vlscore.studies",
    "TextPolicy": "vlscore.reports",
    "encoder_cards": "vlscore.encoders",
    "evaluate": "vlscore.evaluation",
    "load_encoder": "vlscore.encoders",
    "read_image": "vlscore.images",
    "read_studies": "vlscore.studies",
    "score": "vlscore.scorer",
}

__all__ = [
    "ImagePolicy",
    "Score",
    "ScoreTable",
    "Scorer",
    "Signature",
    "Study",
    "TextPolicy",
    "__version__",
    "encoder_cards",
    "evaluate",
    "load_encoder",
    "read_image",
    "read_studies",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    # Rooms are reachable as attributes: `vlscore.similarity` after a plain `import vlscore`.
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module 'vlscore' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(__all__)
