"""Sensitivity against numbers computed here from the same values; its files, and what fails."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.doubles import HashEncoder
from tests.evaluation.samples import results_of
from tests.evaluation.sensitivities.samples import KINDS, make_pairs, write_pairs, write_studies
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, InvalidTable, MissingDependency
from vlscore.evaluation import (
    SensitivitySettings,
    compare_kinds,
    score_pairs,
    sensitivity,
    sensitivity_tables,
)
from vlscore.metrics import Scorer, compute, text_metric


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture
def table(tmp_path):
    return write_studies(tmp_path)


def noticed(pairs, metrics, resamples=20, **options):
    """The frames of some metrics of texts, and the scored pairs."""
    scored = score_pairs(pairs, Scorer(metrics=metrics, **options))
    return compare_kinds(pairs, scored, SensitivitySettings(resamples=resamples)), scored


def run_into(out, pairs, table, metrics="vlscore,cosine,bleu-1", format="csv", **options):
    studies = open_studies(table, needs={"image"})
    embedder = StudyEmbedder(HashEncoder(), batch_size=2)
    scorer = Scorer(embedder, metrics=metrics)
    folder = write_pairs(out.parent / "pairs", pairs)
    settings = SensitivitySettings(**{"resamples": 20, **options})
    return sensitivity(folder, out, scorer, settings, studies=studies, format=format)


def noticed_of_texts(folder, out, metrics="rouge-l", *, figure=None, **settings):
    """`sensitivity` of metrics of texts, with few resamples."""
    settings = SensitivitySettings(**{"resamples": 20, **settings})
    return sensitivity(folder, out, Scorer(metrics=metrics), settings, figure=figure)


def _texts(pairs, kind):
    chosen = pairs[pairs["kind"] == kind]
    return list(chosen["perturbed"]), list(chosen["original"])


def test_what_a_metric_sees_and_ignores_is_computed_from_all_drops(pairs):
    (row,) = noticed(pairs, "rouge-l")[0]["strengths"].to_dict("records")
    rows = pairs[pairs["kind"] != "standard-normal"]
    drop = 1 - compute(["rouge-l"], list(rows["perturbed"]), list(rows["original"]))["rouge-l"]
    significant = rows["is_significant"].to_numpy()
    ranked = stats.mannwhitneyu(drop[significant], drop[~significant])
    pairs_of_drops = int(significant.sum()) * int((~significant).sum())
    assert row["sees"] == pytest.approx(ranked.statistic / pairs_of_drops)
    cost = np.abs(drop[~significant]).mean() / drop[significant].mean()
    assert row["ignores"] == pytest.approx(1 - cost)
    assert row["ignores.low"] <= row["ignores"] <= row["ignores.high"]


def test_means_are_those_of_the_metric_itself(pairs):
    kinds = noticed(pairs, "rouge-l")[0]["kinds"]
    assert list(kinds["kind"]) == list(KINDS)
    for row in kinds.to_dict("records"):
        values = compute(["rouge-l"], *_texts(pairs, row["kind"]))["rouge-l"]
        assert row["value"] == pytest.approx(values.mean(), rel=1e-12)
        assert row["drop"] == pytest.approx(1 - values.mean(), rel=1e-12)
        assert (row["pairs"], row["studies"], row["is_significant"]) == (8, 8, KINDS[row["kind"]])


def test_contrasts_are_those_of_the_paper(pairs):
    rows = noticed(pairs, "rouge-l", 50)[0]["contrasts"].to_dict("records")
    compared = [(row["significant"], row["control"]) for row in rows]
    assert compared == [
        ("remove-pathology", "remove-insignificant"),
        ("change-location", "replace-uninformative"),
        ("change-severity", "replace-uninformative"),
    ]
    more, less = (1 - compute(["rouge-l"], *_texts(pairs, kind))["rouge-l"] for kind in compared[0])
    first = rows[0]
    assert first["delta"] == pytest.approx(more.mean() - less.mean(), rel=1e-12)
    assert first["delta.low"] < first["delta"] < first["delta.high"]
    assert first["ratio"] == pytest.approx(more.mean() / less.mean(), rel=1e-12)
    assert first["auc"] == np.mean([(a > b) + (a == b) / 2 for a in more for b in less])
    # Every study has both kinds: the test is the paired one.
    assert first["test"] == "Wilcoxon signed-rank"
    assert first["p_value"] == pytest.approx(stats.wilcoxon(more - less).pvalue)


def test_samples_of_other_studies_are_not_taken_for_pairs(pairs):
    apart = pairs[pairs["kind"].isin(["remove-pathology", "remove-insignificant"])]
    apart = apart.assign(study_id=apart["study_id"] + apart["kind"]).reset_index(drop=True)
    assert list(noticed(apart, "rouge-l")[0]["contrasts"]["test"]) == ["Mann-Whitney U"]


def test_p_values_are_adjusted_over_the_whole_run(pairs):
    contrasts = noticed(pairs, "rouge-l,bleu-1")[0]["contrasts"]
    expected = stats.false_discovery_control(contrasts["p_value"])
    assert contrasts["adjusted_p"].tolist() == pytest.approx(expected.tolist())


def test_a_ratio_of_almost_nothing_is_not_printed(pairs):
    contrasts = noticed(pairs, "findings-f1", 50)[0]["contrasts"]
    # Without an interval, nothing says that the control's drop is not 0.
    around_0 = ~((contrasts["control_drop.low"] > 0) | (contrasts["control_drop.high"] < 0))
    assert (contrasts["ratio"].isna() == around_0).all()
    assert around_0.any()


def test_drop_is_loss_whatever_the_direction_of_the_metric(pairs, table, tmp_path):
    run = run_into(tmp_path / "out", pairs, table, metrics="vlscore,bounding-sphere")
    for _, rows in run.frame("kinds").groupby("metric"):
        drop = rows.set_index("kind")["drop"]
        assert drop["remove-pathology"] > drop["remove-insignificant"] > 0
    assert list(run.frame("metrics")["higher_is_better"]) == [True, False]


def test_embedded_values_equal_the_scorers_and_the_files_hold_them(pairs, table, tmp_path):
    run = run_into(tmp_path / "out", pairs, table, format="parquet")
    values = run.rows("values.parquet")
    studies = {row.id: row.images[0] for row in open_studies(table, needs={"image"})}
    scorer = Scorer(HashEncoder())
    scores = scorer.score(
        [studies[name] for name in pairs["study_id"]],
        list(pairs["perturbed"]),
        list(pairs["original"]),
    )
    np.testing.assert_allclose(values["vlscore.perturbed"], scores.scores, rtol=1e-6)
    np.testing.assert_array_equal(values["vlscore.original"], 1)
    np.testing.assert_array_equal(values["vlscore.drop"], 1 - values["vlscore.perturbed"])
    assert list(values["kind"]) == list(pairs["kind"])
    text = run_into(tmp_path / "csv", pairs, table)
    assert text.rows("values.csv")["bleu-1.drop"].equals(values["bleu-1.drop"])


def test_the_printed_median_is_the_median(pairs):
    frames, _ = noticed(pairs, "bleu-1")
    expected = compute(["bleu-1"], *_texts(pairs, "standard-normal"))["bleu-1"]
    assert frames["normal"]["value"].tolist() == expected.tolist()
    frames["normal"] = pd.DataFrame({"metric": "bleu-1", "value": [0.213, 0.244, 0.348, 0.5]})
    tables = sensitivity_tables(frames, ())
    normal = next(each for each in tables if "normal report" in each.title)
    assert dict(zip(normal.columns, normal.rows[0], strict=True))["median"] == "0.296"


def test_metrics_that_read_by_the_rules_of_the_changes_are_marked(pairs, tmp_path):
    run = noticed_of_texts(
        write_pairs(tmp_path / "pairs", pairs), tmp_path / "out", "findings-f1,rouge-l"
    )
    assert run.record["in_sample"] == ["findings-f1"]
    contrasts = next(each for each in run.tables if each.title.startswith("Table 2"))
    names = [row[0] for row in contrasts.rows]
    assert names == ["Findings F1 (in-sample upper bound)", "ROUGE-L"]
    assert "no evidence of quality" in contrasts.caption
    kinds = next(each for each in run.tables if each.title.startswith("Mean drop"))
    assert "Findings F1 (in-sample upper bound)" in kinds.columns
    assert "ROUGE-L" in kinds.columns


def test_studies_that_fail_are_named_and_the_rest_compared(pairs, table, tmp_path):
    (tmp_path / "3.png").write_bytes(b"no image")
    spoilt = pairs.assign(
        perturbed=pairs["perturbed"].where(pairs["study_id"] != "5", "untokenizable")
    )
    run = run_into(
        tmp_path / "out", spoilt, table, metrics="vlscore,rouge-l", swap_images=True
    )  # fmt: skip
    assert {failure.id for failure in run.failures} == {"3", "5"}
    assert any("3.png" in failure.reason for failure in run.failures)
    assert run.failures[0].row == 19
    # All metrics are compared on the same pairs: the drop of one is not that of easier studies.
    assert set(run.frame("kinds")["studies"]) == {6}
    left = spoilt[~spoilt["study_id"].isin(["3", "5"])].reset_index(drop=True)
    alone = noticed(left, "rouge-l")[0]["kinds"]
    rouge = run.frame("kinds").query("metric == 'rouge-l'").reset_index(drop=True)
    pd.testing.assert_frame_equal(rouge, alone, check_dtype=False)
    assert set(run.frame("swaps")["pairs"]) == {36}
    # The values themselves are kept for every pair that has one.
    assert run.rows("values.csv")["rouge-l.perturbed"].notna().all()


def test_what_one_metric_cannot_value_is_left_out_for_all(pairs):
    @text_metric("fragile", "cannot stand the study")
    def fragile(candidate, reference):
        if reference == pairs["original"][0]:
            raise ValueError("that one")
        return 1.0

    frames, scored = noticed(pairs, [fragile, "rouge-l"])
    assert set(scored.failures.values()) == {"fragile: ValueError: that one"}
    assert set(frames["kinds"]["studies"]) == {7}


def test_one_text_policy_for_every_metric(pairs):
    """A change in the impression is none for those who compare findings."""
    report = "FINDINGS: small left effusion.\nIMPRESSION: {}."
    changed = pairs.assign(
        original=report.format("effusion"), perturbed=report.format("no effusion")
    )
    frames, scored = noticed(changed, "bleu-1,rouge-l,findings-f1", text_policy="findings")
    assert set(frames["kinds"]["drop"]) == {0.0}
    assert all("|txt:findings" in str(each) for each in scored.signatures.values())
    assert (noticed(changed, "bleu-1")[0]["kinds"]["drop"] > 0).all()


def test_pairs_without_the_section_are_named_and_left_out(pairs):
    headed = pairs.assign(perturbed="FINDINGS: " + pairs["perturbed"])
    lacking = headed["study_id"] == "2"
    headed["original"] = headed["original"].where(lacking, "FINDINGS: " + headed["original"])
    frames, scored = noticed(headed, "bleu-1", text_policy="findings")
    assert set(headed["study_id"][list(scored.reasons)]) == {"2"}
    assert "no section for 'findings'" in next(iter(scored.reasons.values()))
    assert set(frames["kinds"]["studies"]) == {7}


def test_every_image_is_embedded_once(pairs, table, tmp_path):
    encoder = HashEncoder()
    embedder = StudyEmbedder(encoder, batch_size=1, cache=False)
    studies = open_studies(table, needs={"image"})
    folder = write_pairs(tmp_path / "pairs", pairs)
    sensitivity(folder, tmp_path / "out", Scorer(embedder, metrics="vlscore"), studies=studies)
    assert encoder.image_calls == 8


def test_metrics_of_images_need_images(pairs, tmp_path):
    folder = write_pairs(tmp_path / "pairs", pairs)
    scorer = Scorer(StudyEmbedder(HashEncoder()), metrics="vlscore")
    with pytest.raises(InvalidSetting, match=r"--studies.*--encoder"):
        sensitivity(folder, tmp_path / "x", scorer)


def test_the_files_and_figures_hold_what_is_printed(tmp_path, pairs, table):
    run = run_into(tmp_path / "out", pairs, table, swap_images=True)
    markdown = (run.folder / "tables.md").read_text(encoding="utf-8")
    for each in run.tables:
        assert all(cell in markdown for row in each.rows for cell in row)
    assert [each.title.partition(".")[0] for each in run.tables[1:3]] == ["Table 2", "Table 3"]
    kinds = next(each for each in run.tables if each.title.startswith("Mean drop"))
    # Significant kinds first, each in the registry's order.
    assert [row[1] for row in kinds.rows] == sorted((row[1] for row in kinds.rows), reverse=True)
    assert "VLScore" in kinds.columns
    assert all(signature in markdown for signature in run.signatures.values())
    for name in ("drops.png", "normal_reports.png"):
        assert (run.folder / name).read_bytes().startswith(b"\x89PNG")
    again = run_into(tmp_path / "out", pairs, table, swap_images=True)
    assert again.unchanged
    assert again.content == run.content
    with pytest.raises(InvalidSetting, match=r"seed: 0 there, 1 now.*--overwrite"):
        run_into(tmp_path / "out", pairs, table, swap_images=True, seed=1)


def test_without_matplotlib_everything_but_the_figure_is_there(tmp_path, pairs, monkeypatch):
    folder = write_pairs(tmp_path / "pairs", pairs)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = noticed_of_texts(folder, tmp_path / "out")
    assert "no figure" in run.notes[0]
    assert not {name for name in results_of(tmp_path / "out") if name.endswith("png")}
    with pytest.raises(MissingDependency, match="matplotlib"):
        noticed_of_texts(folder, tmp_path / "x", figure="png")


def test_slips_are_found_before_anything_is_written(tmp_path, pairs, table):
    folder = write_pairs(tmp_path / "pairs", pairs)
    studies = open_studies(table, needs={"image"})
    shown = Scorer(StudyEmbedder(HashEncoder()), metrics="vlscore")
    texts = Scorer(metrics="rouge-l")
    other = tmp_path / "other.csv"
    other.write_text("id,image\nx,0.png\n")
    absent = open_studies(other, needs={"image"})
    for options, message in (
        ({"figure": "bmp"}, "png, svg, pdf"),
        ({"format": "xls"}, "csv or parquet"),
        ({"settings": SensitivitySettings(swap_images=True)}, "--studies"),
        ({"studies": studies}, "encoder"),
        ({"scorer": shown, "studies": absent}, "none of its studies"),
        ({"settings": SensitivitySettings(lower_is_better=("mine",))}, "name the table too"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            sensitivity(folder, tmp_path / "out", **{"scorer": texts, **options})
    with pytest.raises(InvalidTable, match="vlscore perturb"):
        sensitivity(tmp_path / "absent", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_that_the_command_wrote_come_in_as_they_are(tmp_path, pairs):
    """The layout is that of its own values.csv: the numbers of the tables must be equal."""
    folder = write_pairs(tmp_path / "pairs", pairs)
    run = noticed_of_texts(folder, tmp_path / "first")
    path = tmp_path / "mine.csv"
    written = (run.folder / "values.csv").read_text(encoding="utf-8")
    path.write_text(written.replace("rouge-l", "mine").replace("mine.drop", "drop"))
    again = noticed_of_texts(folder, tmp_path / "second", values=path)
    computed, read = (rows for _, rows in again.frame("kinds").groupby("metric", sort=False))
    assert read["drop.low"].tolist() == computed["drop.low"].tolist()
    assert set(read["metric"]) == {"mine"}
    assert again.signatures["mine"].startswith("mine|file:mine.csv|sha256:")
    assert any("are assumed to be better" in note for note in again.notes)
    turned = noticed_of_texts(
        folder, tmp_path / "third", values=path, lower_is_better=("mine",)
    )  # fmt: skip
    mine = turned.frame("kinds").query("metric == 'mine'")
    assert (mine["drop"] <= 0).all()
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "0,remove-pathology,True,,1,much,0", *lines[2:]]))
    partly = noticed_of_texts(folder, tmp_path / "fourth", values=path)
    (failure,) = partly.failures
    assert (failure.row, failure.id) == (1, "0")
    assert "holds 'much', not a number" in failure.reason
