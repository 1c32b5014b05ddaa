"""Networks that read facts out of reports: CheXbert's labels, RadGraph's entities and relations,
RaTEScore's entities, and GREEN, which lists errors."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlscore.annotators.chexbert import CheXbert, CheXbertAnnotation
    from vlscore.annotators.green import GreenJudge
    from vlscore.annotators.green_answers import GreenAnswer, UnreadableAnswer, read_green_answer
    from vlscore.annotators.green_question import ReportPair
    from vlscore.annotators.radgraph import Entity, RadGraph, RadGraphAnnotation
    from vlscore.annotators.ratescore import RaTEEntity, RaTEReader

__all__ = [
    "CheXbert",
    "CheXbertAnnotation",
    "Entity",
    "GreenAnswer",
    "GreenJudge",
    "RaTEEntity",
    "RaTEReader",
    "RadGraph",
    "RadGraphAnnotation",
    "ReportPair",
    "UnreadableAnswer",
    "read_green_answer",
]

_MODULES = {
    "CheXbert": "chexbert",
    "CheXbertAnnotation": "chexbert",
    "Entity": "radgraph",
    "GreenAnswer": "green_answers",
    "GreenJudge": "green",
    "RaTEEntity": "ratescore",
    "RaTEReader": "ratescore",
    "RadGraph": "radgraph",
    "RadGraphAnnotation": "radgraph",
    "ReportPair": "green_question",
    "UnreadableAnswer": "green_answers",
    "read_green_answer": "green_answers",
}


def __getattr__(name: str) -> Any:
    # Where an annotator's files lie can be asked without loading transformers.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
