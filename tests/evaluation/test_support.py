"""F1 of observations that are rare or never mentioned: undefined, with its support beside it."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from vlscore.evaluation import compare, evaluate, summary_text, support_table
from vlscore.evaluation.comparison import statistics as results
from vlscore.evaluation.comparison.tables import all_tables
from vlscore.evaluation.scoring.summary import read_summary
from vlscore.metrics import Scorer
from vlscore.stats import Interval

REFERENCES = ["Consolidation in the left base."] + ["Clear lungs."] * 39
CANDIDATES = ["Clear lungs."] * 40


@pytest.fixture
def table(tmp_path):
    def write(name, candidates, references):
        path = tmp_path / f"{name}.jsonl"
        rows = zip(candidates, references, strict=True)
        lines = [
            json.dumps({"id": f"s{k}", "reference": r, "candidate": c})
            for k, (c, r) in enumerate(rows)
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


def test_resamples_without_the_observation_are_left_out_and_their_share_is_known(table, tmp_path):
    """One reference of 40: a resample lacks it with the probability (39 / 40) ** 40."""
    path = table("rare", CANDIDATES, REFERENCES)
    result = evaluate(path, tmp_path / "out", Scorer(metrics="findings-f1"))
    found = result.summary.first
    for name in ("consolidation", "micro-5", "macro-5"):
        assert found.corpus[name] == Interval(0.0, 0.0, 0.0)
        assert found.support[name] == 1
        # Three standard errors of 2,000 resamples.
        assert found.left_out[name] == pytest.approx((39 / 40) ** 40, abs=0.033)
    assert "consolidation (corpus) 3" in summary_text(result.summary)
    short = summary_text(result.summary, every=False)
    assert "findings-f1 micro (corpus)" in short
    assert not any(other in short for other in ("macro", "consolidation", "precision"))


def test_an_observation_that_nobody_mentions_is_shown_as_undefined(table, tmp_path):
    path = table("rare", CANDIDATES, REFERENCES)
    result = evaluate(path, tmp_path / "out", Scorer(metrics="findings-f1"))
    rows = {row[0]: row[1:] for row in support_table(result.summary).rows}
    assert rows["findings-f1 edema (corpus)"] == ("-", "", "40", "0")
    assert rows["findings-f1 consolidation (corpus)"] == ("0.0000", "[0.0000, 0.0000]", "40", "1")
    content = json.loads(result.summary_file.read_text(encoding="utf-8"))
    corpus = content["metrics"]["findings-f1"]["corpus"]
    assert corpus["edema"] == {"estimate": None, "low": None, "high": None}
    again = read_summary(result.summary_file).first
    assert np.isnan(again.corpus["edema"].estimate)
    assert again.support == result.summary.first.support
    assert again.left_out == result.summary.first.left_out


def test_micro_and_macro_are_over_the_observations_that_occur(table, tmp_path):
    """By hand: edema 1 hit, 1 extra; effusion 2 hits, 1 missed; cardiomegaly 1 extra, 1 missed."""
    texts = ["Edema.", "Effusion. Edema.", "Cardiomegaly.", "Clear lungs.", "Effusion."]
    refs = ["Edema. Effusion.", "Effusion.", "Clear lungs.", "Cardiomegaly.", "Effusion."]
    run = evaluate(table("t", texts, refs), tmp_path / "out", Scorer(metrics="findings-f1"))
    found = run.summary.first
    assert found.corpus["micro-5"].estimate == pytest.approx(2 * 3 / (2 * 3 + 2 + 2))
    assert found.corpus["macro-5"].estimate == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)
    assert found.support["micro-5"] == found.support["macro-5"] == 5
    names = ("edema", "pleural-effusion", "cardiomegaly", "atelectasis")
    assert [found.support[name] for name in names] == [1, 3, 1, 0]


def test_one_value_has_one_interval_whichever_command_prints_it(table, tmp_path):
    """More than 1,000 studies: where means are drawn in another way than sums are."""
    rng = np.random.default_rng(1)
    texts = ["Edema.", "Small effusion.", "The lungs are clear.", "Effusion and edema are new."]
    drawn = [[texts[k] for k in rng.integers(4, size=1100)] for _ in range(2)]
    path = table("many", *drawn)
    scorer = Scorer(metrics="bleu-2,findings-f1")
    summary = evaluate(path, tmp_path / "evaluated", scorer).summary
    run = compare([path], tmp_path / "compared", scorer)
    measured = {each["name"]: each["values"]["many"] for each in run.content["measured"]}
    checked = 0
    for metric, found in summary.metrics.items():
        names = {f"{metric} {name} (corpus)": value for name, value in found.corpus.items()}
        names[f"{metric} corpus"] = names.pop(f"{metric} corpus (corpus)", None)
        names |= {column: value.mean for column, value in found.values.items()}
        for name, value in names.items():
            if value is None:
                continue
            checked += 1
            for part in ("estimate", "low", "high"):
                expected = getattr(value, part)
                shown = np.nan if measured[name][part] is None else measured[name][part]
                assert shown == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, part)
    assert checked == 2 + 3 + 9


def test_a_comparison_has_the_support_beside_each_f1(table, tmp_path):
    paths = [table("first", CANDIDATES, REFERENCES), table("second", REFERENCES, REFERENCES)]
    run = compare(paths, tmp_path / "out", Scorer(metrics="findings-f1"), permutations=199)
    measured = {each["name"]: each for each in run.content["measured"]}
    rare = measured["findings-f1 consolidation (corpus)"]
    assert rare["support"] == {"first": 1, "second": 1}
    assert rare["values"]["first"] == {"estimate": 0.0, "low": 0.0, "high": 0.0}
    assert rare["values"]["second"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    never = measured["findings-f1 edema (corpus)"]
    assert never["values"]["first"]["estimate"] is None
    assert never["support"] == {"first": 0, "second": 0}
    differences = {test["name"]: test for test in run.content["tested"]}
    expected = {"estimate": -1.0, "low": -1.0, "high": -1.0}
    assert differences["findings-f1 consolidation (corpus)"]["difference"] == expected
    assert differences["findings-f1 edema (corpus)"]["p_value"] is None
    systems = next(table for table in run.tables if table.title.startswith("All numbers"))
    row = dict(zip(systems.columns, systems.rows[-1], strict=True))
    assert row["system"] == "support"
    assert row["findings-f1 consolidation (corpus)"] == "1"
    assert row["findings-f1"] == ""
    for name in ("systems.csv", "differences.csv"):
        with (run.folder / name).open(encoding="utf-8", newline="") as stream:
            rows = {r["metric"]: r["support"] for r in csv.DictReader(stream)}
        assert rows["findings-f1 consolidation (corpus)"] == "1"
        assert rows["findings-f1"] == ""
    assert any("leave them out" in note for note in run.notes)


@pytest.mark.parametrize(
    ("low", "high", "p", "disagrees"),
    [
        (0.1, 0.3, 0.01, False),
        (0.1, 0.3, 0.2, True),
        (-0.1, 0.3, 0.01, True),
        (-0.1, 0.3, 0.2, False),
        (float("nan"), float("nan"), 0.2, False),
        (0.1, 0.3, float("nan"), False),
    ],
)
def test_where_interval_and_p_disagree_the_test_says_so(low, high, p, disagrees):
    test = results.Tested("rouge-l", "a", "b", 9, Interval(0.1, low, high), p, p)
    assert test.disagrees is disagrees


def test_a_disagreement_is_noted_and_marked(table, tmp_path):
    """Ten studies of one system are better by chance: the bootstrap alone sees a difference."""
    refs = ["Edema."] + ["Effusion."] * 3 + ["Clear lungs."] * 16
    good = refs[:4] + ["Clear lungs."] * 16
    bad = ["Clear lungs."] * 20
    paths = [table("good", good, refs), table("bad", bad, refs)]
    run = compare(paths, tmp_path / "out", Scorer(metrics="findings-f1"))
    differing = [
        test
        for test in run.content["tested"]
        if test["p_value"] is not None
        and test["difference"]["low"] is not None
        and (test["difference"]["low"] <= 0 <= test["difference"]["high"])
        == (test["p_value"] < 0.05)
    ]
    assert differing
    assert any(f"in {len(differing)} of" in note and "disagree" in note for note in run.notes)
    marked = {
        table.title
        for table in run.tables
        if any("*" in cell for row in table.rows for cell in row)
    }
    assert marked == {f"Differences in {test['name']}" for test in differing}
    for shown in run.tables:
        assert (shown.title in marked) == ("randomization, which can disagree" in shown.caption)


def test_tables_of_a_comparison_with_the_demonstration_encoder_say_so(table, tmp_path):
    path = table("rare", CANDIDATES[:5], REFERENCES[:5])
    run = compare([path], tmp_path / "out", Scorer(metrics="bleu-1"))
    assert run.result is not None
    flagged = {"vlscore": "vlscore|enc:phantom@12|DEMONSTRATION-ENCODER"}
    for shown in all_tables(replace(run.result, signatures=flagged)):
        assert "no statement about real radiographs" in shown.caption
    for shown in run.tables:
        assert "no statement about real radiographs" not in shown.caption
