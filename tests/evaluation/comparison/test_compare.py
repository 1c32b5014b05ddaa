"""Comparing whole systems: values, baselines, finished folders, files, refusals."""

import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.evaluation.samples import compare, numbers_of, write_table
from vlscore.cli.metrics import metric_text
from vlscore.data import TextPolicy, open_reports
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import evaluate, methods, paper_table
from vlscore.metrics import Scorer, compute, find_metric
from vlscore.pages import report
from vlscore.stats import p_value

CONSTANT, NORMAL, RANDOM = "baseline:constant", "baseline:normal", "baseline:random"
NEAREST = "baseline:nearest-image"

FINDINGS = ["effusion", "pneumothorax", "edema", "consolidation"]
REFERENCES = [f"There is a {FINDINGS[k % 4]} of size {k}. The heart is normal." for k in range(24)]
GOOD = [text.replace(" The heart is normal.", "") for text in REFERENCES]
BAD = ["The lungs are clear. No effusion."] * 24
QUICK = {"resamples": 100, "permutations": 199}
TEXT = "bleu-2,rouge-l,findings-f1"
PRIMARY = {"bleu-2 corpus", "rouge-l", "findings-f1 micro-13 (corpus)"}


@pytest.fixture
def write(tmp_path):
    def write(name, candidates, references=REFERENCES, **more):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": f"s{k}", "reference": references[k], "candidate": text}
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


def systems_of(run):
    """(Number, system) -> its row."""
    return {(r["metric"], r["system"]): r for r in run.frame("systems").to_dict("records")}


def test_values_are_those_of_the_metrics_and_differences_those_of_the_means(write, tmp_path):
    paths = [write("good", GOOD), write("bad", BAD)]
    run = compare(paths, tmp_path / "out", Scorer(metrics=TEXT), **QUICK)
    found = systems_of(run)
    for name, texts in (("good", GOOD), ("bad", BAD)):
        for column, values in compute(TEXT, texts, REFERENCES).items():
            assert found[column, name]["value"] == pytest.approx(values.mean())
            assert found[column, name]["n"] == 24
    tests = {test["metric"]: test for test in run.frame("differences").to_dict("records")}
    for name, test in tests.items():
        # Of an observation that they and the references never mention there is no value.
        expected = found[name, "good"]["value"] - found[name, "bad"]["value"]
        assert test["difference"] == pytest.approx(expected, nan_ok=True)
    assert tests["rouge-l"]["p"] == 1 / 200
    assert set(tests) >= PRIMARY


def test_one_value_has_one_interval_whichever_command_prints_it(write, tmp_path):
    """More than 1,000 studies: where means are drawn in another way than sums are."""
    rng = np.random.default_rng(1)
    texts = ["Edema.", "Small effusion.", "The lungs are clear.", "Effusion and edema are new."]
    drawn = [[texts[k] for k in rng.integers(4, size=1100)] for _ in range(2)]
    path = write("many", *drawn)
    scorer = Scorer(metrics="bleu-2,findings-f1")
    summary = numbers_of(evaluate(path, tmp_path / "evaluated", scorer))
    compared = systems_of(compare([path], tmp_path / "compared", scorer))
    assert len(summary) == 2 + 3 + 14
    for name, each in summary.items():
        for bound in ("", ".low", ".high"):
            shown = compared[name, "many"][f"value{bound}"]
            assert shown == pytest.approx(each[f"mean{bound}"], abs=1e-12, nan_ok=True), name


def test_p_values_are_adjusted_over_primary_numbers_and_over_all(write, tmp_path):
    half = [*GOOD[:12], *BAD[:12]]
    paths = [write("good", GOOD), write("bad", BAD), write("half", half)]
    run = compare(paths, tmp_path / "out", Scorer(metrics=TEXT), **QUICK)
    tested = run.frame("differences")
    assert len(tested) == 3 * run.frame("systems")["metric"].nunique()
    tested = tested[tested["p"].notna()]
    primary = tested[tested["metric"].isin(PRIMARY)]
    assert len(primary) == 3 * 3 < len(tested)
    for family, adjusted in ((primary, "adjusted_p"), (tested, "adjusted_p_all")):
        # Benjamini and Hochberg 1995: the smallest of p m / rank from a p value's rank on.
        family = family.sort_values("p")
        steps = [p * len(family) / rank for rank, p in enumerate(family["p"], start=1)]
        for k, found in enumerate(family[adjusted]):
            assert found == pytest.approx(min(min(steps[k:]), 1))
    assert tested[~tested["metric"].isin(PRIMARY)]["adjusted_p"].isna().all()


def test_a_single_study_has_no_other_reference_for_a_baseline(write, tmp_path):
    one = write("one", GOOD[:1])
    with pytest.raises(InvalidSetting, match="references of other studies"):
        compare([one], tmp_path / "out", Scorer(metrics=TEXT), baselines=True, **QUICK)


def test_baselines_are_systems_that_are_not_tested_against_each_other(write, tmp_path):
    run = compare(
        [write("good", GOOD)], tmp_path / "out", Scorer(metrics=TEXT), baselines=True, **QUICK
    )
    assert run.frame("texts")["system"].tolist() == ["good", CONSTANT, NORMAL, RANDOM]
    tested = run.frame("differences")
    pairs = set(zip(tested["first"], tested["second"], strict=True))
    assert pairs == {("good", CONSTANT), ("good", NORMAL), ("good", RANDOM)}
    assert run.frame("texts").set_index("system").loc[RANDOM, "verbatim"] == 1
    notes = " ".join(run.notes)
    assert f"{NEAREST} is left out" in notes
    assert "for a fair comparison" in notes


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
    found, texts = systems_of(run), run.frame("texts").set_index("system")
    assert found["bleu-1", CONSTANT]["value"] == found["bleu-1", "bad"]["value"]
    assert texts.loc[["bad", "good"], "verbatim"].tolist() == [1, 0]
    assert not any("fair comparison" in note for note in run.notes)
    assert [note for note in run.notes if "one and the same" in note] == [
        "bad has one and the same report for all 24 studies, whatever they show"
    ]


@pytest.mark.parametrize("candidates", ["all", "findings"])
def test_baselines_take_the_section_that_is_scored(tmp_path, candidates):
    texts = [f"FINDINGS: {text}" if candidates == "findings" else text for text in REFERENCES]
    rows = [
        {"id": f"s{k}", "reference": f"INDICATION: Pain. FINDINGS: {text}", "candidate": texts[k]}
        for k, text in enumerate(REFERENCES)
    ]
    table = tmp_path / "sections.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    policy = TextPolicy(candidates, reference_section="findings")
    scorer = Scorer(metrics="bleu-1", text_policy=policy)
    run = compare([table], tmp_path / "out", scorer, baselines=True, **QUICK)
    found = systems_of(run)
    assert found["bleu-1", "sections"]["value"] == 1
    assert 0 < found["bleu-1", RANDOM]["value"] < 1
    assert found["bleu-1", RANDOM]["n"] == 24
    assert run.frame("texts")["verbatim"].tolist() == [1, 1, 0, 1]


def test_a_number_without_a_direction_has_no_winner(write, tmp_path):
    paths = [write("good", GOOD), write("bad", BAD)]
    both = compare(paths, tmp_path / "both", Scorer(metrics="rouge-l,dale-chall"), **QUICK)
    alone = compare(paths, tmp_path / "alone", Scorer(metrics="rouge-l"), **QUICK)
    assert both.frame("differences").equals(alone.frame("differences"))
    table = paper_table(both)
    (column,) = [k for k, name in enumerate(table.columns) if name.startswith("Dale-Chall")]
    assert table.columns[column] == "Dale-Chall"
    assert {c for _, c in table.best} == {3 - column}
    assert not any(signs[column] for signs in table.signs)
    assert "over 1 test of this table" in table.caption
    assert "dale-chall (neither direction is better)" in both.tables[1].columns
    run = evaluate(paths[0], tmp_path / "scored", Scorer(metrics="rouge-l,dale-chall"))
    assert [row[0] for row in run.tables[0].rows] == [
        "rouge-l",
        "dale-chall (neither direction is better)",
    ]
    assert "direction: neither higher nor lower" in metric_text(find_metric("dale-chall"))
    for each in (both, run):
        report(each.folder, out=tmp_path / "page.html")


def test_images_are_embedded_once_and_a_study_without_a_value_counts_for_none(
    write, images, tmp_path
):
    paths = [write("good", GOOD, image=[*images[:23], "absent.png"]), write("bad", BAD)]
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1")
    run = compare(paths, tmp_path / "out", scorer, **QUICK)
    assert scorer.embedder.work.images_embedded == 23
    found = systems_of(run)
    assert (found["vlscore", "bad"]["n"], found["bleu-1", "bad"]["n"]) == (23, 24)
    assert run.frame("texts")["without_value"].tolist() == ["vlscore 1", "vlscore 1"]
    assert [(each.row, each.id) for each in run.failures] == [("good", "s23"), ("bad", "s23")]
    assert "absent.png" in run.failures[0].reason
    assert paper_table(run).rows[-1] == ("n", "23", "24")
    with_nearest = compare(paths, tmp_path / "near", scorer, baselines=True, **QUICK)
    near = systems_of(with_nearest)
    assert near["vlscore", "good"]["value"] == pytest.approx(found["vlscore", "good"]["value"])
    assert {name for _, name in near} == {"good", "bad", CONSTANT, NORMAL, RANDOM, NEAREST}


@pytest.mark.parametrize("column", ["reference", "report"])
def test_the_nearest_image_is_one_of_the_training_table(write, images, tmp_path, column):
    path = write("good", GOOD, image=images)
    rows = [{"id": f"t{k}", column: BAD[0], "image": name} for k, name in enumerate(images)]
    rows[5][column], rows[6]["image"] = "A fifth report.", "absent.png"
    train = write_table(tmp_path / "train.jsonl", rows)
    scorer = Scorer(HashEncoder(), metrics="vlscore")
    run = compare(
        [path], tmp_path / "o", scorer, baselines=True, train=open_reports(train), **QUICK
    )
    texts = run.frame("texts").set_index("system")
    # Every study's own image is a training image: 22 of them have the one report.
    assert texts.loc[NEAREST, "distinct"] == pytest.approx(2 / 24)
    assert any("train.jsonl: 1 rows cannot be used" in note for note in run.notes)
    written = methods(run.folder).markdown
    assert "nearest-image is the training report whose image is nearest" in written
    train = write_table(tmp_path / "texts.jsonl", [{"id": "t", "report": BAD[0]}])
    run = compare(
        [path], tmp_path / "p", scorer, baselines=True, train=open_reports(train), **QUICK
    )
    assert NEAREST not in run.frame("texts")["system"].tolist()
    assert f"{NEAREST} is left out: {train} has no column of images" in run.notes
    assert not any("an id that" in note for note in run.notes)
    run = compare([path], tmp_path / "q", scorer, baselines=True, train=open_reports(path), **QUICK)
    assert any(f"24 studies have an id that {path} has as well" in note for note in run.notes)


def test_images_of_all_tables_are_those_of_the_same_studies(write, images, tmp_path):
    scorer = Scorer(HashEncoder(), metrics="vlscore")
    (tmp_path / "copies").mkdir()
    for name in images:
        shutil.copy(tmp_path / name, tmp_path / "copies" / f"c{name}")
    good, bad = write("good", GOOD, image=images), write("bad", BAD)
    copies = write("copies", BAD, image=[f"copies/c{name}" for name in images])
    absent = write("absent", BAD, image=["none.png", "", *images[2:]])
    swapped = write("swapped", BAD, image=[images[1], images[0], *images[2:]])
    texts = Scorer(metrics="bleu-1")
    assert not _image_notes(compare([good, copies, bad], tmp_path / "a", scorer, **QUICK))
    assert not _image_notes(compare([good, swapped], tmp_path / "b", texts, **QUICK))
    (note,) = _image_notes(compare([good, absent], tmp_path / "c", scorer, **QUICK))
    assert note.startswith(f"{absent} has no image that is there for 2 studies (s0, s1)")
    said = re.escape(f"{swapped} has other images than {good} for 2 studies (s0, s1)")
    with pytest.raises(InvalidTable, match=said):
        compare([good, swapped], tmp_path / "d", scorer, **QUICK)
    for path in (good, swapped):
        evaluate(path, tmp_path / f"run-{path.stem}", scorer)
    with pytest.raises(InvalidTable, match=said):
        compare([tmp_path / "run-good", tmp_path / "run-swapped"], tmp_path / "e", **QUICK)


def _image_notes(run):
    return [note for note in run.notes if "images are those of" in note]


def test_images_are_not_read_for_metrics_of_texts(write, tmp_path):
    path = write("good", GOOD, image=["absent.png"] * 24)
    assert not compare([path], tmp_path / "out", Scorer(metrics="bleu-1"), **QUICK).failures
    scorer = Scorer(HashEncoder(), metrics="vlscore")
    with pytest.raises(InvalidTable, match="no table has a column image with the images"):
        compare([write("bare", GOOD)], tmp_path / "other", scorer, **QUICK)


def test_other_signatures_and_lacking_metrics_are_refused(write, tmp_path):
    for name, texts, metrics in (("good", GOOD, "bleu-2,rouge-l"), ("bad", BAD, "bleu-2")):
        evaluate(write(name, texts), tmp_path / name, Scorer(metrics=metrics))
    with pytest.raises(InvalidSetting, match=r"bad has no values of rouge-l; it has bleu-2"):
        compare([tmp_path / "good", tmp_path / "bad"], tmp_path / "out")
    scorer = Scorer(metrics="bleu-2", text_policy="auto")
    evaluate(write("bad", BAD), tmp_path / "auto", scorer)
    with pytest.raises(InvalidSetting, match=r"auto holds bleu-2 .* txt: auto against all"):
        compare([tmp_path / "bad", tmp_path / "auto"], tmp_path / "out")
    with pytest.raises(InvalidSetting, match="pass a Scorer"):
        compare([tmp_path / "bad"], tmp_path / "out", baselines=True)
    with pytest.raises(InvalidSetting, match="no system is called third"):
        compare([tmp_path / "bad"], tmp_path / "out", against="third")


def test_a_finished_comparison_is_not_computed_again_and_another_is_refused(
    write, images, tmp_path
):
    paths = [write("good", GOOD, image=images), write("bad", BAD)]
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-2")
    out = tmp_path / "out"
    run = compare(paths, out, scorer, **QUICK)
    embedded = scorer.embedder.work.images_embedded
    again = compare(paths, out, scorer, **QUICK)
    assert again.unchanged
    assert again.content == run.content
    assert scorer.embedder.work.images_embedded == embedded
    for change, message in (
        ({"seed": 1}, "seed: 0 there, 1 now"),
        ({"against": "good"}, "against: nothing there, good now"),
        ({"baselines": True}, "baselines: False there, True now"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            compare(paths, out, scorer, **QUICK, **change)
    with pytest.raises(InvalidSetting, match="metrics rouge-l: nothing there"):
        compare(paths, out, Scorer(scorer.embedder, metrics="vlscore,bleu-2,rouge-l"), **QUICK)
    with pytest.raises(InvalidSetting, match="systems bad"):
        compare(paths[:1], out, scorer, **QUICK)
    (tmp_path / "3.png").write_bytes((tmp_path / "4.png").read_bytes())
    with pytest.raises(InvalidSetting, match=r"3\.png has been replaced"):
        compare(paths, out, scorer, **QUICK)


def test_metrics_computed_elsewhere_are_columns_of_the_systems_that_have_them(write, tmp_path):
    paths = [write("good", GOOD), write("bad", BAD)]
    values = tmp_path / "elsewhere.csv"
    rows = [f"good,s{k},{k / 24},{k}" for k in range(24)]
    values.write_text("\n".join(["system,id,green,radcliq-v1", *rows, "other,s0,1,1", ""]))
    run = compare(
        paths, tmp_path / "o", Scorer(metrics="rouge-l"), values=values, baselines=True, **QUICK
    )
    found = systems_of(run)
    assert found["green", "good"]["value"] == pytest.approx(np.mean(np.arange(24) / 24))
    assert (found["green", "good"]["n"], found["rouge-l", "good"]["n"]) == (24, 24)
    assert not found["radcliq-v1", "good"]["higher_is_better"]
    assert np.isnan(found["green", "bad"]["value"])
    assert np.isnan(found["green", CONSTANT]["value"])
    assert "green" not in set(run.frame("differences")["metric"])
    assert run.signatures["green"].startswith("values|file:elsewhere.csv|sha256:")
    assert "1 row of no system and study compared" in " ".join(run.notes)
    assert not run.failures
    # Of a system with some values, every other one is missing: an empty cell, a row too few.
    rows[3] = "good,s3,,3"
    values.write_text("\n".join(["system,id,green,radcliq-v1", *rows[:-1], ""]))
    run = compare(paths, tmp_path / "q", Scorer(metrics="rouge-l"), values=values, **QUICK)
    assert [(each.row, each.id, each.reason) for each in run.failures] == [
        ("good", "s3", f"{values} has no value of green"),
        ("good", "s23", f"{values} has no value of green; {values} has no value of radcliq-v1"),
    ]
    with pytest.raises(InvalidSetting, match="name the table too"):
        compare(paths, tmp_path / "p", Scorer(metrics="rouge-l"), lower_is_better=["x"], **QUICK)


def test_a_metric_of_the_whole_run_is_fitted_to_all_references(write, tmp_path):
    paths = [write("good", GOOD), write("bad", list(reversed(GOOD)))]
    scorer = Scorer(metrics="cider-d")
    mean = numbers_of(evaluate(paths[0], tmp_path / "evaluated", scorer))["cider-d"]["mean"]
    found = systems_of(compare([tmp_path / "evaluated", *paths], tmp_path / "o", scorer, **QUICK))
    assert found["cider-d", "evaluated"]["value"] == pytest.approx(mean)
    assert found["cider-d", "good"]["value"] == found["cider-d", "evaluated"]["value"]
    assert found["cider-d", "bad"]["value"] < found["cider-d", "good"]["value"]


def test_references_that_differ_in_blanks_alone_are_matched_on_request(write, tmp_path):
    spaced = [*REFERENCES]
    spaced[:2] = REFERENCES[0].replace(". ", ".\n ", 1), REFERENCES[1].replace(".", " .")
    tables = [write("ours", GOOD), write("theirs", BAD, spaced)]
    scorer = Scorer(metrics="rouge-l")
    with pytest.raises(InvalidTable, match=r"2 studies \(s0, s1\) differ only in blanks"):
        compare(tables, tmp_path / "no", scorer, **QUICK)
    run = compare(tables, tmp_path / "yes", scorer, ignore_blanks=True, **QUICK)
    assert "2 studies (s0, s1) differ in blanks alone" in " ".join(run.notes)
    same = compare([tables[0], write("theirs", BAD)], tmp_path / "same", scorer, **QUICK)
    assert run.content["frames"] == same.content["frames"]
    # Another word is another reference.
    other = [spaced[0].replace("effusion", "edema"), *spaced[1:]]
    tables[1] = write("theirs", BAD, other)
    with pytest.raises(InvalidTable, match=r"references of 1 study \(s0\) differ between") as told:
        compare(tables, tmp_path / "x", scorer, ignore_blanks=True, **QUICK)
    # Reports are data of patients: the message says where they differ, not what they say.
    assert "edema" not in str(told.value)
    assert re.search(r"from character \d+ on", str(told.value))


def test_support_and_undefined_values_of_rare_observations(write, tmp_path):
    """One reference of 40: a resample lacks it with the probability (39 / 40) ** 40."""
    references = ["Consolidation in the left base."] + ["Clear lungs."] * 39
    paths = [
        write("first", ["Clear lungs."] * 40, references),
        write("second", references, references),
    ]
    scorer = Scorer(metrics="findings-f1")
    summary = numbers_of(evaluate(paths[0], tmp_path / "evaluated", scorer))
    rare = summary["findings-f1 consolidation (corpus)"]
    assert (rare["mean"], rare["support"]) == (0, 1)
    assert np.isnan([rare["mean.low"], rare["mean.high"]]).all()
    # Three standard errors of 2,000 resamples.
    assert rare["left_out"] == pytest.approx((39 / 40) ** 40, abs=0.033)
    never = summary["findings-f1 edema (corpus)"]
    assert np.isnan(never["mean"])
    assert never["support"] == 0
    run = compare(paths, tmp_path / "out", scorer, permutations=199)
    found = systems_of(run)
    for name, value in (("first", 0.0), ("second", 1.0)):
        each = found["findings-f1 consolidation (corpus)", name]
        assert (each["value"], each["support"]) == (value, 1)
        assert np.isnan([each["value.low"], each["value.high"]]).all()
    tests = {test["metric"]: test for test in run.frame("differences").to_dict("records")}
    assert tests["findings-f1 consolidation (corpus)"]["difference"] == -1
    assert np.isnan(tests["findings-f1 edema (corpus)"]["p"])
    systems = next(table for table in run.tables if table.title.startswith("All numbers"))
    row = dict(zip(systems.columns, systems.rows[-1], strict=True))
    assert row["findings-f1 consolidation (corpus)"] == "1"
    row = dict(zip(systems.columns, systems.rows[0], strict=True))
    assert row["findings-f1 consolidation (corpus)"] == "0.0000 [-]"
    assert "the references state the observation fewer than 10 times" in " ".join(
        systems.text().split()
    )


def test_subgroups_are_compared_over_their_studies_alone(write, tmp_path):
    """Each group's numbers are those of a comparison of tables with these studies alone."""
    sex = ["f" if k % 3 else ("m" if k % 2 else None) for k in range(24)]
    scorer = Scorer(metrics="bleu-2,rouge-l")
    paths = [write("good", GOOD, sex=sex), write("bad", BAD)]
    run = compare(paths, tmp_path / "out", scorer, by=["sex"], **QUICK)
    groups, tests = run.frame("subgroups"), run.frame("subgroup_differences")
    assert sorted(groups["value"].unique()) == ["(none)", "f", "m"]
    for value in ("f", "m"):
        rows = [k for k in range(24) if sex[k] == value]
        own = [
            write(f"{name}-{value}", [texts[k] for k in rows], [REFERENCES[k] for k in rows])
            for name, texts in (("good", GOOD), ("bad", BAD))
        ]
        alone = compare(own, tmp_path / value, scorer, **QUICK)
        primary = alone.frame("systems").query("primary").reset_index(drop=True)
        found = groups[groups["value"] == value].reset_index(drop=True)
        assert found["metric"].tolist() == primary["metric"].tolist()
        for name in ("", ".low", ".high"):
            np.testing.assert_allclose(found[f"number{name}"], primary[f"value{name}"])
        expected = alone.frame("differences")
        expected = expected[expected["metric"].isin(primary["metric"])].reset_index(drop=True)
        mine = tests[tests["value"] == value].reset_index(drop=True)
        np.testing.assert_allclose(mine["difference"], expected["difference"])
        np.testing.assert_allclose(mine["p"], expected["p"])
        assert (mine["adjusted_p"] >= mine["p"]).all()
    table = next(each for each in run.tables if each.title == "rouge-l by sex")
    assert table.columns[:4] == ("sex", "n", "good", "bad")
    assert [row[:2] for row in table.rows] == [("(none)", "4"), ("f", "16"), ("m", "4")]
    with pytest.raises(InvalidSetting, match="by: sex there, nothing now"):
        compare(paths, tmp_path / "out", scorer, **QUICK)
    with pytest.raises(InvalidTable, match="no table has a column age"):
        compare(paths, tmp_path / "other", scorer, by=["age"], **QUICK)
    many = [write("many", GOOD * 3, REFERENCES * 3, who=[f"p{k}" for k in range(72)])]
    with pytest.raises(InvalidSetting, match="who has 72 different values"):
        compare(many, tmp_path / "other", scorer, by=["who"], **QUICK)


@pytest.mark.parametrize("name", ["n", "value", "system", "references"])
def test_a_system_may_be_called_like_a_column_of_the_tables(write, tmp_path, name):
    paths = [write(name, GOOD, sex=["f", "m"] * 12), write("bad", BAD)]
    run = compare(paths, tmp_path / "out", Scorer(metrics="rouge-l"), by=["sex"], **QUICK)
    table = next(each for each in run.tables if each.title == "rouge-l by sex")
    pair = f"{name} - bad"
    assert table.columns == ("sex", "n", name, "bad", pair, f"p of {pair}")
    assert [row[:2] for row in table.rows] == [("f", "12"), ("m", "12")]
    assert run.frame("language")["earlier_image"].notna().tolist() == [True, True, False]


def test_groups_of_many_systems_have_a_row_for_each_difference(write, tmp_path):
    sex = ["f", "m"] * 12
    texts = {"a": GOOD, "b": BAD, "c": GOOD, "d": BAD}
    paths = [write(name, own, sex=sex) for name, own in texts.items()]
    run = compare(paths, tmp_path / "out", Scorer(metrics="rouge-l"), by=["sex"], **QUICK)
    numbers, tests = (each for each in run.tables if each.title.endswith("rouge-l by sex"))
    assert numbers.columns == ("sex", "n", "a", "b", "c", "d")
    assert tests.columns == ("sex", "systems", "difference", "p")
    expected = run.frame("subgroup_differences")
    assert [row[:2] for row in tests.rows] == [
        (each["value"], f"{each['first']} - {each['second']}")
        for each in expected.to_dict("records")
    ]
    assert tests.rows[0][2].startswith(f"{expected['difference'][0]:.3f}")
    assert tests.rows[1][3] == p_value(expected["adjusted_p"][1])


def test_a_note_says_whether_a_system_is_better_than_always_normal(tmp_path):
    """A copy of the references is better; one sentence for all studies is not."""
    normal = "The heart is normal in size. The lungs are clear."
    references = [f"Nodule {k} on the left. {normal}" if k % 2 else normal for k in range(40)]
    tables = []
    for name, of in (("copies", lambda text: text), ("silent", lambda _: "Xyz.")):
        rows = [
            {"id": f"s{k}", "reference": text, "candidate": of(text)}
            for k, text in enumerate(references)
        ]
        tables.append(write_table(tmp_path / f"{name}.jsonl", rows))
    result = compare(tables, tmp_path / "out", Scorer(metrics="rouge-l"), baselines=True)
    said = [note for note in result.notes if "always normal" in note]
    what = "significantly better than reports that are always normal (baseline:normal) in"
    assert said == [f"copies is {what} ROUGE-L", f"silent is {what} no number; not in ROUGE-L"]
