"""A finished comparison is extended by metrics and systems without computing the old ones again."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting
from vlscore.evaluation import compare
from vlscore.metrics import Scorer
from vlscore.metrics.library.rouge_l import RougeScoreProvider

QUICK = {"resamples": 40, "permutations": 99}
REFERENCES = [f"There is an effusion of size {k}." for k in range(6)]
TEXTS = {
    "ours": [text.replace("There is a", "A") for text in REFERENCES],
    "theirs": ["The lungs are clear."] * 6,
    "third": [f"Size {k}." for k in range(6)],
}


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(3)
    for k in range(6):
        Image.fromarray(rng.integers(0, 256, (32, 32), np.uint8)).save(tmp_path / f"{k}.png")
    paths = {}
    for name, texts in TEXTS.items():
        paths[name] = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": f"s{k}", "image": f"{k}.png", "reference": REFERENCES[k], "candidate": text}
            for k, text in enumerate(texts)
        ]
        paths[name].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.json"}


def text_scorer(names):
    return Scorer(metrics=names, cache=False)


@pytest.fixture
def rouge_pairs(monkeypatch):
    """How many pairs ROUGE-L was computed for."""
    counted = []
    compute = RougeScoreProvider.compute

    def counting(self, metric, batch):
        counted.append(len(batch))
        return compute(self, metric, batch)

    monkeypatch.setattr(RougeScoreProvider, "compute", counting)
    return counted


def test_a_metric_and_a_system_are_added_and_dropped(tables, tmp_path, rouge_pairs):
    two = [tables["ours"], tables["theirs"]]
    out = tmp_path / "out"
    compare(two, out, text_scorer("rouge-l"), baselines=True, **QUICK)
    assert sum(rouge_pairs) == 5 * 6
    rouge_pairs.clear()
    # A metric.
    run = compare(two, out, text_scorer("bleu-2,rouge-l,findings-f1"), baselines=True, **QUICK)
    assert rouge_pairs == []
    assert run.taken_up == 5
    # A system.
    run = compare(
        [*two, tables["third"]],
        out,
        text_scorer("bleu-2,rouge-l,findings-f1"),
        baselines=True,
        **QUICK,
    )
    assert sum(rouge_pairs) == 6
    assert run.taken_up == 15
    compare(
        [*two, tables["third"]],
        tmp_path / "fresh",
        text_scorer("bleu-2,rouge-l,findings-f1"),
        baselines=True,
        **QUICK,
    )
    assert files(out) == files(tmp_path / "fresh")
    # Dropped again.
    rouge_pairs.clear()
    compare(two, out, text_scorer("rouge-l"), baselines=True, **QUICK)
    assert rouge_pairs == []
    compare(two, tmp_path / "first", text_scorer("rouge-l"), baselines=True, **QUICK)
    assert files(out) == files(tmp_path / "first")


def test_images_are_added_to_a_comparison_of_texts(tables, tmp_path, rouge_pairs):
    two = [tables["ours"], tables["theirs"]]
    out = tmp_path / "out"
    compare(two, out, text_scorer("rouge-l"), **QUICK)
    rouge_pairs.clear()

    def scorer(names):
        return Scorer(HashEncoder(), metrics=names, device="cpu", cache=False)

    compare(two, out, scorer("rouge-l,vlscore"), **QUICK)
    assert rouge_pairs == []
    compare(two, tmp_path / "fresh", scorer("rouge-l,vlscore"), **QUICK)
    assert files(out) == files(tmp_path / "fresh")
    again = scorer("rouge-l,vlscore,bleu-1")
    compare(two, out, again, **QUICK)
    assert again.embedder.encoder.image_calls == 0
    # A replaced file: no row may hold numbers of two images.
    (tmp_path / "1.png").write_bytes((tmp_path / "2.png").read_bytes())
    compare(two, out, scorer("rouge-l,vlscore"), **QUICK)
    compare(two, tmp_path / "replaced", scorer("rouge-l,vlscore"), **QUICK)
    assert files(out) == files(tmp_path / "replaced")
    assert files(out)["values.parquet"] != files(tmp_path / "fresh")["values.parquet"]


def test_another_candidate_or_reference_is_computed_anew(tables, tmp_path, rouge_pairs):
    out = tmp_path / "out"
    compare([tables["ours"], tables["theirs"]], out, text_scorer("rouge-l"), **QUICK)
    rouge_pairs.clear()
    text = tables["ours"].read_text(encoding="utf-8")
    tables["ours"].write_text(text.replace("size 3", "size 4", 1), encoding="utf-8")
    with pytest.raises(Exception, match="references of 1 study"):
        compare([tables["ours"], tables["theirs"]], out, text_scorer("rouge-l"), **QUICK)
    tables["ours"].write_text(text.replace("An effusion", "Effusion"), encoding="utf-8")
    # The same name for another table is a slip more often than a wish.
    with pytest.raises(InvalidSetting, match="the table of ours has changed"):
        compare([tables["ours"], tables["theirs"]], out, text_scorer("rouge-l"), **QUICK)
    scorer = Scorer(metrics="rouge-l", cache=False, text_policy="findings")
    with pytest.raises(InvalidSetting, match="rouge-l is computed in another way: txt: all"):
        compare([tables["theirs"], tables["third"]], out, scorer, **QUICK)
    named = f"mine={tables['ours']}"
    run = compare([named, tables["theirs"]], out, text_scorer("rouge-l"), **QUICK)
    assert (sum(rouge_pairs), run.taken_up) == (6, 1)
    with pytest.raises(InvalidSetting, match="seed: 0 there, 1 now"):
        compare([tables["ours"], tables["theirs"]], out, text_scorer("rouge-l"), seed=1, **QUICK)


def test_one_system_is_tested_against_the_others(tables, tmp_path):
    three = list(tables.values())
    out = tmp_path / "out"
    everyone = compare(three, out, text_scorer("rouge-l"), **QUICK)
    run = compare(three, out, text_scorer("rouge-l"), against="theirs", **QUICK)
    assert run.taken_up == 3
    pairs = [(test["first"], test["second"]) for test in run.content["tested"]]
    assert pairs == [("ours", "theirs"), ("theirs", "third")]
    known = {(t["first"], t["second"]): t for t in everyone.content["tested"]}
    p = [test["p_value"] for test in run.content["tested"]]
    assert p == [known[pair]["p_value"] for pair in pairs]
    # Benjamini and Hochberg over two tests: the larger p stays, the smaller is doubled at most.
    adjusted = [test["adjusted"] for test in run.content["tested"]]
    assert adjusted == pytest.approx([min(max(p), 2 * each) for each in p])
    with pytest.raises(InvalidSetting, match="no system is called mine; there are ours, theirs"):
        compare(three, tmp_path / "x", text_scorer("rouge-l"), against="mine", **QUICK)


def test_whole_patients_are_resampled(tmp_path):
    rng = np.random.default_rng(0)
    copies, count = 6, 12
    first, second = (
        [" ".join(rng.choice(["no", "left", "edema", "heart"], size=4)) for _ in range(count)]
        for _ in range(2)
    )

    def write(name, texts, times):
        rows = [
            {
                "id": f"{k}-{copy}",
                "patient": f"p{k}",
                "reference": "no left edema heart",
                "candidate": text,
            }
            for k, text in enumerate(texts)
            for copy in range(times)
        ]
        path = tmp_path / f"{name}-{times}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return f"{name}={path}"

    def difference(times, **more):
        paths = [write("a", first, times), write("b", second, times)]
        name = f"out-{times}-{'-'.join(more)}"
        run = compare(paths, tmp_path / name, text_scorer("rouge-l"), **more)
        (test,) = run.content["tested"]
        assert test["count"] == count * times
        return test

    alone = difference(1)
    copied = difference(copies)
    clustered = difference(copies, patient_column="patient")

    def width(test):
        return test["difference"]["high"] - test["difference"]["low"]

    assert width(copied) < 0.6 * width(alone)
    # Six equal studies a patient are no more evidence than one.
    assert width(clustered) == pytest.approx(width(alone), rel=1e-9)
    assert clustered["p_value"] == pytest.approx(alone["p_value"], abs=1e-12)
    assert copied["p_value"] < clustered["p_value"]
