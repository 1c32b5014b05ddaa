"""Annotators in memory: loaded once, with a cache of the latest reports that they read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from vlscore.core import Recent
from vlscore.metrics.networks.chexbert_network import CheXbert, CheXbertAnnotation
from vlscore.metrics.networks.green_model import GreenJudge
from vlscore.metrics.networks.model_bert import Precision
from vlscore.metrics.networks.model_files import QUESTION, Stamp, files_of_model, stamps_of
from vlscore.metrics.networks.radgraph_network import RadGraph, RadGraphAnnotation
from vlscore.metrics.networks.ratescore_network import RaTEEntity, RaTEReader

# Distinct reports in the cache between batches: references repeat across generators.
_REMEMBERED = 10_000

Annotation = TypeVar("Annotation")


class _Reads(Protocol):
    def annotate(self, reports: Sequence[str]) -> Sequence[Any]: ...


# Function from an annotator and distinct reports to the annotation of each report.
_Way = Callable[[Any, Sequence[str]], Mapping[str, Any]]


def _directly(annotator: _Reads, reports: Sequence[str]) -> Mapping[str, Any]:
    return dict(zip(reports, annotator.annotate(reports), strict=True))


class RememberingAnnotator(Generic[Annotation]):
    """Annotator that caches the annotations of the reports used most recently."""

    def __init__(self, annotator: _Reads) -> None:
        self._annotator = annotator
        self._known: Recent[str, Annotation] = Recent(_REMEMBERED)
        self._lock = Lock()

    def annotate(self, reports: Sequence[str], way: _Way = _directly) -> list[Annotation]:
        """Return the annotation of each report, in order.

        Args: way: function that annotates the distinct reports that are not in the cache.
        """

        def read(new: list[str]) -> Iterable[Annotation]:
            return map(way(self._annotator, new).__getitem__, new)

        with self._lock:
            return self._known.values_of(reports, read)


def remembered_chexbert(
    weights: Path, vocabulary: Path, precision: Precision = "fp32"
) -> RememberingAnnotator[CheXbertAnnotation]:
    """Return CheXbert from these files; it is loaded again only if one has changed."""
    return _chexbert(weights, vocabulary, stamps_of(weights, vocabulary), precision)


def remembered_radgraph(
    weights: Path, vocabulary: Path, precision: Precision = "fp32"
) -> RememberingAnnotator[RadGraphAnnotation]:
    """Return RadGraph from these files; it is loaded again only if one has changed."""
    return _radgraph(weights, vocabulary, stamps_of(weights, vocabulary), precision)


def remembered_ratescore(
    ner: Path, synonyms: Path
) -> tuple[RaTEReader, RememberingAnnotator[tuple[RaTEEntity, ...]]]:
    """Return RaTEScore's networks, reloaded only after a change, and their cache of entities."""
    return _ratescore(ner, synonyms, stamps_of(*files_of_model(ner), *files_of_model(synonyms)))


def remembered_green(model: Path) -> GreenJudge:
    """Return GREEN's language model; it is loaded again only if a file has changed."""
    return _green(model, stamps_of(*files_of_model(model), model / QUESTION))


@lru_cache(maxsize=1)
def _chexbert(
    weights: Path, vocabulary: Path, stamp: Stamp, precision: Precision
) -> RememberingAnnotator[CheXbertAnnotation]:
    return RememberingAnnotator(
        CheXbert(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )


@lru_cache(maxsize=1)
def _radgraph(
    weights: Path, vocabulary: Path, stamp: Stamp, precision: Precision
) -> RememberingAnnotator[RadGraphAnnotation]:
    return RememberingAnnotator(
        RadGraph(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )


@lru_cache(maxsize=1)
def _ratescore(
    ner: Path, synonyms: Path, stamp: Stamp
) -> tuple[RaTEReader, RememberingAnnotator[tuple[RaTEEntity, ...]]]:
    reader = RaTEReader(ner, synonyms, device=device_of_annotators())
    return reader, RememberingAnnotator(reader)


@lru_cache(maxsize=1)
def _green(model: Path, stamp: Stamp) -> GreenJudge:
    return GreenJudge(model, device=device_of_annotators())


def device_of_annotators() -> str:
    """Return the device on which annotators run: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
