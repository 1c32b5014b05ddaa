"""Composites: weighted sums of metrics, fitted to raters in the manner of RadCliQ.

A composite is a json file that lists the metrics, their weights, and the ratings to which it was
fitted. The file is checked when it is read, and contains no code. `vlscore align --fit` makes one;
"composite:FILE" is then a metric like any other, computed from the values of its inputs.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import Signature, plain_name, write_json
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.file_metric import path_parameter
from vlscore.metrics.memo import loaded_once
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import metric_from_file

FORMAT = "vlscore composite 1"
_SUM = 1e-6
# Facts of a signature that may differ between fitting and use: the version of the toolkit, and the
# choice of texts and images, which the user makes for each run.
_MAY_DIFFER = ("v", "txt", "img", "views", "prec", "fit")

Texts = tuple[str | None, str | None]


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

    def __post_init__(self) -> None:
        if plain_name(self.metric.partition("(")[0]) == CompositeMetric.name:
            raise ValueError("a composite must not contain a composite")
        if not all(map(math.isfinite, (self.mean, self.deviation, self.weight))):
            raise ValueError(f"a number of {self.metric} is not finite")
        if self.deviation <= 0 or self.weight < 0:
            raise ValueError(f"{self.metric}: its deviation must be above 0, its weight not below")
        Signature.parse(self.signature)


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

    def __post_init__(self) -> None:
        if len({each.metric for each in self.inputs}) != len(self.inputs):
            raise ValueError("a metric is listed twice")
        total = sum(each.weight for each in self.inputs)
        if abs(total - 1) > _SUM:
            raise ValueError(f"its weights sum to {total:g}, not to 1")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        return {"format": FORMAT, **asdict(self), "seen": sorted(self.seen)}

    @property
    def digest(self) -> str:
        """Return the digest of all that its values depend on, twelve hexadecimal digits."""
        facts = json.dumps([vars(each) for each in self.inputs], sort_keys=True)
        return hashlib.sha256(facts.encode("utf-8")).hexdigest()[:12]

    def has_seen(self, studies: Sequence[str], pairs: Iterable[Texts]) -> int:
        """Return how many of these pairs belong to those of the fit."""
        return sum(
            not self.seen.isdisjoint(digests_of(study, *texts))
            for study, texts in zip(studies, pairs, strict=True)
        )


def digests_of(study: str, reference: str | None, candidate: str | None) -> set[str]:
    """Return digests that identify a pair: of its study, and of its two texts if there are any."""
    facts = [("study", study, reference or "")]
    if reference is not None and candidate is not None:
        facts.append(("texts", reference, candidate))
    texts = (json.dumps(each).encode("utf-8", "surrogatepass") for each in facts)
    return {hashlib.sha256(text).hexdigest()[:16] for text in texts}


def write_composite(path: str | Path, composite: Composite) -> None:
    """Write the composite to a file; raise OutputFailed if that fails."""
    write_json(path, composite.to_dict())


def read_composite(path: str | Path) -> Composite:
    """Read a composite from a file; run no code of it, and import no module that it names.

    Raises: InvalidSetting if the file is absent or not a composite, with the reason.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format", None) != FORMAT:
            raise ValueError(f'its "format" is not "{FORMAT}"')
        content["inputs"] = tuple(CompositeInput(**each) for each in content["inputs"])
        return Composite(**{**content, "seen": frozenset(content["seen"])})
    except FileNotFoundError:
        raise InvalidSetting(
            f"{path} does not exist; `vlscore align --fit RATING` writes such a file, "
            "composite.json"
        ) from None
    except (
        OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        raise InvalidSetting(f"{path} is not a composite: {error!r}") from None


class CompositeMetric(Metric):
    """Sum of the inputs of each pair by the weights of a file."""

    name = "composite"
    title = "Composite"
    description = (
        "weighted sum of normalised metrics, fitted to raters by vlscore align --fit; "
        "its name is composite:FILE"
    )
    citation = "in the manner of RadCliQ: Yu et al. 2023, Patterns"
    library = "vlscore"

    file: str | None = path_parameter("what vlscore align --fit wrote")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file is None:
            return
        if set(self.file) & set("(),|\n"):
            raise InvalidSetting(
                f"{self.file}: rename the file or its folder, because the name of a metric must "
                "not contain commas, bars or parentheses"
            )
        _ = self.inputs

    @property
    def composite(self) -> Composite:
        """Return the content of the file; raise MissingDependency without one."""
        if self.file is None:
            raise MissingDependency(f"{self}: {self.missing()}")
        return _read(Path(self.file))

    @property
    def inputs(self) -> tuple[Metric, ...]:  # type: ignore[override]
        """Return the metrics that are summed, in the order of the file."""
        if self.file is None:
            return ()
        return tuple(metric_from_file(each.metric, self.file) for each in self.composite.inputs)

    @property
    def uses_image(self) -> bool:  # type: ignore[override]
        return any(metric.uses_image for metric in self.inputs)

    @property
    def uses_reference(self) -> bool:  # type: ignore[override]
        return not self.inputs or any(metric.uses_reference for metric in self.inputs)

    @property
    def cost(self) -> str:  # type: ignore[override]
        is_free = self.inputs and all(metric.cost == "free" for metric in self.inputs)
        return "free" if is_free else "model"

    def compute(self, batch: Batch) -> Computed:
        total = np.zeros(len(batch))
        failures: dict[int, VLScoreError] = {}
        for each, metric, values in zip(
            self.composite.inputs, self.inputs, batch.inputs, strict=True
        ):
            assert values.signature is not None
            before, now = (
                dict(signature.without(*_MAY_DIFFER, metric.library))
                for signature in (Signature.parse(each.signature), values.signature)
            )
            differing = [n for n in {**before, **now} if before.get(n) != now.get(n)]
            if differing:
                raise InvalidSetting(
                    f"{self} was fitted with other settings of {each.metric}; they differ in "
                    f"{', '.join(differing)}: {each.signature} then, {values.signature} now. "
                    "Use the settings of the fit, or fit a new composite"
                )
            total += each.weight * metric.sign * (values.columns[0] - each.mean) / each.deviation
            failures = {**values.failures, **failures}
        return Computed([total], failures=failures)

    def missing(self) -> str | None:
        if self.file is None:
            return "it needs a file: composite:FILE, as `vlscore align --fit RATING` writes one"
        reasons = {metric.name: metric.missing() for metric in self.inputs}
        return "; ".join(f"{name}: {why}" for name, why in reasons.items() if why) or None

    def facts(self) -> dict[str, Any]:
        composite = self.composite
        # The signature holds the composite's digest, because the file's path says nothing.
        fitted = f"{composite.rating.replace('|', ' ')}, {composite.pairs} pairs"
        return {"file": f"given@{composite.digest}", "fitted": fitted}


@loaded_once(lambda path: (path,), maxsize=8)
def _read(path: Path) -> Composite:
    return read_composite(path)
