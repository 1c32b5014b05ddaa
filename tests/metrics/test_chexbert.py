"""CheXbert's metrics against the released package's numbers, and by hand."""

import numpy as np
import pytest

from tests.metrics.contract import check_metric, corpus_of, values_of
from tests.metrics.networks.constructed import LONG, REPORTS, golden, write_chexbert
from vlscore.metrics import compute, find_metric, support_of_sums
from vlscore.metrics.library import chexbert as library


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_chexbert(tmp_path_factory.mktemp("chexbert"))


@pytest.fixture
def chosen(weights):
    return lambda name, **settings: find_metric(name)(weights=str(weights), **settings)


def _pairs():
    pairs = golden("chexbert")["pairs"]
    return [REPORTS[g] for g, _ in pairs], [REPORTS[r] for _, r in pairs]


@pytest.mark.parametrize("uncertain", ["positive", "negative", "ignored"])
def test_f1_keeps_the_contract(chosen, uncertain):
    check_metric(chosen("chexbert-f1", uncertain=uncertain))


def test_similarity_keeps_the_contract(chosen):
    check_metric(chosen("chexbert-similarity"))


def test_corpus_values_are_those_of_f1chexbert(chosen):
    metric = chosen("chexbert-f1", absent="zero")
    found = corpus_of(values_of(metric, *_pairs()), metric=find_metric(metric))
    expected = golden("chexbert")["f1"]
    published = {name: float(found[name][0]) for name in expected}
    assert published == pytest.approx(expected, abs=1e-12)
    ours = {"micro-13", "macro-13", "weighted-13", "weighted-14", "weighted-5"}
    assert set(found) - set(expected) == ours


def test_similarity_is_the_cosine_of_the_packages_vectors(chosen):
    vectors = np.array(golden("chexbert")["cls"])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = [units[g] @ units[r] for g, r in golden("chexbert")["pairs"]]
    metric = chosen("chexbert-similarity")
    assert compute(metric, *_pairs())[str(metric)] == pytest.approx(expected, abs=1e-5)


def _annotated(monkeypatch, **classes):
    """Two reports of known classes: those not named are blank."""
    from vlscore.metrics import CheXbertAnnotation
    from vlscore.metrics.networks.chexbert_network import OBSERVATIONS

    def annotations(memo, weights, vocabulary, reports):
        found = []
        for report in reports:
            read = np.zeros(14, dtype=np.int64)
            for name, value in classes[report].items():
                read[OBSERVATIONS.index(name)] = value
            found.append(CheXbertAnnotation(read, np.ones(3, np.float32), False))
        return found

    monkeypatch.setattr("vlscore.metrics.networks.chexbert_network.annotations", annotations)
    monkeypatch.setattr(library._CheXbertMetric, "files", lambda *_: (None, None))
    monkeypatch.setattr(library._CheXbertMetric, "facts", lambda *_: {})


@pytest.mark.parametrize(
    ("uncertain", "f1", "five"),
    [("positive", 0.8, 2 / 3), ("negative", 2 / 3, 0.0), ("ignored", 1.0, 1.0)],
)
def test_policies_for_what_is_uncertain(monkeypatch, uncertain, f1, five):
    # Classes: 1 positive, 2 negative, 3 uncertain.
    _annotated(
        monkeypatch,
        candidate={"Edema": 3, "Fracture": 1, "Atelectasis": 2},
        reference={"Edema": 1, "Fracture": 1, "Atelectasis": 3},
    )
    metric = find_metric("chexbert-f1")(uncertain=uncertain)
    found = compute(metric, ["candidate"], ["reference"])
    assert found[str(metric)] == pytest.approx([f1])
    assert found[f"{metric}.five"] == pytest.approx([five])


def test_an_observation_that_no_report_has_is_left_out_of_the_corpus_values(monkeypatch):
    """By hand: edema is a hit once and missed once, fracture is a hit; the rest never occurs."""
    _annotated(monkeypatch, two={"Edema": 1, "Fracture": 1}, one={"Edema": 1}, none={})
    texts = (["two", "none"], ["two", "one"])
    values = values_of("chexbert-f1", *texts)
    found = {name: value[0] for name, value in corpus_of(values).items()}
    assert found["macro-14"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["macro-5"] == found["micro-5"] == pytest.approx(2 / 3)
    assert found["micro-13"] == found["micro-14"] == pytest.approx(4 / 5)
    support = support_of_sums(find_metric("chexbert-f1"), values.statistics.sum(0))
    assert support == {
        "micro-13": 3,
        "macro-13": 1,
        "weighted-13": 3,
        "micro-14": 3,
        "macro-14": 1,
        "weighted-14": 3,
        "micro-5": 2,
        "macro-5": 2,
        "weighted-5": 2,
    }
    assert found["weighted-14"] == pytest.approx((2 * 2 / 3 + 1) / 3)
    zero = find_metric("chexbert-f1")(absent="zero")
    as_published = corpus_of(values_of(zero, *texts), metric=find_metric(zero))
    assert as_published["macro-14"][0] == pytest.approx((2 / 3 + 1) / 14)
    assert corpus_of(values_of(zero, ["none"], ["none"]), metric=find_metric(zero)) == {
        name: [0.0] for name in support
    }
    values = values_of("chexbert-f1", ["none"], ["none"])
    assert all(np.isnan(v[0]) for v in corpus_of(values).values())


def test_two_reports_without_observations_agree(monkeypatch):
    _annotated(monkeypatch, nothing={}, something={"Edema": 1})
    found = compute("chexbert-f1", ["nothing", "nothing"], ["nothing", "something"])
    assert found["chexbert-f1"].tolist() == [1.0, 0.0]


def test_a_cut_report_is_flagged(chosen):
    for name in ("chexbert-f1", "chexbert-similarity"):
        metric = chosen(name)
        found = compute(metric, [REPORTS[0], LONG, REPORTS[0]], [REPORTS[0], REPORTS[0], LONG])
        assert found[f"{metric}.truncated"].tolist() == [0.0, 1.0, 1.0]


def test_a_blank_candidate_has_no_label_whatever_the_network_reads_in_it(monkeypatch):
    """By hand: the network reads No Finding in both; a text without words cannot state it."""
    normal = {"No Finding": 1}
    _annotated(monkeypatch, **{"": normal, "normal": normal})
    values = values_of("chexbert-f1", ["", "normal"], ["normal", "normal"])
    assert values.columns[0].tolist() == [0.0, 1.0]
    corpus = corpus_of(values)
    assert corpus["micro-14"][0] == pytest.approx(2 / 3)
    assert np.isnan(corpus["micro-13"][0])
