"""The sensitivity benchmark against numbers computed here from the same values."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.doubles import HashEncoder
from tests.evaluation.sensitivities.samples import KINDS, embed, make_images, make_pairs
from vlscore.data import TextPolicy
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, MissingDependency, UnknownName
from vlscore.evaluation import embed_pairs, image_swap, select_pairs, sensitivity_of_pairs
from vlscore.evaluation.sensitivities.tables import all_tables, normal_table
from vlscore.metrics import compute, text_metric


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
    (result,) = sensitivity_of_pairs(pairs, ["rouge-l"], resamples=50).metrics
    assert [kind.kind for kind in result.kinds] == list(KINDS)
    for kind in result.kinds:
        perturbed, originals = _texts(pairs, kind.kind)
        values = compute(["rouge-l"], perturbed, originals)["rouge-l"]
        assert kind.value.estimate == pytest.approx(values.mean(), rel=1e-12)
        assert kind.drop.estimate == pytest.approx(1 - values.mean(), rel=1e-12)
        assert (kind.pairs, kind.studies) == (8, 8)
        assert kind.is_significant == KINDS[kind.kind]


def test_contrasts_are_those_of_the_paper(pairs):
    (result,) = sensitivity_of_pairs(pairs, ["rouge-l"], resamples=50).metrics
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
    (result,) = sensitivity_of_pairs(apart, ["rouge-l"], resamples=50).metrics
    assert [contrast.test for contrast in result.contrasts] == ["Mann-Whitney U"]


def test_p_values_are_adjusted_over_the_whole_run(pairs):
    result = sensitivity_of_pairs(pairs, ["rouge-l", "bleu-1"], resamples=20)
    contrasts = [contrast for metric in result.metrics for contrast in metric.contrasts]
    expected = stats.false_discovery_control([contrast.p_value for contrast in contrasts])
    assert [contrast.adjusted_p for contrast in contrasts] == pytest.approx(expected.tolist())


def test_drop_is_loss_whatever_the_direction_of_the_metric(pairs, embedded):
    result = sensitivity_of_pairs(pairs, ["vlscore", "bounding-sphere"], embedded, resamples=20)
    by_name = {metric.name: metric for metric in result.metrics}
    for metric in by_name.values():
        drops = {kind.kind: kind.drop.estimate for kind in metric.kinds}
        assert drops["remove-pathology"] > drops["remove-insignificant"] > 0
    assert not by_name["bounding-sphere"].higher_is_better


def test_embedded_values_equal_the_scorers(pairs, embedded):
    from vlscore.metrics import Scorer

    (values,) = sensitivity_of_pairs(pairs, ["vlscore"], embedded, resamples=20).values
    images = make_images()
    table = Scorer(HashEncoder()).score(
        [images[pair.study_id].images[0] for pair in pairs],
        [pair.perturbed for pair in pairs],
        [pair.original for pair in pairs],
    )
    np.testing.assert_allclose(values.perturbed, table.scores, rtol=1e-6)
    np.testing.assert_array_equal(values.originals, 1)


@pytest.mark.parametrize(
    ("values", "median"),
    [([0.2], 0.2), ([0.2, 0.6], 0.4), ([0.213, 0.244, 0.348, 0.5], 0.296), ([3, 1, 2], 2)],
)
def test_the_printed_median_is_the_median(pairs, values, median):
    found = sensitivity_of_pairs(pairs, ["bleu-1"], resamples=10)
    (metric,) = found.metrics
    table = normal_table(replace(found, metrics=[replace(metric, normal=values)]))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["median"] == f"{median:.3f}"


def test_values_for_normal_reports_are_kept_for_the_figure(pairs):
    (result,) = sensitivity_of_pairs(pairs, ["bleu-1"], resamples=20).metrics
    expected = compute(["bleu-1"], *_texts(pairs, "standard-normal"))["bleu-1"]
    assert result.normal == expected.tolist()


def test_studies_that_fail_are_named_and_the_rest_scored(pairs):
    images = make_images()
    del images["3"]
    spoilt = [
        replace(pair, perturbed="untokenizable") if pair.study_id == "5" else pair for pair in pairs
    ]
    embedded = embed(spoilt, images)
    result = sensitivity_of_pairs(spoilt, ["vlscore", "rouge-l"], embedded, resamples=20)
    assert sorted(result.failures) == ["3", "5"]
    assert "no image" in result.failures["3"]
    # All metrics are compared on the same pairs: the drop of one is not that of easier studies.
    for metric in result.metrics:
        assert [kind.studies for kind in metric.kinds] == [6] * len(KINDS)
        assert [kind.pairs for kind in metric.kinds] == [6] * len(KINDS)
    rouge = result.metrics[1]
    left = [pair for pair in spoilt if pair.study_id not in ("3", "5")]
    (alone,) = sensitivity_of_pairs(left, ["rouge-l"], resamples=20).metrics
    assert rouge.kinds == alone.kinds
    assert rouge.contrasts[0].delta == alone.contrasts[0].delta
    # The values themselves are kept for every pair that has one.
    assert np.isfinite(result.values[1].perturbed).sum() == len(pairs)


def test_what_one_metric_cannot_value_is_said_and_left_out_for_all(pairs):
    @text_metric("fragile", "cannot stand the study")
    def fragile(candidate, reference):
        if reference == pairs[0].original:
            raise ValueError("that one")
        return 1.0

    result = sensitivity_of_pairs(pairs, [fragile, "rouge-l"], resamples=20)
    assert result.failures == {"0": "fragile: ValueError: that one"}
    assert [metric.kinds[0].studies for metric in result.metrics] == [7, 7]


def test_without_an_encoder_text_metrics_run_and_the_others_are_named(pairs):
    result = sensitivity_of_pairs(pairs, resamples=20)
    names = [metric.name for metric in result.metrics]
    assert names[:5] == ["bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l"]
    assert "there is no encoder" in result.left_out["vlscore"]


def test_without_images_only_cosine_looks_at_embeddings(pairs):
    embedded = embed(pairs, None)
    result = sensitivity_of_pairs(pairs, resamples=20, embedded=embedded)
    assert result.metrics[0].name == "cosine"
    assert "there are no images" in result.left_out["vlscore"]
    assert "img:" not in result.metrics[0].signature


def test_metrics_asked_for_that_cannot_run_are_refused(pairs, monkeypatch):
    with pytest.raises(InvalidSetting, match=r"--studies.*--encoder"):
        sensitivity_of_pairs(pairs, ["vlscore"])
    with pytest.raises(UnknownName):
        sensitivity_of_pairs(pairs, ["nonsense"])
    from vlscore.metrics.library import meteor as nltk_provider

    monkeypatch.setattr(nltk_provider, "has_corpus", lambda name: False)
    with pytest.raises(MissingDependency, match=r"nltk\.downloader wordnet"):
        sensitivity_of_pairs(pairs, ["meteor"])
    assert "wordnet" in sensitivity_of_pairs(pairs, resamples=20).left_out["meteor"]


def test_one_text_policy_for_every_metric(pairs):
    """A change in the impression is none for those who compare findings."""
    report = "FINDINGS: small left effusion.\nIMPRESSION: {}."
    changed = [
        replace(pair, original=report.format("effusion"), perturbed=report.format("no effusion"))
        for pair in pairs
    ]
    selected, _ = select_pairs(changed, TextPolicy("findings"))
    embedded = embed(selected, make_images())
    names = ["vlscore", "cosine", "bleu-1", "rouge-l", "findings-f1"]
    result = sensitivity_of_pairs(changed, names, embedded, text_policy="findings", resamples=20)
    for metric in result.metrics:
        assert {kind.drop.estimate for kind in metric.kinds} == {0.0}
        assert "|txt:findings" in metric.signature
    whole = sensitivity_of_pairs(changed, ["bleu-1"], resamples=20).metrics[0]
    assert whole.kinds[0].drop.estimate > 0
    assert "|txt:all" in whole.signature


def test_pairs_without_the_section_are_said_and_left_out(pairs):
    with_header = [
        replace(p, original=f"FINDINGS: {p.original}", perturbed=f"FINDINGS: {p.perturbed}")
        if p.study_id != "2"
        else p
        for p in pairs
    ]
    result = sensitivity_of_pairs(with_header, ["bleu-1"], text_policy="findings", resamples=20)
    assert list(result.failures) == ["2"]
    assert "no section for 'findings'" in result.failures["2"]
    assert [kind.studies for kind in result.metrics[0].kinds] == [7] * len(KINDS)


@pytest.mark.parametrize("C", [0, -1.0, float("nan")])
def test_a_constant_that_is_no_positive_number_is_refused(pairs, C):
    embedded = embed_pairs(pairs, StudyEmbedder(HashEncoder()), make_images(), C=C)
    with pytest.raises(InvalidSetting, match="C must be a positive number"):
        sensitivity_of_pairs(pairs, ["vlscore"], embedded, resamples=20)


def test_C_moves_vlscore_and_stands_in_its_signature(pairs):
    results = []
    for C in (20.0, 40.0):
        embedded = embed_pairs(pairs, StudyEmbedder(HashEncoder()), make_images(), C=C)
        (result,) = sensitivity_of_pairs(pairs, ["vlscore"], embedded, resamples=20).metrics
        results.append(result.kinds[0].drop.estimate)
        assert f"|C:{C:g}|" in result.signature
    assert results[0] > results[1] > 0


def test_every_image_and_text_is_embedded_once(pairs):
    encoder = HashEncoder()
    embedder = StudyEmbedder(encoder, batch_size=1)
    embed_pairs(pairs, embedder, make_images())
    texts = {text for pair in pairs for text in (pair.original, pair.perturbed)}
    assert embedder.engine.reports_embedded == encoder.report_rows == len(texts)
    # Eight studies, and the black image.
    assert embedder.engine.images_embedded == 9


def test_more_texts_than_are_remembered_are_embedded_once_all_the_same(pairs, monkeypatch):
    monkeypatch.setattr("vlscore.embedding.engine._REMEMBERED_REPORTS", 5)
    encoder = HashEncoder()
    embed_pairs(pairs, StudyEmbedder(encoder), make_images())
    texts = {text for pair in pairs for text in (pair.original, pair.perturbed)}
    assert encoder.report_rows == len(texts)


def test_a_ratio_of_almost_nothing_is_not_printed(pairs):
    (result,) = sensitivity_of_pairs(pairs, ["findings-f1"], resamples=50).metrics
    for contrast in result.contrasts:
        around_zero = contrast.control_drop.low <= 0 <= contrast.control_drop.high
        assert np.isnan(contrast.ratio) == around_zero
    assert any(np.isnan(contrast.ratio) for contrast in result.contrasts)


def test_tables_tell_n_and_intervals_and_nothing_is_cut(pairs, embedded):
    result = sensitivity_of_pairs(
        pairs, ["vlscore", "bleu-4(smoothing=exp)"], embedded, resamples=50
    )
    swaps = image_swap(pairs, embedded, ["vlscore"], resamples=20)
    tables = all_tables(result, swaps)
    assert [table.title.partition(".")[0] for table in tables[:2]] == ["Table 2", "Table 3"]
    kinds = next(table for table in tables if table.title.startswith("Mean drop"))
    # Significant kinds first, each in the registry's order.
    assert [row[1] for row in kinds.rows] == sorted((r[1] for r in kinds.rows), reverse=True)
    assert all(re.fullmatch(r"-?\d\.\d{3} \[.*\]", cell) for row in kinds.rows for cell in row[4:])
    assert {(row[2], row[3]) for row in kinds.rows} == {("8", "8")}
    removal = tables[0]
    for row in removal.rows:
        cells = dict(zip(removal.columns, row, strict=True))
        assert cells["n"] == "8 / 8"
        delta = float(cells["Δ"].split()[0])
        drops = float(cells["drop"]) - float(cells["control's drop"])
        assert delta == pytest.approx(drops, abs=0.0011)
    for table in tables:
        shown = table.text(80)
        for row in table.rows:
            assert all(cell in shown for cell in row)


def test_result_is_json_and_the_same_again(pairs, embedded):
    first = sensitivity_of_pairs(pairs, ["vlscore", "bleu-4"], embedded, resamples=100)
    again = sensitivity_of_pairs(pairs, ["vlscore", "bleu-4"], embedded, resamples=100)
    text = json.dumps(first.to_dict(), allow_nan=False)
    assert text == json.dumps(again.to_dict(), allow_nan=False)
    assert "signature" in text
