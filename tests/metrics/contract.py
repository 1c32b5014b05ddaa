"""The contract of metrics: `check_metric` raises AssertionError for the first broken promise."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics import (
    METRICS,
    Batch,
    Bounds,
    Computed,
    EmbeddingTriples,
    Metric,
    Plan,
    corpus_of_sums,
    find_metric,
)

REFERENCES = (
    "There is a small left pleural effusion, unchanged. The heart is normal in size.",
    "No focal consolidation, effusion or pneumothorax. The lungs remain clear.",
    "New large right pneumothorax with collapse of the right lung. Chest tube in place.",
    "Mild cardiomegaly. Vascular congestion, improved; no overt pulmonary edema is seen.",
    "A 2.5 cm nodule projects over the right upper lobe, larger than before; CT is recommended.",
)
# Reports about something else, so that a metric of agreement prefers the references themselves.
OTHERS = (*REFERENCES[2:], *REFERENCES[:2])
UNUSUAL = ("", "x", "effusion " * 50, "\x00 \u00e9 \U0001f600", "... !!")
_DIM = 16
_SAME = 1e-12
# A network adds up in float32, and in another order where a text is padded to a longer neighbour.
_SAME_OF_MODELS = 1e-5


def check_metric(metric: str | Metric) -> None:
    """Raises: AssertionError; MissingDependency where the metric cannot run here; UnknownName."""
    found = find_metric(metric)
    Plan([found]).require()
    for check in METRIC_CHECKS:
        check(found)


def check_columns(metric: Metric) -> None:
    """Each candidate has one finite number for each output."""
    values = _values(metric, OTHERS, REFERENCES)
    why = next(iter(values.failures.values()), "")
    for name, column in zip(metric.columns, values.columns, strict=True):
        assert column.shape == (len(REFERENCES),), f"{name} has the shape {column.shape}"
        assert np.isfinite(column).all(), f"{name} is not finite for ordinary reports: {why}"


def check_bounds(metric: Metric) -> None:
    """No value lies outside the bounds, for any text."""
    texts = (*REFERENCES, *UNUSUAL)
    for reference in texts:
        values = _values(metric, texts, [reference] * len(texts))
        columns = zip(metric.columns, metric.outputs, values.columns, strict=True)
        for name, output, found in columns:
            is_inside = _is_inside(found[np.isfinite(found)], output.bounds)
            assert is_inside, f"{name} has values outside its bounds {output.bounds}"


def check_reference(metric: Metric) -> None:
    """A candidate equal to its reference scores best, if the metric promises it."""
    if not metric.reference_scores_best:
        return
    itself = metric.sign * _values(metric, REFERENCES, REFERENCES).columns[0]
    other = metric.sign * _values(metric, OTHERS, REFERENCES).columns[0]
    empty = metric.sign * _values(metric, [""] * len(REFERENCES), REFERENCES).columns[0]
    assert (itself > other).all(), "another report scores as well as the reference itself"
    assert (itself > empty).all(), "an empty report scores as well as the reference itself"


def check_repeats(metric: Metric) -> None:
    """The same reports get the same numbers again, bit for bit."""
    first = _numbers(metric, OTHERS, REFERENCES)
    again = _numbers(metric, OTHERS, REFERENCES)
    assert first.tobytes() == again.tobytes(), "its values differ from call to call"


def check_neighbours(metric: Metric) -> None:
    """A pair's numbers do not depend on the order or on the other pairs."""
    together = _numbers(metric, OTHERS, REFERENCES)
    backwards = _numbers(metric, OTHERS[::-1], REFERENCES[::-1])[:, ::-1]
    assert _are_close(backwards, together, metric), "its values depend on the order"
    for row, (candidate, reference) in enumerate(zip(OTHERS, REFERENCES, strict=True)):
        alone = _numbers(metric, [candidate], [reference])
        assert _are_close(alone, together[:, [row]], metric), (
            "the value of a pair depends on other pairs of the batch"
        )


def check_nothing(metric: Metric) -> None:
    """An empty batch gives no values, and no error."""
    assert _numbers(metric, [], []).shape[1] == 0, "it returns values for an empty batch"


def check_uses(metric: Metric) -> None:
    """A metric uses exactly the inputs that it declares."""
    if not metric.uses_embeddings:
        assert not metric.uses_image or bool(metric.inputs), (
            "it has uses_image=True, but receives no image: set uses_embeddings=True"
        )
        usual = _numbers(metric, OTHERS, REFERENCES).tobytes()
        # In several orders: some metrics see no more of a text than its length, or its findings.
        changed = (REFERENCES[::-1], (*REFERENCES[1:], REFERENCES[0]), OTHERS)
        moves = any(_numbers(metric, OTHERS, other).tobytes() != usual for other in changed)
        assert moves == metric.uses_reference, _says_otherwise(moves, "references")
        return
    triples = _embedded(OTHERS, REFERENCES)
    noise = np.random.default_rng(6).normal(size=np.shape(triples.images))
    before = Plan([metric]).values(Batch(OTHERS, REFERENCES, triples))[metric].columns[0]
    for name, used in (("images", metric.uses_image), ("references", metric.uses_reference)):
        parts = {part: getattr(triples, part) for part in ("images", "candidates", "references")}
        moved = EmbeddingTriples(**{**parts, name: noise}, signature=triples.signature, C=triples.C)
        after = Plan([metric]).values(Batch(OTHERS, REFERENCES, moved))[metric].columns[0]
        moves = before.tobytes() != after.tobytes()
        assert moves == used, _says_otherwise(moves, name)


def check_statistics(metric: Metric) -> None:
    """Corpus values come from sums: a corpus counted twice has the same value."""
    values = _values(metric, OTHERS, REFERENCES)
    if not metric.corpus:
        assert values.statistics is None, "it returns statistics, but defines no corpus value"
        return
    statistics = values.statistics
    assert np.shape(statistics) == (len(REFERENCES), metric.statistics), (
        f"it states {metric.statistics} statistics a candidate"
    )
    once = corpus_of(values, metric=metric)
    twice = corpus_of(values, [2.0] * len(REFERENCES), metric)
    for output in metric.corpus:
        # Undefined values, of an observation that no report mentions, have no bounds.
        defined = once[output.name][~np.isnan(once[output.name])]
        is_inside = _is_inside(defined, output.bounds)
        assert is_inside, f"{output.name} has values outside its bounds {output.bounds}"
        same = np.allclose(once[output.name], twice[output.name], rtol=1e-9, equal_nan=True)
        assert same, f"{output.name} changes when every report is counted twice"


def check_signature(metric: Metric) -> None:
    """The signature names the metric, its settings, and vlscore's version."""
    signature = _values(metric, OTHERS, REFERENCES).signature
    assert signature.subject == metric.name, f"its signature begins with {signature.subject}"
    assert signature.has("v"), "its signature has no version"
    for name, value in metric.settings.items():
        stated = signature.has(name) or value is None
        assert stated, f"its signature does not name its parameter {name}"
    assert signature.has("enc") == metric.uses_embeddings, (
        "its signature must name the encoder where embeddings are used, and only there"
    )


def check_name(metric: Metric) -> None:
    """A metric has a description, and that its printed name finds it if registered."""
    assert metric.description.strip(), "it has no description"
    if metric.name in METRICS:
        assert find_metric(str(metric)) == metric, (
            f"the registry does not find it by its name {metric}"
        )


def values_of(metric: str | Metric, candidates: object, references: object) -> Computed:
    """The values of one metric, which is fitted to the references."""
    plan = Plan([metric])
    batch = Batch(list(candidates), list(references))  # type: ignore[call-overload]
    return plan.values(batch)[plan.metrics[0]]


def corpus_of(
    values: Computed, weights: Sequence[float] | None = None, metric: Metric | None = None
) -> dict[str, NDArray[np.float64]]:
    """The corpus values, name -> (1,), where each candidate counts as often as `weights` says.

    Args: metric: default: the one that the signature names, with its defaults.
    """
    assert values.statistics is not None
    assert values.signature is not None
    counts = np.ones(len(values.columns[0])) if weights is None else np.array(weights)
    metric = metric or find_metric(values.signature.subject)
    return corpus_of_sums(metric, (counts @ values.statistics)[None])


def _values(metric: Metric, candidates: Sequence[str], references: Sequence[str]) -> Computed:
    embedded = _embedded(candidates, references)
    # A fitted metric is fitted once, as in a run; its numbers may not depend on the batch either.
    plan = Plan([metric]).fit(REFERENCES)
    return plan.values(Batch(list(candidates), list(references), embedded))[metric]


def _numbers(
    metric: Metric, candidates: Sequence[str], references: Sequence[str]
) -> NDArray[np.float64]:
    """The numbers of a metric, (outputs, n)."""
    return np.stack(list(_values(metric, candidates, references).columns))


def _are_close(one: NDArray[np.float64], other: NDArray[np.float64], metric: Metric) -> bool:
    same = _SAME_OF_MODELS if metric.cost == "model" else _SAME
    return bool(np.allclose(one, other, rtol=same, equal_nan=True))


def _is_inside(values: NDArray[np.float64], bounds: Bounds) -> bool:
    low, high = bounds
    return bool((low is None or (values >= low).all()) and (high is None or (values <= high).all()))


def _says_otherwise(moves: bool, name: str) -> str:
    return f"it {'uses' if moves else 'ignores'} the {name}, but its definition says the opposite"


def _embedded(candidates: Sequence[str], references: Sequence[str]) -> EmbeddingTriples:
    """Triples in which each image lies near its reference, and other texts far from both."""
    towards = np.random.default_rng(5).normal(size=_DIM) * 0.05
    r = np.array([_vector(text) for text in references]).reshape(-1, _DIM)
    g = np.array([_vector(text) for text in candidates]).reshape(-1, _DIM)
    return EmbeddingTriples(r + towards, g, r, "enc:test", C=1.0)


def _vector(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(text.encode("utf-8")[:40].ljust(40, b"\0"), "little")
    direction = np.random.default_rng(seed).normal(size=_DIM)
    return np.asarray(direction / np.linalg.norm(direction))


METRIC_CHECKS = (
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
