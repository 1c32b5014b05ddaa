"""Composites: weighted sums of metrics, fitted to raters in the manner of RadCliQ.

A composite is a json file that lists the metrics, their weights, and the ratings to which it was
fitted. The file is checked when it is read, and contains no code. `fit_composite` of
`vlscore.evaluation` makes one; "composite:FILE" is then a metric like any other, computed from the
values of its inputs.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import Signature, plain_name, write_json
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.provider import Provider, one_column, provider_of
from vlscore.metrics.registry import inputs_of, metric_from_file, missing_inputs

FORMAT = "vlscore composite 1"
_LARGEST_FILE = 4 << 20
_MOST_INPUTS = 100
_SUM = 1e-6
_LARGEST_NUMBER = sys.float_info.max
# Facts of a signature that may differ between fitting and use: the version of the toolkit, and the
# choice of texts and images, which the user makes for each run.
_MAY_DIFFER = ("v", "txt", "img", "views", "prec", "fit")


@dataclass(frozen=True)
class CompositeInput:
    """One metric of a composite.

    Attributes:
        metric: its name, with parameters.
        signature: what its values depended on when the composite was fitted.
        mean, deviation: of its values over the pairs to which the composite was fitted.
        weight: of the normalised value, turned so that larger is better; at least 0.
    """

    metric: str
    signature: str
    mean: float
    deviation: float
    weight: float


@dataclass(frozen=True)
class Composite:
    """A weighted sum of normalised metrics: larger is better, about 0 on average.

    Attributes:
        inputs: the metrics; their weights sum to 1.
        rating: the rating to which it was fitted, as in "total errors".
        pairs, studies: number of pairs and studies in the fit.
        ridge: strength of the pull towards equal weights, chosen by cross-validation.
        tau_b, low, high: cross-validated agreement with the raters' mean, by study; None where it
            is not defined.
        seen: digests of the pairs to which it was fitted; see `digests_of`.
    """

    inputs: tuple[CompositeInput, ...]
    rating: str
    pairs: int
    studies: int
    ridge: float
    tau_b: float | None = None
    low: float | None = None
    high: float | None = None
    seen: frozenset[str] = field(default=frozenset(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        return {
            "format": FORMAT,
            "what": f"weighted sum of normalised metrics, fitted to {self.rating}",
            "inputs": [vars(each) for each in self.inputs],
            "rating": self.rating,
            "cross_validated_tau_b": {
                "estimate": self.tau_b,
                "low": self.low,
                "high": self.high,
            },
            "fitted_to": {
                "pairs": self.pairs,
                "studies": self.studies,
                "ridge": self.ridge,
                "seen": sorted(self.seen),
            },
        }

    @property
    def digest(self) -> str:
        """Return the digest of all that its values depend on, twelve hexadecimal digits."""
        facts = json.dumps([vars(each) for each in self.inputs], sort_keys=True)
        return hashlib.sha256(facts.encode("utf-8")).hexdigest()[:12]

    def has_seen(self, studies: Sequence[str], pairs: Iterable["Texts"]) -> int:
        """Return how many of these pairs belong to those of the fit."""
        return sum(
            not self.seen.isdisjoint(digests_of(study, *texts))
            for study, texts in zip(studies, pairs, strict=True)
        )


Texts = tuple[str | None, str | None]


def digests_of(study: str, reference: str | None, candidate: str | None) -> set[str]:
    """Return digests that identify a pair: of its study, and of its two texts if there are any."""
    found = {_digest("study", study, reference or "")}
    if reference is not None and candidate is not None:
        found.add(_digest("texts", reference, candidate))
    return found


def write_composite(path: str | Path, composite: Composite) -> None:
    """Write the composite to a file; raise OutputFailed if that fails."""
    write_json(path, composite.to_dict())


def read_composite(path: str | Path) -> Composite:
    """Read a composite from a file; run no code of it, and import no module that it names.

    Raises: InvalidSetting if the file is absent or not a composite, with the reason.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError("the file is too large")
        content = json.loads(path.read_text(encoding="utf-8"))
        return _composite(content)
    except FileNotFoundError:
        raise InvalidSetting(
            f"{path} does not exist; `vlscore align --fit RATING` writes such a file, "
            "composite.json"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSetting(
            f"{path} is not a composite: {error or type(error).__name__}"
        ) from None


def composite_metric(path: str | Path) -> Metric:
    """Return the metric that a file describes; its name is "composite(file=PATH)".

    Raises: InvalidSetting as `read_composite`, or for a path that a metric's name cannot contain;
        UnknownName for a metric that does not exist.
    """
    if set(str(path)) & set("(),|\n"):
        raise InvalidSetting(
            f"{path}: rename the file or its folder, because the name of a metric must not contain "
            "commas, bars or parentheses"
        )
    composite = read_composite(path)
    inputs = [metric_from_file(each.metric, path) for each in composite.inputs]
    return replace(
        COMPOSITE(file=str(path)),
        inputs=tuple(each.metric for each in composite.inputs),
        uses_image=any(metric.uses_image for metric in inputs),
        uses_reference=any(metric.uses_reference for metric in inputs),
        cost="free" if all(metric.cost == "free" for metric in inputs) else "model",
        provider=CompositeProvider(composite),
    )


def differing_facts(fitted: str, now: Signature) -> list[str]:
    """Return the names of the facts in which an input differs from the time of the fit.

    Args: fitted: the input's signature then.
    """
    before, after = (dict(s.without(*_MAY_DIFFER)) for s in (Signature.parse(fitted), now))
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def _composite(content: Any) -> Composite:
    _require(isinstance(content, dict), "it does not contain a json object")
    _require(content.get("format") == FORMAT, f'its "format" is not "{FORMAT}"')
    given = content.get("inputs")
    _require(isinstance(given, list) and 0 < len(given) <= _MOST_INPUTS, '"inputs" lists none')
    inputs = tuple(_input(each) for each in given)
    names = [each.metric for each in inputs]
    _require(len(set(names)) == len(names), "a metric is listed twice")
    total = sum(each.weight for each in inputs)
    _require(abs(total - 1) <= _SUM, f"its weights sum to {total:g}, not to 1")
    fitted = _object(content, "fitted_to")
    tau = _object(content, "cross_validated_tau_b")
    seen = fitted.get("seen", [])
    _require(
        isinstance(seen, list) and all(isinstance(each, str) for each in seen),
        '"seen" is not a list of digests',
    )
    return Composite(
        inputs=inputs,
        rating=_text(content, "rating"),
        pairs=_count(fitted, "pairs"),
        studies=_count(fitted, "studies"),
        ridge=_number(fitted, "ridge"),
        tau_b=_number_or_none(tau, "estimate"),
        low=_number_or_none(tau, "low"),
        high=_number_or_none(tau, "high"),
        seen=frozenset(seen),
    )


def _input(content: Any) -> CompositeInput:
    _require(isinstance(content, dict), "an input is not a json object")
    found = CompositeInput(
        _text(content, "metric"),
        _text(content, "signature"),
        _number(content, "mean"),
        _number(content, "deviation"),
        _number(content, "weight"),
    )
    name = plain_name(found.metric.partition("(")[0])
    _require(name != COMPOSITE.name, "a composite must not contain a composite")
    _require(found.deviation > 0, f"the deviation of {found.metric} must be above 0")
    _require(found.weight >= 0, f"the weight of {found.metric} must not be below 0")
    return found


def _object(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name)
    if not isinstance(value, dict):
        raise ValueError(f'"{name}" is not a json object')
    return value


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'"{name}" is not a text')
    return value


def _number(content: Mapping[str, Any], name: str) -> float:
    value = content.get(name)
    # An int of more than 308 digits overflows a float, but compares as less than inf.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f'"{name}" is not a finite number')
    if not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER:
        raise ValueError(f'"{name}" is not a finite number')
    return float(value)


def _number_or_none(content: Mapping[str, Any], name: str) -> float | None:
    return None if content.get(name) is None else _number(content, name)


def _count(content: Mapping[str, Any], name: str) -> int:
    value = _number(content, name)
    _require(value >= 0 and value == int(value), f'"{name}" is not a count')
    return int(value)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _digest(*parts: str) -> str:
    text = json.dumps(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class CompositeProvider(Provider):
    """Provider of composites: it sums the inputs of each pair by the weights of a file.

    Attributes:
        composite: the content of the file; None for the metric without a file, which cannot run.
    """

    library = "vlscore"

    composite: "Composite | None" = None

    def metric_of(self, file: str) -> Metric:
        """Return the metric that a file of a composite describes."""
        return composite_metric(file)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        composite = self._composite(metric)
        metrics = inputs_of(metric)
        total = np.zeros(len(batch))
        failures: dict[int, VLScoreError] = {}
        for each in composite.inputs:
            values = batch.values[each.metric]
            library = provider_of(metrics[each.metric]).library
            differing = [
                name
                for name in differing_facts(each.signature, values.signature)
                if name != library
            ]
            if differing:
                raise InvalidSetting(
                    f"{metric} was fitted with other settings of {each.metric}; they differ in "
                    f"{', '.join(differing)}: {each.signature} then, {values.signature} now. "
                    "Use the settings of the fit, or fit a new composite"
                )
            sign = metrics[each.metric].sign
            total += each.weight * sign * (values.headline - each.mean) / each.deviation
            failures = {**values.failures, **failures}
        return Computed(one_column(total).columns, failures=failures)

    def missing(self, metric: Metric) -> str | None:
        if self.composite is None:
            return "it needs a file: composite:FILE, as `vlscore align --fit RATING` writes one"
        return "; ".join(missing_inputs(metric)) or None

    def facts(self, metric: Metric) -> dict[str, Any]:
        composite = self._composite(metric)
        # The signature holds the composite's digest, because the file's path says nothing.
        fitted = f"{composite.rating.replace('|', ' ')}, {composite.pairs} pairs"
        return {"file": f"given@{composite.digest}", "fitted": fitted}

    def _composite(self, metric: Metric) -> "Composite":
        if self.composite is None:
            raise MissingDependency(f"{metric}: {self.missing(metric)}")
        return self.composite


COMPOSITE = Metric(
    provider=CompositeProvider(),
    name="composite",
    title="Composite",
    description="weighted sum of normalised metrics, fitted to raters by vlscore align --fit; "
    "written composite:FILE",
    higher_is_better=True,
    bounds=(None, None),
    citation="in the manner of RadCliQ: Yu et al. 2023, Patterns",
    parameters=(Parameter("file", None, "what vlscore align --fit wrote", kind=str),),
    cost="model",
)
