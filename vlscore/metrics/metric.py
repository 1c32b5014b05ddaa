"""Base class of metrics: what a metric is, and how its numbers are computed.

A metric is one class. Class attributes are facts about it; fields are its parameters, made by
`parameter`; `compute` returns its numbers. Subclasses are frozen dataclasses without a decorator:

>>> class LengthRatio(Metric):
...     name = "length-ratio"
...     description = "words of the candidate for each of the reference"
...     bounds = (0.0, None)
...     power: float = parameter(1.0, "exponent of the ratio", above=0.0)
...
...     def value(self, candidate, reference):
...         return (len(candidate.split()) / max(len(reference.split()), 1)) ** self.power
>>> str(LengthRatio(power=2)), LengthRatio().value("clear lungs", "The lungs are clear.")
('length-ratio(power=2)', 0.5)
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from operator import attrgetter
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

import numpy as np

from vlscore.core import written
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Bounds, Computed, Values

if TYPE_CHECKING:
    from typing import Self

Setting = bool | int | float | str | None

#: How a text is read by a network with a tokenizer of its own; see `Metric.normalisation`.
READ_BY_MODEL = {"case": "model", "masks": "as-text"}

# Libraries of metrics that need no other one.
_OURS = ("own", "vlscore")
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Output:
    """One number that a metric computes for a candidate, or for a corpus.

    Attributes:
        name: as in "precision"; the column is then "findings-f1.precision".
        description: one sentence.
        higher_is_better: direction; None: that of the metric, see `Metric.direction`.
        bounds: smallest and largest possible value, None if there is no bound.
    """

    name: str
    description: str
    higher_is_better: bool | None = None
    bounds: Bounds = (0.0, 1.0)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a metric, as `parameter` describes it; `kind` is the type of its values."""

    name: str
    default: Setting
    description: str
    choices: tuple[Any, ...]
    kind: type
    above: float | None

    def parse(self, value: Any) -> Any:
        """Convert a value to the parameter's type; raise InvalidSetting if that fails."""
        if value is None and self.default is None:
            return None
        try:
            if self.kind is bool:
                parsed = {"true": True, "false": False}[str(value).lower()]
            elif isinstance(value, bool):
                # float(True) would silently be 1.0.
                raise ValueError(value)
            else:
                parsed = self.kind(value)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidSetting(
                f"{self.name} must be {_KINDS.get(self.kind, self.kind.__name__)}, not {value!r}"
            ) from None
        if self.choices and parsed not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise InvalidSetting(f"{self.name} must be one of {known}, not {value!r}")
        if self.kind is float and not math.isfinite(parsed):
            raise InvalidSetting(f"{self.name} must be a finite number, not {value!r}")
        if self.above is not None and not parsed > self.above:
            raise InvalidSetting(f"{self.name} must be greater than {self.above:g}, not {value!r}")
        return parsed


def parameter(
    default: Any,
    description: str,
    *,
    choices: tuple[Any, ...] = (),
    kind: type | None = None,
    above: float | None = None,
) -> Any:
    """Return a field of a metric.

    Args:
        default: the value if the user sets none.
        description: what it changes.
        choices: the values it can take; empty if any value of the type is allowed.
        kind: type of the values; default: the type of `default`.
        above: values must be finite and greater than this; None if there is no limit.
    """
    facts = {"description": description, "choices": choices, "above": above}
    metadata = {**facts, "kind": kind or type(default)}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True)
class Metric:
    """One number, or several, for a candidate report.

    Metrics are values: equal ones print alike, and a metric can be the key of a dict. Calling one
    with parameters returns the same metric with these: `find_metric("bleu-4")(smoothing="exp")`.

    Attributes:
        name: name in the registry, and of the column with its first number.
        title: name as papers print it, as in "BLEU-4"; empty: the name in the registry.
        description: one sentence.
        citation: where it was published.
        higher_is_better: direction of the first number.
        has_direction: whether one direction is better at all; if not, no system is the best.
        bounds: its smallest and largest possible value, None if there is no bound.
        further: numbers for a candidate besides the first.
        uses_image, uses_reference: what the value depends on besides the candidate.
        uses_embeddings: whether it looks at an encoder's embeddings, not at texts.
        uses_findings: whether it reads findings by the rules of vlscore.
        inputs: other metrics whose values it is computed from, by name or as objects.
        corpus: values of a whole corpus that are not a mean over candidates, such as corpus BLEU.
        statistics: how many sums over candidates the corpus values are computed from; 0 for none.
        primary: the one number that represents the metric in a table of systems: the name of a
            corpus value, as "corpus" for BLEU; empty: the mean of the first number.
        reference_scores_best: whether a candidate equal to its reference scores better than any
            about something else; the contract then tests it.
        cost: "free", "model" if a neural network runs, "paid" if a service charges money.
            Metrics that are not free run only if the user names them.
        library: distribution that computes it and whose version the signature has; "vlscore", or
            "own" for a user's metric, whose signature has `version`.
        module: the module of the library to import; default: the distribution's name.
        extra: the extra of vlscore that installs the library; None if vlscore itself does.
        normalisation: what happens to a text before it is compared, for the signature: "case"
            (kept, lower, ignored, or by the model's tokenizer) and "masks" of de-identification
            (XXXX, ___): "as-text" if they are split and compared like other text, "one-word" if
            both are read as one unknown word. Names that `facts` holds are left out.
        version: of a user's own metric: change it whenever other numbers are returned.
        parameters: descriptions of the parameters, made from the fields.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    description: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True
    has_direction: ClassVar[bool] = True
    bounds: ClassVar[Bounds] = (None, None)
    further: ClassVar[tuple[Output, ...]] = ()
    uses_image: ClassVar[bool] = False
    uses_reference: ClassVar[bool] = True
    uses_embeddings: ClassVar[bool] = False
    uses_findings: ClassVar[bool] = False
    inputs: ClassVar[Sequence["str | Metric"]] = ()
    corpus: ClassVar[tuple[Output, ...]] = ()
    statistics: ClassVar[int] = 0
    primary: ClassVar[str] = ""
    reference_scores_best: ClassVar[bool] = False
    cost: ClassVar[Literal["free", "model", "paid"]] = "free"
    library: ClassVar[str] = "own"
    module: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None
    normalisation: ClassVar[Mapping[str, str]] = {"case": "kept", "masks": "as-text"}
    version: ClassVar[str] = "1"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Make the subclass a frozen dataclass.

        Raises: InvalidSetting for a name that could not be found again, a text for a tuple, or a
            primary number that there is not.
        """
        super().__init_subclass__(**more)
        made: Any = dataclass(frozen=True, repr=False)(cls)
        fields: tuple[Any, ...] = dataclasses.fields(made)
        cls.parameters = tuple(Parameter(f.name, f.default, **f.metadata) for f in fields)
        for name in ("further", "corpus", "inputs"):
            if isinstance(value := getattr(cls, name), str):
                raise InvalidSetting(
                    f"{cls.name}: {name} must be a tuple, not a text: write ({value!r},)"
                )
        if cls.primary and cls.primary not in (numbers := [each.name for each in cls.corpus]):
            known = f"it has {', '.join(numbers)}" if numbers else "it has none"
            raise InvalidSetting(
                f"{cls.name}: primary is the name of a corpus value, not {cls.primary!r}; {known}"
            )
        if set(cls.name) & set("|(),: \n"):
            raise InvalidSetting(
                f"a metric cannot be called {cls.name!r}: its name must not contain blanks, "
                "commas, colons, bars or parentheses"
            )

    def __post_init__(self) -> None:
        for each in self.parameters:
            object.__setattr__(self, each.name, each.parse(getattr(self, each.name)))

    def compute(self, batch: Batch) -> "Computed | Values | Sequence[Values]":
        """Compute the numbers of every study of a batch.

        Returns: (n,) array; or one for each output; or a Computed, with sums or failures. The
            number of a pair must not depend on other pairs of the batch.
        Raises: MissingDependency if the library, or data that it needs, is absent. An error of a
            single study is not raised: it belongs into `Computed.failures`.
        """
        if type(self).value is Metric.value:
            raise InvalidSetting(f"{self.name} needs a method `value` or `compute`")
        values = np.full(len(batch), np.nan)
        failures: dict[int, VLScoreError] = {}
        pairs = batch.pairs() if self.uses_reference else [(g, "") for g in batch.candidates]
        for row, (candidate, reference) in enumerate(pairs):
            try:
                values[row] = float(self.value(candidate, reference))
            except Exception as error:  # a user's function may raise whatever it likes
                failures[row] = VLScoreError(f"{self.name}: {type(error).__name__}: {error}")
        return Computed([values], failures=failures)

    def value(self, candidate: str, reference: str) -> float:
        """Return the number of one pair of reports, for a metric that has no `compute`.

        If it raises for a candidate, this candidate has no value; others are not affected.
        """
        raise NotImplementedError

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        """Compute corpus values from statistics summed over candidates.

        Args: sums: (k, s), one row for each corpus or resample of it.
        Returns: name of each of `corpus` -> (k,); nan where a value is not defined.
        """
        raise NotImplementedError(f"{self.name} has no corpus value")

    def support(self, sums: Values) -> Mapping[str, Values]:
        """Return the support of corpus values: the number of occurrences in the references.

        Args: sums: as for `corpus_values`.
        Returns: name -> (k,), of those of `corpus` that have a support; F1 has one, BLEU has none.
        """
        return {}

    def counted_labels(self) -> tuple[str, ...]:
        """Return the m labels whose true positives, false positives and misses the sums are.

        Empty where the sums are something else, or do not count every label of every pair.
        """
        return ()

    @property
    def is_fitted(self) -> bool:
        """Return whether the numbers depend on statistics over all references of a run."""
        return False

    def fit(self, references: Iterable[str], state: Any = None) -> Any:
        """Add statistics over some references to those over earlier ones, and return them.

        Args: state: the result of an earlier call, or None; it may be changed in place.
        """
        raise NotImplementedError(f"{self.name} is not fitted on references")

    def missing(self) -> str | None:
        """Return what is absent on this machine and how to get it; None if the metric can run.

        This must not import the library.
        """
        if self.library in _OURS:
            return None
        with contextlib.suppress(ImportError, ValueError):
            if find_spec(self.module or self.library.replace("-", "_")) is not None:
                return None
        return self._how_to_install()

    def is_blind_to(self, text: str) -> bool:
        """Return whether a text has words and the metric reads none, as in another script."""
        return False

    def facts(self) -> dict[str, Any]:
        """Return what the signature holds besides the parameters.

        Raises: MissingDependency if the library is absent.
        """
        if self.library in _OURS:
            return {"own": self.version} if self.library == "own" else {}
        try:
            return {self.library: version(self.library)}
        except PackageNotFoundError:
            raise MissingDependency(self._how_to_install()) from None

    @property
    def settings(self) -> dict[str, Setting]:
        """Return the value of every parameter."""
        return {each.name: getattr(self, each.name) for each in self.parameters}

    @property
    def chosen(self) -> dict[str, Setting]:
        """Return the values that differ from the defaults."""
        defaults = {each.name: each.default for each in self.parameters}
        return {name: value for name, value in self.settings.items() if value != defaults[name]}

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the description of every number for a candidate, the main one first."""
        first = Output(self.name, self.description, self.higher_is_better, self.bounds)
        return (first, *self.further)

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - metrics are small values, and asked often
    def columns(self) -> tuple[str, ...]:
        """Return the columns' names, one for each output: "bleu-4", "findings-f1.precision"."""
        name = str(self)
        return (name, *(f"{name}.{output.name}" for output in self.further))

    def direction(self, output: Output) -> bool:
        """Return whether higher is better for one of its numbers."""
        own = output.higher_is_better
        return self.higher_is_better if own is None else own

    @property
    def sign(self) -> int:
        """Return 1 if higher is better, else -1."""
        return 1 if self.higher_is_better else -1

    def printed(self, number: str = "", *, of_corpus: bool = False) -> str:
        """Return the name of one of its numbers as papers print it.

        Args:
            number: name of an output; empty: the first number.
            of_corpus: the number is a value of the whole corpus.

        Parameters that are paths are left out. The primary number has the metric's name alone,
        unless the metric has several corpus values: "BLEU-4", "CheXbert F1 (micro-13)". Other
        numbers say what they are: "BLEU-4 (mean)", "CheXbert F1 precision".
        """
        paths = [p.name for p in self.parameters if p.kind is str and p.default is None]
        chosen = [(name, value) for name, value in self.chosen.items() if name not in paths]
        settings = ", ".join(f"{name}={written(value)}" for name, value in chosen)
        shown = (self.title or self.name) + (f" ({settings})" if settings else "")
        if of_corpus:
            alone = number == self.primary and len(self.corpus) == 1
            return shown if alone else f"{shown} ({number})"
        if number:
            return f"{shown} {number}"
        return f"{shown} (mean)" if self.primary else shown

    def __call__(self, **values: Any) -> "Self":
        """Return the metric with other parameters; raise InvalidSetting for unknown ones."""
        known = [each.name for each in self.parameters]
        for name in values:
            if name not in known:
                offered = ", ".join(known) or "none"
                raise InvalidSetting(f"{self.name} has no parameter {name!r}; it has: {offered}")
        return type(self)(**{**self.settings, **values})

    def __str__(self) -> str:
        """Return the name by which the registry finds it: "bleu-4(smoothing=exp)"."""
        values = ",".join(f"{name}={written(value)}" for name, value in self.chosen.items())
        return f"{self.name}({values})" if values else self.name

    def __repr__(self) -> str:
        return f"<metric {self}>"

    def _module(self, name: str) -> Any:
        try:
            return import_module(name)
        except ImportError:
            raise MissingDependency(self._how_to_install()) from None

    def _how_to_install(self) -> str:
        package = f"vlscore[{self.extra}]" if self.extra else self.library
        return f"{self.library} is not installed: pip install '{package}'"


def text_metric(
    name: str, description: str, **facts: Any
) -> Callable[[Callable[[str, str], float]], Metric]:
    """Make a metric from a function (candidate, reference) -> number.

    Args:
        name, description: of the metric.
        facts: further class attributes of `Metric`, such as bounds, higher_is_better, version.

    Returns: a decorator that turns the function into the metric.

    >>> @text_metric("length-ratio", "words of the candidate for each of the reference")
    ... def length_ratio(candidate, reference):
    ...     return len(candidate.split()) / max(len(reference.split()), 1)
    >>> from vlscore.metrics import compute
    >>> compute([length_ratio], ["clear lungs"], ["The lungs are clear."])["length-ratio"].tolist()
    [0.5]
    """

    def make(function: Callable[[str, str], float]) -> Metric:
        place = function.__module__, function.__qualname__
        content = {"name": name, "description": description, "value": staticmethod(function)}
        # Pickle finds the metric, as it finds a function, by the name in its module.
        content["__reduce__"] = lambda metric: (_metric_in, place)
        made: type[Metric] = type(name, (Metric,), {**content, **facts})
        return made()

    return make


def _metric_in(module: str, name: str) -> Metric:
    """Return the metric that `text_metric` put into a module in place of a function."""
    found = attrgetter(name)(import_module(module))
    if not isinstance(found, Metric):
        raise PicklingError(f"{module}.{name} is no metric: use text_metric as its decorator")
    return found
