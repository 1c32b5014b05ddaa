"""What a metric is, apart from the library that computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vlscore.errors import InvalidSetting


@dataclass(frozen=True)
class Parameter:
    """One parameter of a metric.

    Attributes:
        name: as written in "bleu-4(smoothing=exp)".
        default: its type is the parameter's type: bool, int, float or str.
        description: what it changes.
        choices: the values it can take; empty where any value of the type will do.
    """

    name: str
    default: bool | int | float | str
    description: str
    choices: tuple[Any, ...] = ()

    def parse(self, value: Any) -> Any:
        """A value of the parameter's type; raises InvalidSetting for any other."""
        kind = type(self.default)
        try:
            parsed = _boolean(value) if kind is bool else kind(value)
        except (TypeError, ValueError):
            raise InvalidSetting(f"{self.name} is a {kind.__name__}, not {value!r}") from None
        if self.choices and parsed not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise InvalidSetting(f"{self.name} is one of {known}, not {value!r}")
        return parsed


@dataclass(frozen=True)
class Metric:
    """A number for one candidate report.

    Attributes:
        name: what the registry calls it.
        description: one sentence.
        higher_is_better: direction.
        bounds: smallest and largest possible value, None where there is no bound.
        uses_image, uses_reference: what the value depends on besides the candidate.
        uses_embeddings: whether it needs an encoder's embeddings rather than texts.
        citation: where it was published.
        parameters: what can be set; `chosen` holds the values that differ from the defaults.
    """

    name: str
    description: str
    higher_is_better: bool
    bounds: tuple[float | None, float | None]
    uses_image: bool
    uses_reference: bool
    uses_embeddings: bool
    citation: str
    parameters: tuple[Parameter, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **values: Any) -> "Metric":
        """The same metric with other parameters; raises InvalidSetting for unknown ones."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                offered = ", ".join(known) or "none"
                raise InvalidSetting(f"{self.name} has no parameter {name!r}; it has: {offered}")
        parsed = {name: known[name].parse(value) for name, value in values.items()}
        settings = {**self.settings, **parsed}
        chosen = {name: settings[name] for name in known if settings[name] != known[name].default}
        return replace(self, chosen=chosen)

    @property
    def settings(self) -> dict[str, Any]:
        """The value of every parameter."""
        return {p.name: self.chosen.get(p.name, p.default) for p in self.parameters}

    def __str__(self) -> str:
        """The name that finds it again: "bleu-4(smoothing=exp)"."""
        if not self.chosen:
            return self.name
        values = ",".join(f"{name}={value}" for name, value in self.chosen.items())
        return f"{self.name}({values})"


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return {"true": True, "false": False}[str(value).lower()]
    except KeyError:
        raise ValueError(value) from None
