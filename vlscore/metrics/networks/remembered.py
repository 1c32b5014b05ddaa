"""Annotators as metrics use them: loaded once, each report read once while it is remembered."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from vlscore.core import Recent
from vlscore.metrics.networks.chexbert_network import CheXbert, CheXbertAnnotation
from vlscore.metrics.networks.green_model import QUESTION, GreenJudge
from vlscore.metrics.networks.model_bert import Precision
from vlscore.metrics.networks.model_files import files_of_model
from vlscore.metrics.networks.radgraph_network import RadGraph, RadGraphAnnotation
from vlscore.metrics.networks.ratescore_network import RaTEEntity, RaTEReader

# Distinct reports kept from batch to batch; references repeat across generators.
_REMEMBERED = 10_000

Annotation = TypeVar("Annotation")
_Stamp = tuple[tuple[str, int, int], ...]


class _Reads(Protocol):
    def annotate(self, reports: Sequence[str]) -> Sequence[Any]: ...


# For each distinct report what an annotator reads in it.
_Way = Callable[[Any, Sequence[str]], Mapping[str, Any]]


def _directly(annotator: _Reads, reports: Sequence[str]) -> Mapping[str, Any]:
    return dict(zip(reports, annotator.annotate(reports), strict=True))


class RememberingAnnotator(Generic[Annotation]):
    """Annotates each distinct report once, while it is among the latest used."""

    def __init__(self, annotator: _Reads) -> None:
        self._annotator = annotator
        self._known: Recent[str, Annotation] = Recent(_REMEMBERED)
        self._lock = Lock()

    def annotate(self, reports: Sequence[str], way: _Way = _directly) -> list[Annotation]:
        """What the annotator reads in each report, in order.

        Args: way: how annotations come of the annotator and distinct reports that are not known.
        """

        def read(new: list[str]) -> Iterable[Annotation]:
            return map(way(self._annotator, new).__getitem__, new)

        with self._lock:
            return self._known.values_of(reports, read)


def remembered_chexbert(
    weights: Path, vocabulary: Path, precision: Precision = "fp32"
) -> RememberingAnnotator[CheXbertAnnotation]:
    """CheXbert from these files, loaded again only where one has changed."""
    return _chexbert(weights, vocabulary, stamps(weights, vocabulary), precision)


def remembered_radgraph(
    weights: Path, vocabulary: Path, precision: Precision = "fp32"
) -> RememberingAnnotator[RadGraphAnnotation]:
    """RadGraph from these files, loaded again only where one has changed."""
    return _radgraph(weights, vocabulary, stamps(weights, vocabulary), precision)


def remembered_ratescore(
    ner: Path, synonyms: Path
) -> tuple[RaTEReader, RememberingAnnotator[tuple[RaTEEntity, ...]]]:
    """RaTEScore's networks, loaded again only where a file changed, and its entities of reports."""
    return _ratescore(ner, synonyms, stamps(*files_of_model(ner), *files_of_model(synonyms)))


def remembered_green(model: Path) -> GreenJudge:
    """GREEN's language model, loaded again only where a file has changed."""
    return _green(model, stamps(*files_of_model(model), model / QUESTION))


def stamps(*places: Path) -> _Stamp:
    """What shows that a file, or one of a folder, has changed: path, time and size."""
    files = [
        file
        for place in places
        for file in (sorted(place.rglob("*")) if place.is_dir() else [place])
        if file.is_file()
    ]
    return tuple((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in files)


@lru_cache(maxsize=1)
def _chexbert(
    weights: Path, vocabulary: Path, stamp: _Stamp, precision: Precision
) -> RememberingAnnotator[CheXbertAnnotation]:
    return RememberingAnnotator(
        CheXbert(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )


@lru_cache(maxsize=1)
def _radgraph(
    weights: Path, vocabulary: Path, stamp: _Stamp, precision: Precision
) -> RememberingAnnotator[RadGraphAnnotation]:
    return RememberingAnnotator(
        RadGraph(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )


@lru_cache(maxsize=1)
def _ratescore(
    ner: Path, synonyms: Path, stamp: _Stamp
) -> tuple[RaTEReader, RememberingAnnotator[tuple[RaTEEntity, ...]]]:
    reader = RaTEReader(ner, synonyms, device=device_of_annotators())
    return reader, RememberingAnnotator(reader)


@lru_cache(maxsize=1)
def _green(model: Path, stamp: _Stamp) -> GreenJudge:
    return GreenJudge(model, device=device_of_annotators())


def device_of_annotators() -> str:
    """Where the annotators of metrics run: on a GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
