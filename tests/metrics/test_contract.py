"""What every registered metric must do; a new one is tested here without another line."""

import numpy as np
import pytest

from vlscore.errors import MissingDependency
from vlscore.metrics import METRICS, EmbeddingTriples, compute, find_metric, provider_of, signature

REFERENCES = [
    "There is a small left pleural effusion. The heart is normal in size.",
    "No focal consolidation, effusion or pneumothorax. The lungs are clear.",
    "Large right pneumothorax with collapse of the right lung. Chest tube in place.",
    "Mild cardiomegaly. Vascular congestion without overt pulmonary edema is seen.",
    "A 2.5 cm nodule projects over the right upper lobe; CT is recommended.",
]
# Reports about something else, so that every metric must prefer the references themselves.
OTHERS = REFERENCES[2:] + REFERENCES[:2]
DIM = 16


@pytest.fixture(params=sorted(METRICS))
def metric(request):
    found = METRICS[request.param]
    try:
        provider_of(found).conventions(found)
    except MissingDependency as error:
        pytest.skip(str(error))
    return found


def _vector(text: str) -> np.ndarray:
    seed = int.from_bytes(text.encode("utf-8")[:40].ljust(40, b"\0"), "little")
    direction = np.random.default_rng(seed).normal(size=DIM)
    return direction / np.linalg.norm(direction)


def _embedded(candidates: list[str], references: list[str]) -> EmbeddingTriples:
    """An image lies near its reference; another text has nothing to do with either."""
    towards = np.random.default_rng(5).normal(size=DIM) * 0.05
    r = np.array([_vector(text) for text in references]).reshape(-1, DIM)
    g = np.array([_vector(text) for text in candidates]).reshape(-1, DIM)
    return EmbeddingTriples(r + towards, g, r, "enc:test", C=1.0)


def _values(metric, candidates, references):
    embeddings = _embedded(candidates, references)
    return compute([metric], candidates, references, embeddings=embeddings)[str(metric)]


def test_gives_one_float64_for_each_report(metric):
    values = _values(metric, OTHERS, REFERENCES)
    assert values.dtype == np.float64
    assert values.shape == (len(REFERENCES),)
    assert np.isfinite(values).all()


def test_scores_the_reference_itself_best(metric):
    sign = 1 if metric.higher_is_better else -1
    itself = sign * _values(metric, REFERENCES, REFERENCES)
    other = sign * _values(metric, OTHERS, REFERENCES)
    assert (itself > other).all()


def test_keeps_its_bounds(metric):
    texts = [*REFERENCES, "", "x", "effusion " * 50, "\x00 \u00e9 \U0001f600", "... !!"]
    low, high = metric.bounds
    for reference in texts:
        values = _values(metric, texts, [reference] * len(texts))
        assert low is None or (values >= low).all()
        assert high is None or (values <= high).all()


def test_scores_an_empty_candidate_no_better_than_the_reference(metric):
    sign = 1 if metric.higher_is_better else -1
    empty = sign * _values(metric, [""] * len(REFERENCES), REFERENCES)
    assert (empty < sign * _values(metric, REFERENCES, REFERENCES)).all()


def test_is_deterministic(metric):
    first = _values(metric, OTHERS, REFERENCES)
    assert first.tobytes() == _values(metric, OTHERS, REFERENCES).tobytes()


def test_does_not_depend_on_order_or_neighbours(metric):
    together = _values(metric, OTHERS, REFERENCES)
    backwards = _values(metric, OTHERS[::-1], REFERENCES[::-1])[::-1]
    alone = [_values(metric, [g], [r])[0] for g, r in zip(OTHERS, REFERENCES, strict=True)]
    np.testing.assert_allclose(backwards, together, rtol=1e-12)
    np.testing.assert_allclose(alone, together, rtol=1e-12)


def test_takes_no_reports_at_all(metric):
    assert _values(metric, [], []).shape == (0,)


def test_ignores_what_it_says_it_does_not_use(metric):
    if not metric.uses_embeddings:
        assert not metric.uses_image
        return
    triples = _embedded(OTHERS, REFERENCES)
    noise = np.random.default_rng(6).normal(size=triples.images.shape)
    for name, used in (("images", metric.uses_image), ("references", metric.uses_reference)):
        points = {part: getattr(triples, part) for part in ("images", "candidates", "references")}
        moved = EmbeddingTriples(**{**points, name: noise}, signature="enc:test", C=1.0)
        before = compute([metric], OTHERS, REFERENCES, embeddings=triples)[str(metric)]
        after = compute([metric], OTHERS, REFERENCES, embeddings=moved)[str(metric)]
        assert (before.tobytes() != after.tobytes()) == used


def test_signature_names_the_metric_its_settings_and_the_version(metric):
    text = signature(metric, _embedded(OTHERS, REFERENCES))
    assert text.startswith(metric.name)
    assert "|v:" in text
    for name, value in metric.settings.items():
        assert f"|{name}:{value}" in text
    assert ("enc:test" in text) == metric.uses_embeddings


def test_is_found_by_what_it_prints(metric):
    assert find_metric(str(metric)) == metric
    assert metric.description
    assert metric.citation
