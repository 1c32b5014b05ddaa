"""Providers: the libraries and networks that compute metrics.

- `Provider` is the base class: it computes a metric, and says what is missing on this machine.
- `LocalWeightsProvider` is the base of metrics whose network runs from files on this machine; it
  finds these files and computes their digest for the signature.
- `Artefact` is a name and a function from texts to one value each, for instance the findings of a
  report. `ArtefactStore` makes it once for every metric that needs it. A new artefact is a function
  and one line in this file. Embeddings, which need images too, come from the embedder instead.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from vlscore.core import Recent, Registry, file_digest
from vlscore.errors import (
    InvalidSetting,
    MissingDependency,
    UnknownName,
    VLScoreError,
    WeightsNotFound,
)
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.metric import Metric
from vlscore.metrics.networks.model_files import Annotation, RememberingAnnotator, Stamp

if TYPE_CHECKING:
    from vlscore.findings import ReportFindings
    from vlscore.metrics.judge.statements import ReportStatements
    from vlscore.metrics.networks.model_bert import Precision


class Provider(ABC):
    """Base class of what computes metrics, mostly by a library that it wraps.

    The number of a pair of reports must not depend on other pairs of the batch; statistics over
    the references of a whole run come in `Batch.fitted`. A provider holds no state of a run.

    Attributes:
        library: the distribution whose version is part of the signature.
        module: the module to import; default: the distribution's name.
        extra: the extra of vlscore that installs it; None if vlscore itself does.
    """

    library: ClassVar[str]
    module: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None

    def __eq__(self, other: object) -> bool:
        # A metric must equal its copy in another process.
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def compute(self, metric: Metric, batch: Batch) -> Computed:
        """Compute the values for every study of a batch.

        Raises: MissingDependency if the library, or data that it needs, is absent. An error of a
            single study is not raised: it belongs into `Computed.failures`.
        """

    def is_fitted(self, metric: Metric) -> bool:
        """Return whether the numbers depend on statistics over all references of a run."""
        return False

    def fit(self, metric: Metric, references: Iterable[str], state: Any = None) -> Any:
        """Add statistics over some references to those over earlier ones, and return them.

        Args: state: the result of an earlier call, or None; it may be changed in place.
        """
        raise NotImplementedError(f"{metric.name} is not fitted on references")

    def missing(self, metric: Metric) -> str | None:
        """Return what is absent on this machine and how to get it; None if the metric can run.

        This must not import the library.
        """
        name = self.module or self.library.replace("-", "_")
        return None if _is_importable(name) else self._how_to_install()

    def conventions(self, metric: Metric) -> dict[str, str]:
        """Return what the number depends on besides the metric's parameters."""
        return {}

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        """Compute corpus values from statistics summed over candidates.

        Args: sums: (k, s), one row for each corpus or resample of it.
        Returns: name of each of `metric.corpus` -> (k,); nan where a value is not defined.
        """
        raise NotImplementedError(f"{metric.name} has no corpus value")

    def support(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        """Return the support of corpus values: the number of occurrences in the references.

        Args: sums: as for `corpus`.
        Returns: name -> (k,), of those of `metric.corpus` that have a support; F1 has one, corpus
            BLEU has none.
        """
        return {}

    def version(self) -> str:
        """Return the version of the library; raise MissingDependency if it is absent."""
        try:
            return version(self.library)
        except PackageNotFoundError:
            raise MissingDependency(self._how_to_install()) from None

    def facts(self, metric: Metric) -> dict[str, Any]:
        """Return what the signature holds about the metric besides its parameters."""
        return {**self.conventions(metric), self.library: self.version()}

    def _module(self, name: str) -> Any:
        try:
            return import_module(name)
        except ImportError:
            raise MissingDependency(self._how_to_install()) from None

    def _how_to_install(self) -> str:
        package = f"vlscore[{self.extra}]" if self.extra else self.library
        return f"{self.library} is not installed: pip install '{package}'"


def provider_of(metric: Metric) -> Provider:
    """Return the provider of a metric.

    Raises: UnknownName if a metric has no provider; InvalidSetting if it is not a Provider.
    """
    if metric.provider is None:
        raise UnknownName(
            f"the metric {metric.name} has no provider that computes it: write "
            "Metric(..., provider=MyProvider()), or make it with metrics.text_metric"
        )
    if not isinstance(metric.provider, Provider):
        kind = type(metric.provider).__name__
        raise InvalidSetting(f"{metric.name}: its provider must be a Provider, not a {kind}")
    return metric.provider


def why_missing(metric: Metric) -> str | None:
    """Return what a metric lacks on this machine, also if its provider raises that as an error."""
    try:
        return provider_of(metric).missing(metric)
    except VLScoreError as error:
        return str(error)


def one_column(values: Any) -> Computed:
    """Return the result of a metric with one number per candidate."""
    return Computed([np.asarray(values, dtype=np.float64)])


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


# Distinct texts whose artefacts stay in memory: references repeat across generators.
_REMEMBERED = 10_000
# Candidates and references of one chunk of an evaluation.
_TEXTS_OF_A_CHUNK = 2048


@dataclass(frozen=True)
class Artefact:
    """Value that is computed from a text once, for all metrics that need it.

    Attributes:
        name: name under which metrics ask for it.
        make: n texts -> n values, in order; the value of a text does not depend on other texts.
    """

    name: str
    make: Callable[[Sequence[str]], Sequence[Any]]


ARTEFACTS: Registry[Artefact] = Registry("artefact", group="vlscore.artefacts")


class LabelMention(NamedTuple):
    """One mention of a finding: its CheXpert label, or its own name if it has none.

    `denied` is False for a finding that is affirmed or uncertain; `attributes` are side, place,
    severity and others.
    """

    category: str
    denied: bool
    attributes: tuple[str, ...]


@lru_cache(maxsize=_TEXTS_OF_A_CHUNK)
def _findings(text: str) -> "ReportFindings":
    """Extract the findings of a report, once for all artefacts that are made from them."""
    from vlscore.findings import extract

    return extract(text)


def _chexpert_labels(texts: Sequence[str]) -> list[dict[str, int | None]]:
    from vlscore.findings import chexpert_labels

    return [chexpert_labels(_findings(text)) for text in texts]


def _finding_mentions(texts: Sequence[str]) -> list[tuple[LabelMention, ...]]:
    from vlscore.findings import Polarity, Status

    return [
        tuple(
            LabelMention(
                finding.chexpert or finding.observation,
                finding.polarity is Polarity.NEGATIVE,
                tuple(dict.fromkeys(attribute.value for attribute in finding.attributes)),
            )
            for finding in _findings(text)
            if finding.status is Status.CURRENT
        )
        for text in texts
    ]


def _judge_statements(texts: Sequence[str]) -> "list[ReportStatements]":
    from vlscore.metrics.judge.judge_tables import load_tables
    from vlscore.metrics.judge.statements import statements_of

    tables = load_tables()
    return [statements_of(text, tables) for text in texts]


ARTEFACTS.register(Artefact("chexpert-labels", _chexpert_labels))
ARTEFACTS.register(Artefact("finding-mentions", _finding_mentions))
ARTEFACTS.register(Artefact("judge-statements", _judge_statements))


class ArtefactStore:
    """Cache that makes each artefact of each distinct text once, and drops the least recently used.

    Attributes:
        made: number of artefacts made so far.
    """

    def __init__(self) -> None:
        self._recent: Recent[tuple[str, str], Any] = Recent(_REMEMBERED)
        self.made = 0

    def of(self, name: str, texts: Sequence[str]) -> list[Any]:
        """Return the artefact of each text, in order."""

        def make(new: list[tuple[str, str]]) -> Sequence[Any]:
            values = ARTEFACTS.find(name).make([text for _, text in new])
            self.made += len(values)
            return values

        return self._recent.values_of([(name, text) for text in texts], make)


class LocalWeightsProvider(Provider):
    """Provider of metrics that run a network from files on this machine."""

    library = "vlscore"

    @abstractmethod
    def files(self, metric: Metric) -> tuple[Path, ...]:
        """Return weights and vocabulary, or folders; raise MissingDependency or WeightsNotFound."""

    def present_files(self, metric: Metric) -> tuple[Path, ...]:
        """Return the same as `files`, but raise MissingDependency for any absent file."""
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
        self, annotator: RememberingAnnotator[Annotation], metric: Metric, batch: Batch
    ) -> list[Annotation]:
        """Annotate the candidates, then the references.

        Annotations that the cache holds are taken from there.
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
    """Return the path in the metric's parameter, else in the environment variable.

    Raises: MissingDependency if neither is set; the message names both.
    """
    named = metric.settings[parameter] or os.environ.get(variable)
    if not named:
        raise MissingDependency(
            f"it needs {what} on this machine: write {metric.name}({parameter}=PATH), or set "
            f"{variable}"
        )
    return Path(str(named)).expanduser()


def vocabulary_place(metric: Metric) -> Path | None:
    """Return the metric's `vocabulary`; None if it lies in the folder of the weights."""
    named = metric.settings["vocabulary"]
    return None if named is None else Path(str(named)).expanduser()


def precision_of(metric: Metric) -> "Precision":
    """Return the metric's `precision`."""
    return cast("Precision", metric.settings["precision"])


def name_and_digest(
    place: Path, files: Sequence[Path] | None = None, *, beside: tuple[str, ...] = ()
) -> str:
    """Return "name@digest", with the first twelve digits of `content_digest`."""
    digest = content_digest(place, files, beside=beside)
    return f"{place.name.replace('|', '_')}@{digest[:12]}"


def content_digest(
    place: Path, files: Sequence[Path] | None = None, *, beside: tuple[str, ...] = ()
) -> str:
    """Return the SHA-256 of a file, or of the files of a folder; read again only after a change.

    Args:
        files: the files of the folder that count; default: all of them.
        beside: names of files in the folder that do not belong to the weights.
    """
    if files is None:
        files = [place]
    if place.is_dir() and files == [place]:
        files = [f for f in sorted(place.rglob("*")) if f.is_file() and f.name not in beside]
    stamp = tuple((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    return _digest(stamp, str(place))


@lru_cache(maxsize=16)
def _digest(files: Stamp, folder: str) -> str:
    if [path for path, _, _ in files] == [folder]:
        return file_digest(folder)
    lines = [f"{Path(path).relative_to(folder)} {file_digest(path)}" for path, _, _ in files]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
