"""The sensitivity benchmark against numbers computed here from the same values."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.meta.samples import KINDS, embed, make_images, make_pairs
from vlscore.errors import InvalidSetting, MissingDependency, UnknownName
from vlscore.meta import sensitivity
from vlscore.metrics import compute


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture(scope="module")
def embedded(pairs):
    return embed(pairs, make_images())


def _texts(pairs, kind):
    chosen = [pair for pair in pairs if pair.kind == kind]
    return [pair.perturbed for pair in chosen], [pair.original for pair in chosen]


def test_means_are_those_of_the_metric_itself(pairs):
    (result,) = sensitivity(pairs, ["rouge-l"], resamples=50).metrics
    assert [kind.kind for kind in result.kinds] == list(KINDS)
    for kind in result.kinds:
        perturbed, originals = _texts(pairs, kind.kind)
        values = compute(["rouge-l"], perturbed, originals)["rouge-l"]
        assert kind.value.estimate == pytest.approx(values.mean(), rel=1e-12)
        assert kind.drop.estimate == pytest.approx(1 - values.mean(), rel=1e-12)
        assert (kind.pairs, kind.studies) == (8, 8)
        assert kind.is_significant == KINDS[kind.kind]


def test_contrasts_are_those_of_the_paper(pairs):
    (result,) = sensitivity(pairs, ["rouge-l"], resamples=50).metrics
    compared = [(c.comparison.significant, c.comparison.control) for c in result.contrasts]
    assert compared == [
        ("remove-pathology", "remove-insignificant"),
        ("change-location", "replace-uninformative"),
        ("change-severity", "replace-uninformative"),
    ]
    first = result.contrasts[0]
    more, less = (1 - compute(["rouge-l"], *_texts(pairs, kind))["rouge-l"] for kind in compared[0])
    assert first.delta.estimate == pytest.approx(more.mean() - less.mean(), rel=1e-12)
    assert first.delta.low < first.delta.estimate < first.delta.high
    assert first.ratio == pytest.approx(more.mean() / less.mean(), rel=1e-12)
    assert first.auc == np.mean([(a > b) + (a == b) / 2 for a in more for b in less])
    # Every study has both kinds: the test is the paired one.
    assert first.test == "Wilcoxon signed-rank"
    assert first.p_value == pytest.approx(stats.wilcoxon(more - less).pvalue)


def test_samples_of_other_studies_are_not_taken_for_pairs(pairs):
    apart = [
        replace(pair, study_id=f"{pair.study_id} {pair.kind}")
        for pair in pairs
        if pair.kind in ("remove-pathology", "remove-insignificant")
    ]
    (result,) = sensitivity(apart, ["rouge-l"], resamples=50).metrics
    assert [contrast.test for contrast in result.contrasts] == ["Mann-Whitney U"]


def test_p_values_are_adjusted_over_the_whole_run(pairs):
    result = sensitivity(pairs, ["rouge-l", "bleu-1"], resamples=20)
    contrasts = [contrast for metric in result.metrics for contrast in metric.contrasts]
    expected = stats.false_discovery_control([contrast.p_value for contrast in contrasts])
    assert [contrast.adjusted_p for contrast in contrasts] == pytest.approx(expected.tolist())


def test_drop_is_loss_whatever_the_direction_of_the_metric(pairs, embedded):
    result = sensitivity(pairs, ["vlscore", "bounding_sphere"], embedded, resamples=20)
    by_name = {metric.name: metric for metric in result.metrics}
    for metric in by_name.values():
        drops = {kind.kind: kind.drop.estimate for kind in metric.kinds}
        assert drops["remove-pathology"] > drops["remove-insignificant"] > 0
    assert not by_name["bounding_sphere"].higher_is_better


def test_embedded_values_equal_the_scorers(pairs, embedded):
    from tests.doubles import HashEncoder
    from vlscore.scorer import Scorer

    (values,) = sensitivity(pairs, ["vlscore"], embedded, resamples=20).values
    images = make_images()
    table = Scorer(HashEncoder()).score(
        [images[pair.study_id].images[0] for pair in pairs],
        [pair.perturbed for pair in pairs],
        [pair.original for pair in pairs],
    )
    np.testing.assert_allclose(values.perturbed, table.scores, rtol=1e-6)
    np.testing.assert_array_equal(values.originals, 1)


def test_values_for_normal_reports_are_kept_for_the_figure(pairs):
    (result,) = sensitivity(pairs, ["bleu-1"], resamples=20).metrics
    expected = compute(["bleu-1"], *_texts(pairs, "standard-normal"))["bleu-1"]
    assert result.normal == expected.tolist()


def test_studies_that_fail_are_named_and_the_rest_scored(pairs):
    images = make_images()
    del images["3"]
    spoilt = [
        replace(pair, perturbed="untokenizable") if pair.study_id == "5" else pair for pair in pairs
    ]
    embedded = embed(spoilt, images)
    result = sensitivity(spoilt, ["vlscore", "rouge-l"], embedded, resamples=20)
    assert sorted(result.failures) == ["3", "5"]
    assert "no image" in result.failures["3"]
    counts = {metric.name: metric.kinds[0].studies for metric in result.metrics}
    assert counts == {"vlscore": 6, "rouge-l": 8}


def test_without_an_encoder_text_metrics_run_and_the_others_are_named(pairs):
    result = sensitivity(pairs, resamples=20)
    names = [metric.name for metric in result.metrics]
    assert names[:4] == ["bleu-1", "bleu-2", "bleu-4", "rouge-l"]
    assert "name an encoder" in result.left_out["vlscore"]


def test_without_images_only_cosine_looks_at_embeddings(pairs):
    embedded = embed(pairs, None)
    result = sensitivity(pairs, resamples=20, embedded=embedded)
    assert result.metrics[0].name == "cosine"
    assert "give the studies' images" in result.left_out["vlscore"]
    assert "img:" not in result.metrics[0].signature


def test_metrics_asked_for_that_cannot_run_are_refused(pairs, monkeypatch):
    with pytest.raises(InvalidSetting, match="name an encoder"):
        sensitivity(pairs, ["vlscore"])
    with pytest.raises(UnknownName):
        sensitivity(pairs, ["nonsense"])
    from vlscore.metrics.providers import nltk_provider

    def absent(self):
        raise MissingDependency("no WordNet")

    monkeypatch.setattr(nltk_provider.NltkProvider, "_wordnet", absent)
    with pytest.raises(MissingDependency, match="no WordNet"):
        sensitivity(pairs, ["meteor"])
    assert sensitivity(pairs, resamples=20).left_out["meteor"] == "no WordNet"


def test_result_is_json_and_the_same_again(pairs, embedded):
    first = sensitivity(pairs, ["vlscore", "bleu-4"], embedded, resamples=100)
    again = sensitivity(pairs, ["vlscore", "bleu-4"], embedded, resamples=100)
    text = json.dumps(first.to_dict(), allow_nan=False)
    assert text == json.dumps(again.to_dict(), allow_nan=False)
    assert "signature" in text
