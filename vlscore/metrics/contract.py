"""What every metric must keep, as checks that run on any of them, one of ours or a user's own.

>>> from vlscore.metrics import check_metric
>>> check_metric("rouge-l")
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import BrokenContract
from vlscore.metrics.batch import Batch, MetricValues
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Bounds, Metric
from vlscore.metrics.plan import Plan
from vlscore.metrics.registry import METRICS, find_metric

REFERENCES = (
    "There is a small left pleural effusion. The heart is normal in size.",
    "No focal consolidation, effusion or pneumothorax. The lungs are clear.",
    "Large right pneumothorax with collapse of the right lung. Chest tube in place.",
    "Mild cardiomegaly. Vascular congestion without overt pulmonary edema is seen.",
    "A 2.5 cm nodule projects over the right upper lobe; CT is recommended.",
)
# Reports about something else, so that a metric of agreement prefers the references themselves.
OTHERS = (*REFERENCES[2:], *REFERENCES[:2])
UNUSUAL = ("", "x", "effusion " * 50, "\x00 \u00e9 \U0001f600", "... !!")
_DIM = 16
_SAME = 1e-12
# A network adds up in float32, and in another order where a text is padded to a longer neighbour.
_SAME_OF_MODELS = 1e-5

Check = Callable[[Metric], None]


def check_metric(metric: str | Metric) -> None:
    """Run every check of this module on a metric.

    Raises: BrokenContract, which lists everything that is wrong; MissingDependency where the
        metric cannot run here; UnknownName.
    """
    found = find_metric(metric)
    Plan([found]).require()
    problems = []
    for check in metric_checks():
        try:
            check(found)
        except BrokenContract as problem:
            problems.append(str(problem))
        except Exception as error:  # a check may run into any fault of the metric
            problems.append(f"{check.__name__}: {type(error).__name__}: {error}")
    if problems:
        raise BrokenContract(f"{found}: " + "\n".join(problems))


def metric_checks() -> tuple[Check, ...]:
    """The checks one by one, for test parameters."""
    return (
        check_columns,
        check_bounds,
        check_reference,
        check_repeats,
        check_neighbours,
        check_nothing,
        check_uses,
        check_statistics,
        check_signature,
        check_name,
    )


def check_columns(metric: Metric) -> None:
    """One finite number for each candidate and output."""
    values = _values(metric, OTHERS, REFERENCES)
    for name, column in values.columns.items():
        _require(column.shape == (len(REFERENCES),), f"{name} has the shape {column.shape}")
        _require(bool(np.isfinite(column).all()), f"{name} is not finite for ordinary reports")


def check_bounds(metric: Metric) -> None:
    """No value lies outside the stated bounds, for whatever text."""
    texts = (*REFERENCES, *UNUSUAL)
    for reference in texts:
        values = _values(metric, texts, [reference] * len(texts))
        for name, output in zip(metric.columns, metric.outputs, strict=True):
            found = values.columns[name]
            is_inside = _is_inside(found[np.isfinite(found)], output.bounds)
            _require(is_inside, f"{name} leaves its bounds {output.bounds}")


def check_reference(metric: Metric) -> None:
    """A candidate that equals its reference scores best, where the metric promises it."""
    if not metric.reference_scores_best:
        return
    itself = metric.sign * _values(metric, REFERENCES, REFERENCES).headline
    other = metric.sign * _values(metric, OTHERS, REFERENCES).headline
    empty = metric.sign * _values(metric, [""] * len(REFERENCES), REFERENCES).headline
    _require(bool((itself > other).all()), "another report scores as well as the reference itself")
    _require(bool((itself > empty).all()), "an empty report scores as well as the reference itself")


def check_repeats(metric: Metric) -> None:
    """The same reports get the same numbers again, bit for bit."""
    first = _numbers(metric, OTHERS, REFERENCES)
    again = _numbers(metric, OTHERS, REFERENCES)
    _require(first.tobytes() == again.tobytes(), "its values differ from call to call")


def check_neighbours(metric: Metric) -> None:
    """A pair's numbers do not depend on the order or on the other pairs."""
    together = _numbers(metric, OTHERS, REFERENCES)
    backwards = _numbers(metric, OTHERS[::-1], REFERENCES[::-1])[:, ::-1]
    _require(_are_close(backwards, together, metric), "its values depend on the order")
    for row, (candidate, reference) in enumerate(zip(OTHERS, REFERENCES, strict=True)):
        alone = _numbers(metric, [candidate], [reference])
        _require(
            _are_close(alone, together[:, [row]], metric),
            "the value of a pair depends on its neighbours",
        )


def check_nothing(metric: Metric) -> None:
    """No reports give no values, and no error."""
    _require(_numbers(metric, [], []).shape[1] == 0, "it gives values for no reports")


def check_uses(metric: Metric) -> None:
    """It looks at what it says it looks at, and at nothing else."""
    if not metric.uses_embeddings:
        _require(
            not metric.uses_image or bool(metric.inputs),
            "it states that it looks at the image, and nothing shows it one: images come as "
            'artefacts=("embeddings",)',
        )
        usual = _numbers(metric, OTHERS, REFERENCES).tobytes()
        # In several orders: some metrics see no more of a text than its length, or its findings.
        changed = (REFERENCES[::-1], (*REFERENCES[1:], REFERENCES[0]), OTHERS)
        moves = any(_numbers(metric, OTHERS, other).tobytes() != usual for other in changed)
        _require(moves == metric.uses_reference, _says_otherwise(moves, "references"))
        return
    triples = _embedded(OTHERS, REFERENCES)
    noise = np.random.default_rng(6).normal(size=np.shape(triples.images))
    before = Plan([metric]).values(Batch(OTHERS, REFERENCES, triples))[metric].headline
    for name, used in (("images", metric.uses_image), ("references", metric.uses_reference)):
        parts = {part: getattr(triples, part) for part in ("images", "candidates", "references")}
        moved = EmbeddingTriples(**{**parts, name: noise}, signature=triples.signature, C=triples.C)
        after = Plan([metric]).values(Batch(OTHERS, REFERENCES, moved))[metric].headline
        moves = before.tobytes() != after.tobytes()
        _require(moves == used, _says_otherwise(moves, name))


def check_statistics(metric: Metric) -> None:
    """Corpus values come from sums: twice the same corpus has the same value, within bounds."""
    values = _values(metric, OTHERS, REFERENCES)
    if not metric.corpus:
        _require(values.statistics is None, "it gives statistics, and states no corpus value")
        return
    statistics = values.statistics
    _require(
        statistics is not None and statistics.shape == (len(REFERENCES), metric.statistics),
        f"it states {metric.statistics} statistics a candidate",
    )
    plan = Plan([metric])
    once = plan.corpus(values)
    twice = plan.corpus(values, np.full((1, len(REFERENCES)), 2.0))
    for output in metric.corpus:
        is_inside = _is_inside(once[output.name], output.bounds)
        _require(is_inside, f"{output.name} leaves its bounds {output.bounds}")
        same = np.allclose(once[output.name], twice[output.name], rtol=1e-9)
        _require(bool(same), f"{output.name} changes when every report is counted twice")


def check_signature(metric: Metric) -> None:
    """The signature names the metric, its settings, and vlscore's version."""
    signature = _values(metric, OTHERS, REFERENCES).signature
    _require(signature.subject == metric.name, f"its signature begins with {signature.subject}")
    _require(signature.has("v"), "its signature states no version")
    for name, value in metric.settings.items():
        stated = signature.has(name) or value is None
        _require(stated, f"its signature does not state its parameter {name}")
    _require(
        signature.has("enc") == metric.uses_embeddings,
        "its signature must name the encoder where embeddings are used, and only there",
    )


def check_name(metric: Metric) -> None:
    """It is described, and what it prints finds it again where it is registered."""
    _require(bool(metric.description.strip()), "it has no description")
    if metric.name in METRICS:
        _require(find_metric(str(metric)) == metric, f"{metric} does not find it again")


def _values(metric: Metric, candidates: Sequence[str], references: Sequence[str]) -> MetricValues:
    embedded = _embedded(candidates, references)
    # A fitted metric is fitted once, as in a run; its numbers may not depend on the batch either.
    plan = Plan([metric]).fit(REFERENCES)
    return plan.values(Batch(list(candidates), list(references), embedded))[metric]


def _numbers(
    metric: Metric, candidates: Sequence[str], references: Sequence[str]
) -> NDArray[np.float64]:
    """(outputs, n)"""
    return np.stack(list(_values(metric, candidates, references).columns.values()))


def _are_close(one: NDArray[np.float64], other: NDArray[np.float64], metric: Metric) -> bool:
    same = _SAME_OF_MODELS if metric.cost == "model" else _SAME
    return bool(np.allclose(one, other, rtol=same, equal_nan=True))


def _is_inside(values: NDArray[np.float64], bounds: Bounds) -> bool:
    low, high = bounds
    return bool((low is None or (values >= low).all()) and (high is None or (values <= high).all()))


def _says_otherwise(moves: bool, name: str) -> str:
    return f"it {'looks at' if moves else 'ignores'} the {name}, and states the opposite"


def _embedded(candidates: Sequence[str], references: Sequence[str]) -> EmbeddingTriples:
    """An image lies near its reference; another text has nothing to do with either."""
    towards = np.random.default_rng(5).normal(size=_DIM) * 0.05
    r = np.array([_vector(text) for text in references]).reshape(-1, _DIM)
    g = np.array([_vector(text) for text in candidates]).reshape(-1, _DIM)
    return EmbeddingTriples(r + towards, g, r, "enc:test", C=1.0)


def _vector(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(text.encode("utf-8")[:40].ljust(40, b"\0"), "little")
    direction = np.random.default_rng(seed).normal(size=_DIM)
    return np.asarray(direction / np.linalg.norm(direction))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise BrokenContract(problem)
