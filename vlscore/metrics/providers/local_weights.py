"""Where the weights of a metric's network lie on this machine, and which they are."""

import hashlib
import os
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vlscore._files import file_digest
from vlscore.errors import MissingDependency, WeightsNotFound
from vlscore.metrics.batch import Batch
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider

if TYPE_CHECKING:
    from vlscore.annotators.bert import Precision
    from vlscore.annotators.memory import Annotation, RememberingAnnotator

_Stamp = tuple[tuple[str, int, int], ...]


class LocalWeightsProvider(Provider):
    """Computes metrics by a network that we run, whose files lie on this machine."""

    library = "vlscore"

    @abstractmethod
    def files(self, metric: Metric) -> tuple[Path, ...]:
        """Weights and vocabulary, or folders; raises MissingDependency or WeightsNotFound."""

    def present_files(self, metric: Metric) -> tuple[Path, ...]:
        """As `files`; whatever is absent raises MissingDependency."""
        try:
            return self.files(metric)
        except WeightsNotFound as error:
            raise MissingDependency(str(error)) from None

    def missing(self, metric: Metric) -> str | None:
        try:
            self.present_files(metric)
        except MissingDependency as error:
            return str(error)
        return None

    def facts(self, metric: Metric) -> dict[str, Any]:
        return self.conventions(metric)

    def annotated(
        self, annotator: "RememberingAnnotator[Annotation]", metric: Metric, batch: Batch
    ) -> "list[Annotation]":
        """What an annotator reads in the candidates, then in the references.

        What lies in the cache is taken from there.
        """

        def files() -> dict[str, str]:
            weights, vocabulary = self.files(metric)
            return {
                "weights": content_digest(weights, beside=(vocabulary.name,)),
                "vocabulary": content_digest(vocabulary),
            }

        return annotator.annotate(
            [*batch.candidates, *(batch.references or ())],
            lambda network, reports: batch.annotations.annotated(network, files, reports),
        )


def weights_place(metric: Metric, variable: str, what: str, parameter: str = "weights") -> Path:
    """What the metric's parameter names, else what an environment variable names.

    Raises: MissingDependency, saying what to give, where neither is set.
    """
    named = metric.settings[parameter] or os.environ.get(variable)
    if not named:
        raise MissingDependency(
            f"it needs {what} on this machine: {metric.name}({parameter}=PATH), or set {variable}"
        )
    return Path(str(named)).expanduser()


def vocabulary_place(metric: Metric) -> Path | None:
    """The metric's `vocabulary`; None where it is to be found beside the weights."""
    named = metric.settings["vocabulary"]
    return None if named is None else Path(str(named)).expanduser()


def precision_of(metric: Metric) -> "Precision":
    """The metric's `precision`."""
    return cast("Precision", metric.settings["precision"])


def name_and_digest(
    place: Path, files: Sequence[Path] | None = None, *, beside: tuple[str, ...] = ()
) -> str:
    """ "name@digest", as `content_digest`, of which twelve digits are shown."""
    digest = content_digest(place, files, beside=beside)
    return f"{place.name.replace('|', '_')}@{digest[:12]}"


def content_digest(
    place: Path, files: Sequence[Path] | None = None, *, beside: tuple[str, ...] = ()
) -> str:
    """SHA-256 of a file, or of the files of a folder; read again only where one changed.

    Args:
        files: those of the folder that count; default: all of them.
        beside: names of files of a folder that do not belong to it.
    """
    if files is None:
        files = [place]
    if place.is_dir() and files == [place]:
        files = [f for f in sorted(place.rglob("*")) if f.is_file() and f.name not in beside]
    stamp = tuple((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    return _digest(stamp, str(place))


@lru_cache(maxsize=16)
def _digest(files: _Stamp, folder: str) -> str:
    if [path for path, _, _ in files] == [folder]:
        return file_digest(folder)
    lines = [f"{Path(path).relative_to(folder)} {file_digest(path)}" for path, _, _ in files]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
