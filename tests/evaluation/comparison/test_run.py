"""Comparing whole systems: values, tables, files, stopping and going on."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.data import open_reports
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import compare, evaluate
from vlscore.evaluation.baselines.training_reports import CONSTANT, NEAREST, NORMAL, RANDOM
from vlscore.metrics import Scorer, compute

FINDINGS = ["effusion", "pneumothorax", "edema", "consolidation"]
REFERENCES = [f"There is a {FINDINGS[k % 4]} of size {k}. The heart is normal." for k in range(24)]
GOOD = [text.replace(" The heart is normal.", "") for text in REFERENCES]
BAD = ["The lungs are clear. No effusion."] * 24
QUICK = {"resamples": 100, "permutations": 199}
TEXT = "bleu-2,rouge-l,findings-f1"
HEADLINES = {"bleu-2 corpus", "rouge-l", "findings-f1 micro (corpus)"}


@pytest.fixture
def write(tmp_path):
    def write(name, candidates, **more):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": f"s{k}", "reference": REFERENCES[k], "candidate": text}
            | {column: values[k] for column, values in more.items()}
            for k, text in enumerate(candidates)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(3)
    names = [f"{k}.png" for k in range(24)]
    for name in names:
        Image.fromarray(rng.integers(0, 256, (32, 32), np.uint8)).save(tmp_path / name)
    return names


def _measured(run):
    return {each["name"]: each for each in run.content["measured"]}


def test_values_are_those_of_the_metrics_and_differences_those_of_the_means(write, tmp_path):
    paths = [write("good", GOOD), write("bad", BAD)]
    run = compare(paths, tmp_path / "out", Scorer(metrics=TEXT), **QUICK)
    found = _measured(run)
    for name, texts in (("good", GOOD), ("bad", BAD)):
        for column, values in compute(TEXT, texts, REFERENCES).items():
            assert found[column]["values"][name]["estimate"] == pytest.approx(values.mean())
            assert found[column]["count"] == 24
    for test in run.content["tested"]:
        values = found[test["name"]]["values"]
        if values["good"]["estimate"] is None or values["bad"]["estimate"] is None:
            # Of an observation that one of them and the references never mention.
            assert test["difference"]["estimate"] is None
            continue
        expected = values["good"]["estimate"] - values["bad"]["estimate"]
        assert test["difference"]["estimate"] == pytest.approx(expected)
    by_name = {test["name"]: test for test in run.content["tested"]}
    assert by_name["rouge-l"]["p_value"] == 1 / 200
    assert "bleu-2 corpus" in by_name
    assert "findings-f1 micro (corpus)" in by_name


def test_corpus_values_are_those_of_evaluate(write, tmp_path):
    path = write("good", GOOD)
    scorer = Scorer(metrics=TEXT)
    run = compare([path], tmp_path / "out", scorer, **QUICK)
    summary = evaluate(path, tmp_path / "evaluated", scorer).summary
    found = _measured(run)
    for metric, each in summary.metrics.items():
        for which, interval in each.corpus.items():
            name = f"{metric} corpus" if which == "corpus" else f"{metric} {which} (corpus)"
            estimate = found[name]["values"]["good"]["estimate"]
            assert (np.nan if estimate is None else estimate) == pytest.approx(
                interval.estimate, nan_ok=True, abs=0
            )


def test_p_values_are_corrected_over_the_whole_table(write, tmp_path):
    half = [*GOOD[:12], *BAD[:12]]
    paths = [write("good", GOOD), write("bad", BAD), write("half", half)]
    run = compare(paths, tmp_path / "out", Scorer(metrics=TEXT), **QUICK)
    tested = run.result.tested
    assert len(tested) == 3 * len(run.result.measured)
    tested = [test for test in tested if not np.isnan(test.p_value)]
    headlines = [test for test in tested if test.name in HEADLINES]
    assert len(headlines) == 3 * 3 < len(tested)
    for family, adjusted in ((headlines, "adjusted"), (tested, "adjusted_all")):
        # Benjamini and Hochberg 1995: the smallest of p m / rank from a p value's rank on.
        family = sorted(family, key=lambda test: test.p_value)
        steps = [t.p_value * len(family) / rank for rank, t in enumerate(family, start=1)]
        for k, test in enumerate(family):
            assert getattr(test, adjusted) == pytest.approx(min(min(steps[k:]), 1))
    assert all(np.isnan(test.adjusted) for test in tested if test.name not in HEADLINES)
    assert any("p is adjusted over 9 tests" in note for note in run.notes)


def test_every_image_and_reference_is_embedded_once(write, images, tmp_path):
    paths = [write("good", GOOD, image=images), write("bad", BAD), write("same", REFERENCES)]
    encoder = HashEncoder()
    scorer = Scorer(encoder, metrics="vlscore,cosine,bleu-1")
    run = compare(paths, tmp_path / "out", scorer, baselines=True, **QUICK)
    assert scorer.embedder.engine.images_embedded == 24
    distinct = {*REFERENCES, *GOOD, *BAD}
    own = [run.content["texts"][name]["count"] for name in (CONSTANT, NORMAL, RANDOM, NEAREST)]
    assert own == [24] * 4
    # One more: the standard normal report.
    assert scorer.embedder.engine.reports_embedded <= len(distinct) + 1
    alone = evaluate(paths[0], tmp_path / "alone", scorer).summary.metrics["vlscore"]
    value = _measured(run)["vlscore"]["values"]["good"]["estimate"]
    assert value == pytest.approx(alone.values["vlscore"].mean.estimate, abs=1e-7)
    assert run.content["texts"]["good"]["truncated"] is not None


def test_baselines_are_systems_that_are_not_tested_against_each_other(write, tmp_path):
    run = compare(
        [write("good", GOOD)], tmp_path / "out", Scorer(metrics=TEXT), baselines=True, **QUICK
    )
    assert run.content["systems"] == ["good", CONSTANT, NORMAL, RANDOM]
    pairs = {(test["first"], test["second"]) for test in run.content["tested"]}
    assert pairs == {("good", CONSTANT), ("good", NORMAL), ("good", RANDOM)}
    assert run.content["texts"][RANDOM]["verbatim"] == 1
    said = " ".join(run.notes)
    assert f"{NEAREST} is left out" in said
    assert "for a fair comparison" in said


def test_training_reports_feed_baselines_and_the_verbatim_share(write, tmp_path):
    train = tmp_path / "train.jsonl"
    reports = [BAD[0], BAD[0], "Old fracture."]
    train.write_text("".join(json.dumps({"report": text}) + "\n" for text in reports))
    run = compare(
        [write("good", GOOD), write("bad", BAD)],
        tmp_path / "out",
        Scorer(metrics="bleu-1"),
        baselines=True,
        train=open_reports(train),
        **QUICK,
    )
    values = _measured(run)["bleu-1"]["values"]
    assert values[CONSTANT] == values["bad"]
    assert run.content["texts"]["bad"]["verbatim"] == 1
    assert run.content["texts"]["good"]["verbatim"] == 0
    assert not any("fair comparison" in note for note in run.notes)


def test_baselines_take_the_section_that_is_scored(write, tmp_path):
    rows = [
        {"id": f"s{k}", "reference": f"INDICATION: Pain. FINDINGS: {text}", "candidate": text}
        for k, text in enumerate(REFERENCES)
    ]
    table = tmp_path / "sections.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    from vlscore.data import TextPolicy

    policy = TextPolicy("all", reference_section="findings")
    scorer = Scorer(metrics="bleu-1", text_policy=policy)
    run = compare([table], tmp_path / "out", scorer, baselines=True, **QUICK)
    assert _measured(run)["bleu-1"]["values"]["sections"]["estimate"] == 1
    assert run.content["texts"]["sections"]["verbatim"] == 1
    assert any(f"{CONSTANT}" in note and "INDICATION" not in note for note in run.notes)


def test_a_study_without_a_value_counts_for_no_system(write, images, tmp_path):
    paths = [write("good", GOOD, image=[*images[:23], "absent.png"]), write("bad", BAD)]
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1")
    run = compare(paths, tmp_path / "out", scorer, **QUICK)
    found = _measured(run)
    assert (found["vlscore"]["count"], found["bleu-1"]["count"]) == (23, 24)
    assert run.content["failed"] == {"good": {"vlscore": 1}, "bad": {"vlscore": 1}}
    assert run.failed == 2
    name, study, reason = run.first_failures(5)[0]
    assert (name, study) == ("good", "s23")
    assert "absent.png" in reason
    shown = run.tables[0].rows[-1]
    assert shown[:3] == ("n", "23", "24")


def test_images_are_not_read_for_metrics_of_texts(write, tmp_path):
    path = write("good", GOOD, image=["absent.png"] * 24)
    assert compare([path], tmp_path / "out", Scorer(metrics="bleu-1"), **QUICK).failed == 0
    scorer = Scorer(HashEncoder(), metrics="vlscore")
    with pytest.raises(InvalidTable, match="no table has a column image with the images"):
        compare([write("bare", GOOD)], tmp_path / "other", scorer, **QUICK)


def test_finished_evaluations_are_taken_up_as_they_are(write, images, tmp_path):
    paths = [write("good", GOOD, image=images), write("bad", BAD, image=images)]
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-2,rouge-l")
    computed = compare(paths, tmp_path / "computed", scorer, **QUICK)
    for path, format in zip(paths, ("parquet", "csv"), strict=True):
        evaluate(path, tmp_path / f"{path.stem}", scorer, format=format)
    folders = [tmp_path / "good", tmp_path / "bad"]
    taken = compare(folders, tmp_path / "taken", **QUICK)
    _check_equal(computed.content, taken.content)
    embedded = scorer.embedder.engine.images_embedded
    mixed = compare([folders[0], paths[1]], tmp_path / "mixed", scorer, **QUICK)
    _check_equal(computed.content, mixed.content)
    assert scorer.embedder.engine.images_embedded == embedded + 24


def _check_equal(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            _check_equal(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            _check_equal(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-6)
    else:
        assert one == other


def test_other_signatures_and_lacking_metrics_are_refused(write, tmp_path):
    for name, texts, metrics in (
        ("good", GOOD, "bleu-2,rouge-l"),
        ("bad", BAD, "bleu-2"),
    ):
        evaluate(write(name, texts), tmp_path / name, Scorer(metrics=metrics))
    with pytest.raises(InvalidSetting, match=r"bad has no values of rouge-l; it has bleu-2"):
        compare([tmp_path / "good", tmp_path / "bad"], tmp_path / "out")
    scorer = Scorer(metrics="bleu-2", text_policy="auto")
    evaluate(write("bad", BAD), tmp_path / "auto", scorer)
    with pytest.raises(InvalidSetting, match=r"auto holds bleu-2 .* txt: auto against all"):
        compare([tmp_path / "bad", tmp_path / "auto"], tmp_path / "out")
    with pytest.raises(InvalidSetting, match="pass a Scorer"):
        compare([tmp_path / "bad"], tmp_path / "out", baselines=True)


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(write, images, tmp_path, monkeypatch):
    from vlscore.evaluation.comparison import comparison_job as module

    monkeypatch.setattr("vlscore.evaluation.study_vectors.STUDIES_AT_ONCE", 8)
    monkeypatch.setattr(module, "_STUDIES_IN_CHUNK", 10)
    paths = [write("good", GOOD, image=images), write("bad", BAD)]

    def scorer():
        return Scorer(HashEncoder(), metrics="vlscore,bleu-2")

    whole = compare(paths, tmp_path / "whole", scorer(), baselines=True, **QUICK)

    class Stopped(Exception):
        pass

    def stop_at(rows):
        def on_progress(done, failed):
            if done >= rows:
                raise Stopped

        return on_progress

    for rows in (16, 34):
        with pytest.raises(Stopped):
            compare(
                paths,
                tmp_path / "parts",
                scorer(),
                baselines=True,
                on_progress=stop_at(rows),
                **QUICK,
            )
    last = scorer()
    run = compare(paths, tmp_path / "parts", last, baselines=True, **QUICK)
    assert run.resumed_from == 34
    assert last.embedder.engine.images_embedded == 0
    assert run.content == whole.content
    for file in (tmp_path / "whole").iterdir():
        if file.name != "run.json":
            assert file.read_bytes() == (tmp_path / "parts" / file.name).read_bytes(), file.name
    again = compare(paths, tmp_path / "parts", scorer(), baselines=True, **QUICK)
    assert again.unchanged
    assert again.tables == run.tables


def test_the_files(write, tmp_path):
    paths = [write("good", GOOD), write("bad", BAD)]
    run = compare(paths, tmp_path / "out", Scorer(metrics=TEXT), **QUICK)
    table = pq.read_table(run.folder / "values.parquet")
    assert table.num_rows == 48
    assert table.column_names[:3] == ["system", "id", "bleu-2"]
    assert b"vlscore.signature.rouge-l" in table.schema.metadata
    expected = compute("rouge-l", GOOD, REFERENCES)["rouge-l"]
    np.testing.assert_array_equal(table["rouge-l"].to_numpy()[:24], expected)

    def rows(name):
        with (run.folder / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    systems = {(row["system"], row["metric"]): row for row in rows("systems.csv")}
    found = _measured(run)["rouge-l"]["values"]["good"]
    assert float(systems["good", "rouge-l"]["value"]) == found["estimate"]
    assert systems["good", "rouge-l"]["n"] == "24"
    assert len(rows("differences.csv")) == len(run.content["tested"])
    assert [row["system"] for row in rows("texts.csv")] == ["good", "bad"]
    markdown = (run.folder / "tables.md").read_text(encoding="utf-8")
    latex = (run.folder / "tables.tex").read_text(encoding="utf-8")
    for signature in run.signatures:
        assert signature in markdown
        assert f"% {signature}" in latex
    assert latex.count(r"\toprule") >= latex.count(r"\caption{") == len(run.tables)


def test_a_metric_of_the_whole_run_is_fitted_to_all_references(write, tmp_path, monkeypatch):
    """As `evaluate` fits it, however the studies are cut into chunks."""
    monkeypatch.setattr("vlscore.evaluation.comparison.comparison_job._STUDIES_IN_CHUNK", 7)
    paths = [write("good", GOOD), write("bad", list(reversed(GOOD)))]
    scorer = Scorer(metrics="cider-d")
    evaluated = evaluate(paths[0], tmp_path / "evaluated", scorer)
    run = compare([tmp_path / "evaluated", *paths], tmp_path / "out", scorer, **QUICK)
    values = _measured(run)["cider-d"]["values"]
    mean = evaluated.summary.metrics["cider-d"].values["cider-d"].mean
    assert values["evaluated"]["estimate"] == pytest.approx(mean.estimate)
    assert values["good"] == values["evaluated"]
    assert values["bad"]["estimate"] < values["good"]["estimate"]
