"""What a provider is: a library that computes metrics.

What is made of a text once, for every metric that needs it.

An artefact is a name and a function from texts to one value each. A new one is a function and one
line. Embeddings, which need images as well, come from the embedder instead.

Where the weights of a metric's network lie on this machine, and which they are.

A metric of one's own from a function of two texts.
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
from vlscore.metrics.metric import Bounds, Metric

if TYPE_CHECKING:
    from vlscore.findings import ReportFindings
    from vlscore.metrics.judge.statements import ReportStatements
    from vlscore.metrics.networks.model_bert import Precision
    from vlscore.metrics.networks.remembered import Annotation, RememberingAnnotator


class Provider(ABC):
    """Computes metrics, mostly by a library that it wraps.

    A pair of reports gets the same number whatever its neighbours are; what a metric knows of a
    whole run's references comes to it in `Batch.fitted`. A provider keeps no state of a run.

    Attributes:
        library: the distribution whose version the signature states.
        module: what is imported of it; default: its name.
        extra: the extra of vlscore that brings it; None where vlscore itself does.
    """

    library: ClassVar[str]
    module: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None

    def __eq__(self, other: object) -> bool:
        # A metric that was sent to another process equals the one that stayed.
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def compute(self, metric: Metric, batch: Batch) -> Computed:
        """Values for every study of a batch.

        Raises: MissingDependency where the library, or data that it needs, is absent. What is
            wrong with one study alone is no exception: it stands in `Computed.failures`.
        """

    def is_fitted(self, metric: Metric) -> bool:
        """Whether the metric's numbers depend on statistics over all references of a run."""
        return False

    def fit(self, metric: Metric, references: Iterable[str], state: Any = None) -> Any:
        """The statistics over some references, added to those over earlier ones.

        Args: state: what an earlier call returned, or None; it may be changed in place.
        """
        raise NotImplementedError(f"{metric.name} is not fitted on references")

    def missing(self, metric: Metric) -> str | None:
        """What is absent on this machine and how to get it; None where the metric can run.

        Loads no library.
        """
        name = self.module or self.library.replace("-", "_")
        return None if _is_importable(name) else self._how_to_install()

    def conventions(self, metric: Metric) -> dict[str, str]:
        """What else the number depends on, besides the metric's parameters."""
        return {}

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        """Corpus values from statistics summed over candidates.

        Args: sums: (k, s), one row for each corpus or resample of it.
        Returns: name of each of `metric.corpus` -> (k,); nan where a value is not defined.
        """
        raise NotImplementedError(f"{metric.name} has no corpus value")

    def support(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        """How many times the references state what a corpus value is made of.

        Args: sums: as for `corpus`.
        Returns: name -> (k,), of those of `metric.corpus` that have a support; F1 has one, corpus
            BLEU has none.
        """
        return {}

    def version(self) -> str:
        """Version of the library; raises MissingDependency where it is absent."""
        try:
            return version(self.library)
        except PackageNotFoundError:
            raise MissingDependency(self._how_to_install()) from None

    def facts(self, metric: Metric) -> dict[str, Any]:
        """What the signature says of the metric beside its parameters."""
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
    """Return what computes a metric.

    Raises: InvalidSetting where a metric has no provider, or one that is no Provider.
    """
    if metric.provider is None:
        raise UnknownName(
            f"nothing computes the metric {metric.name}: give it a provider, as in "
            "Metric(..., provider=MyProvider()), or make it with metrics.text_metric"
        )
    if not isinstance(metric.provider, Provider):
        kind = type(metric.provider).__name__
        raise InvalidSetting(f"{metric.name}: its provider is a {kind}, not a Provider")
    return metric.provider


def one_column(values: Any) -> Computed:
    """The result of a metric with one number a candidate."""
    return Computed([np.asarray(values, dtype=np.float64)])


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


# Distinct texts whose artefacts are kept from batch to batch; references repeat across generators.
_REMEMBERED = 10_000
# Candidates and references of one chunk of an evaluation.
_TEXTS_OF_A_CHUNK = 2048


@dataclass(frozen=True)
class Artefact:
    """What is made of a text.

    Attributes:
        name: as metrics name it.
        make: n texts -> n values, in order; the value of a text does not depend on its neighbours.
    """

    name: str
    make: Callable[[Sequence[str]], Sequence[Any]]


ARTEFACTS: Registry[Artefact] = Registry("artefact", group="vlscore.artefacts")


class Mention(NamedTuple):
    """One mention of a finding: its CheXpert label, or its own name where it has none.

    `denied` is false for what is stated or doubted; `attributes` are side, place, severity, ...
    """

    category: str
    denied: bool
    attributes: tuple[str, ...]


@lru_cache(maxsize=_TEXTS_OF_A_CHUNK)
def _findings(text: str) -> "ReportFindings":
    """What a report says, read once for all artefacts that are made of it."""
    from vlscore.findings import extract

    return extract(text)


def _chexpert_labels(texts: Sequence[str]) -> list[dict[str, int | None]]:
    from vlscore.findings import chexpert_labels

    return [chexpert_labels(_findings(text)) for text in texts]


def _finding_mentions(texts: Sequence[str]) -> list[tuple[Mention, ...]]:
    from vlscore.findings import Polarity, Status

    return [
        tuple(
            Mention(
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
    """Makes each artefact of each distinct text once, while it is among the latest used.

    Attributes:
        made: how many artefacts were made so far.
    """

    def __init__(self) -> None:
        self._recent: Recent[tuple[str, str], Any] = Recent(_REMEMBERED)
        self.made = 0

    def of(self, name: str, texts: Sequence[str]) -> list[Any]:
        """The artefact of each text, in order."""
        found = self._recent.known(dict.fromkeys((name, text) for text in texts))
        new = [text for text in dict.fromkeys(texts) if (name, text) not in found]
        if new:
            values = ARTEFACTS.find(name).make(new)
            made = {(name, text): value for text, value in zip(new, values, strict=True)}
            self._recent.add(made)
            self.made += len(made)
            found |= made
        return [found[name, text] for text in texts]


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


TextFunction = Callable[[str, str], float]


def text_metric(
    name: str,
    description: str,
    *,
    bounds: Bounds = (None, None),
    higher_is_better: bool = True,
    version: str = "1",
    citation: str = "",
) -> Callable[[TextFunction], Metric]:
    """Make a metric of a function (candidate, reference) -> number.

    Args:
        name: what tables and signatures call it.
        description: one sentence.
        bounds: smallest and largest possible value.
        higher_is_better: direction.
        version: to be changed whenever the function gives other numbers; signatures show it.
        citation: where it was published.

    Returns: what turns the function into the metric. A candidate for which the function raises has
        no value, and the others keep theirs.

    >>> @text_metric("length-ratio", "words of the candidate for each of the reference")
    ... def length_ratio(candidate, reference):
    ...     return len(candidate.split()) / max(len(reference.split()), 1)
    >>> from vlscore.metrics import compute
    >>> compute([length_ratio], ["clear lungs"], ["The lungs are clear."])["length-ratio"].tolist()
    [0.5]
    """

    def make(function: TextFunction) -> Metric:
        return Metric(
            name=name,
            description=description,
            higher_is_better=higher_is_better,
            bounds=bounds,
            uses_image=False,
            uses_reference=True,
            citation=citation,
            provider=_FunctionProvider(function, version),
        )

    return make


class _FunctionProvider(Provider):
    library = "own"

    def __init__(self, function: TextFunction, version: str) -> None:
        self._function, self._version = function, version

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        values = np.full(len(batch), np.nan)
        failures: dict[int, VLScoreError] = {}
        for row, (candidate, reference) in enumerate(batch.pairs()):
            try:
                values[row] = float(self._function(candidate, reference))
            except Exception as error:  # a user's function may raise whatever it likes
                failures[row] = VLScoreError(f"{metric.name}: {type(error).__name__}: {error}")
        return Computed([values], failures=failures)

    def missing(self, metric: Metric) -> str | None:
        return None

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {"own": self._version}
