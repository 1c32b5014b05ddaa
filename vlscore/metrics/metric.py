"""Definition of a metric, apart from the library that computes it."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn

from vlscore.core import written
from vlscore.errors import InvalidSetting

Bounds = tuple[float | None, float | None]
Setting = bool | int | float | str | None

EMBEDDINGS = "embeddings"

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a metric.

    Attributes:
        name: as written in "bleu-4(smoothing=exp)".
        default: the value if the user sets none.
        description: what it changes.
        choices: the values it can take; empty if any value of the type is allowed.
        kind: type of the values; default: the type of `default`.
        above: values must be finite and greater than this; None if there is no limit.
    """

    name: str
    default: Setting
    description: str
    choices: tuple[Any, ...] = ()
    kind: type | None = None
    above: float | None = None

    def parse(self, value: Any) -> Any:
        """Convert a value to the parameter's type; raise InvalidSetting if that fails."""
        kind = self.kind or type(self.default)
        if value is None and self.default is None:
            return None
        try:
            parsed = _boolean(value) if kind is bool else _number_or_text(kind, value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidSetting(
                f"{self.name} must be {_KINDS.get(kind, kind.__name__)}, not {value!r}"
            ) from None
        if self.choices and parsed not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise InvalidSetting(f"{self.name} must be one of {known}, not {value!r}")
        if kind is float and not math.isfinite(parsed):
            raise InvalidSetting(f"{self.name} must be a finite number, not {value!r}")
        if self.above is not None and not parsed > self.above:
            raise InvalidSetting(f"{self.name} must be greater than {self.above:g}, not {value!r}")
        return parsed


@dataclass(frozen=True)
class Output:
    """One number that a metric computes for a candidate.

    Attributes:
        name: as in "precision"; the column is then "findings-f1.precision".
        description: one sentence.
        higher_is_better: direction.
        bounds: smallest and largest possible value, None if there is no bound.
    """

    name: str
    description: str
    higher_is_better: bool = True
    bounds: Bounds = (0.0, 1.0)


_TUPLES = ("bounds", "artefacts", "inputs", "parameters", "further", "corpus", "chosen")


@dataclass(frozen=True)
class Metric:
    """Definition of a metric: one number, or several, for a candidate report.

    Metrics are values: equal ones print alike, and a metric can be the key of a dict.

    Attributes:
        name: name in the registry, and of the column with its first number.
        description: one sentence.
        higher_is_better: direction of the first number.
        bounds: its smallest and largest possible value, None if there is no bound.
        uses_image, uses_reference: what the value depends on besides the candidate; by default the
            reference alone.
        citation: where it was published.
        artefacts: what must be made of texts or images first, once for all metrics: "embeddings",
            or the name of an `Artefact` (`vlscore.metrics.provider`).
        inputs: other metrics whose values it is computed from, by name or as objects.
        passed: (input, its parameter, parameter of this metric): the value of this metric's
            parameter is also the value of the input's parameter.
        parameters: what can be set; `chosen` holds the values that differ from the defaults.
        further: numbers for a candidate besides the first.
        statistics: how many sums over candidates the corpus values are computed from; 0 for none.
        corpus: values of a whole corpus that are not a mean over candidates, such as corpus BLEU.
        reference_scores_best: whether a candidate equal to its reference scores better than any
            about something else; the contract then tests it.
        cost: "free", "model" if a neural network runs, "paid" if a service charges money.
            Metrics that are not free run only if the user names them.
        provider: the `Provider` that computes it.
        title: name as papers print it, as in "BLEU-4"; empty: the name in the registry.
        headline: the one number that represents the metric in a table of systems: the name of a
            corpus value, as "corpus" for BLEU; empty: the mean of the first number.
    """

    name: str
    description: str
    higher_is_better: bool
    bounds: Bounds
    uses_image: bool = False
    uses_reference: bool = True
    citation: str = ""
    artefacts: tuple[str, ...] = ()
    inputs: tuple["str | Metric", ...] = ()
    passed: tuple[tuple[str, str, str], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    further: tuple[Output, ...] = ()
    statistics: int = 0
    corpus: tuple[Output, ...] = ()
    reference_scores_best: bool = False
    cost: Literal["free", "model", "paid"] = "free"
    # Equal metrics have equal providers; whether a user's provider can be hashed does not matter.
    provider: Any = field(default=None, hash=False)
    chosen: tuple[tuple[str, Setting], ...] = ()
    title: str = ""
    headline: str = ""

    def __post_init__(self) -> None:
        for name in _TUPLES:
            value = getattr(self, name)
            if isinstance(value, str):
                raise InvalidSetting(
                    f"{self.name}: {name} must be a tuple, not a text: write ({value!r},)"
                )
            object.__setattr__(self, name, tuple(value))
        if not self.name or set(self.name) & set("|(),: \n"):
            raise InvalidSetting(
                f"a metric cannot be called {self.name!r}: its name must not be empty or contain "
                "blanks, commas, colons, bars or parentheses"
            )
        if self.headline and self.headline not in {output.name for output in self.corpus}:
            raise InvalidSetting(
                f"{self.name}: headline={self.headline!r} is not the name of a corpus value"
            )

    def __call__(self, **values: Any) -> "Metric":
        """Return the metric with other parameters; raise InvalidSetting for unknown ones."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                self._refuse(name)
        parsed = {name: known[name].parse(value) for name, value in values.items()}
        settings = {**self.settings, **parsed}
        chosen = tuple((n, settings[n]) for n in known if settings[n] != known[n].default)
        return replace(self, chosen=chosen)

    @property
    def settings(self) -> dict[str, Setting]:
        """Return the value of every parameter."""
        chosen = dict(self.chosen)
        return {p.name: chosen.get(p.name, p.default) for p in self.parameters}

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the description of every number for a candidate, the main one first."""
        first = Output(self.name, self.description, self.higher_is_better, self.bounds)
        return (first, *self.further)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns' names, one for each output: "bleu-4", "findings-f1.precision"."""
        return (str(self), *(f"{self}.{output.name}" for output in self.further))

    def printed(self, number: str = "", *, of_corpus: bool = False) -> str:
        """Return the name of one of its numbers as papers print it.

        Args:
            number: name of an output; empty: the first number.
            of_corpus: the number is a value of the whole corpus.

        Parameters that are paths are left out. The headline has the metric's name alone, unless
        the metric has several corpus values: "BLEU-4", "CheXbert F1 (micro)". Other numbers say
        what they are: "BLEU-4 (mean)", "CheXbert F1 precision".
        """
        paths = {parameter.name for parameter in self.parameters if parameter.kind is str}
        settings = ", ".join(f"{n}={written(value)}" for n, value in self.chosen if n not in paths)
        shown = (self.title or self.name) + (f" ({settings})" if settings else "")
        if of_corpus:
            alone = number == self.headline and len(self.corpus) == 1
            return shown if alone else f"{shown} ({number})"
        if number:
            return f"{shown} {number}"
        return f"{shown} (mean)" if self.headline else shown

    @property
    def uses_embeddings(self) -> bool:
        """Return whether it needs an encoder's embeddings."""
        return EMBEDDINGS in self.artefacts

    @property
    def sign(self) -> int:
        """Return 1 if higher is better, else -1."""
        return 1 if self.higher_is_better else -1

    def __str__(self) -> str:
        """Return the name by which the registry finds it: "bleu-4(smoothing=exp)"."""
        if not self.chosen:
            return self.name
        values = ",".join(f"{name}={written(value)}" for name, value in self.chosen)
        return f"{self.name}({values})"

    def _refuse(self, name: str) -> NoReturn:
        offered = ", ".join(parameter.name for parameter in self.parameters) or "none"
        raise InvalidSetting(f"{self.name} has no parameter {name!r}; it has: {offered}")


def _number_or_text(kind: type, value: Any) -> Any:
    if isinstance(value, bool):
        # A bool is refused, because float(True) would silently be 1.0.
        raise ValueError(value)
    return kind(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return {"true": True, "false": False}[str(value).lower()]
    except KeyError:
        raise ValueError(value) from None
