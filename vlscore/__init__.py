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
    # Rooms, so that `vlscore.similarity` is known after a plain `import vlscore`.
    from vlscore import display as display
    from vlscore import embedding as embedding
    from vlscore import encoders as encoders
    from vlscore import evaluation as evaluation
    from vlscore import findings as findings
    from vlscore import images as images
    from vlscore import index as index
    from vlscore import meta as meta
    from vlscore import metrics as metrics
    from vlscore import oracle as oracle
    from vlscore import perturb as perturb
    from vlscore import phantom as phantom
    from vlscore import reports as reports
    from vlscore import scorer as scorer
    from vlscore import search as search
    from vlscore import similarity as similarity
    from vlscore import stats as stats
    from vlscore import studies as studies
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


# A type checker sees the names above instead, so that a misspelt one is an error to it.
if not TYPE_CHECKING:

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
