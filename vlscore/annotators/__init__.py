"""Networks that read facts out of reports: CheXbert's labels, RadGraph's entities and relations,
RaTEScore's entities."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlscore.annotators.chexbert import CheXbert, CheXbertAnnotation
    from vlscore.annotators.radgraph import Entity, RadGraph, RadGraphAnnotation
    from vlscore.annotators.ratescore import RaTEEntity, RaTEReader

__all__ = [
    "CheXbert",
    "CheXbertAnnotation",
    "Entity",
    "RaTEEntity",
    "RaTEReader",
    "RadGraph",
    "RadGraphAnnotation",
]

_MODULES = {
    "CheXbert": "chexbert",
    "CheXbertAnnotation": "chexbert",
    "Entity": "radgraph",
    "RaTEEntity": "ratescore",
    "RaTEReader": "ratescore",
    "RadGraph": "radgraph",
    "RadGraphAnnotation": "radgraph",
}


def __getattr__(name: str) -> Any:
    # Where an annotator's files lie can be asked without loading transformers.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
