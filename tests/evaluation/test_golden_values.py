"""Values, intervals and tests equal the stored ones, which an earlier design computed.

`values_*.json` hold the numbers for the tables of golden_tables.py. Text metrics are equal to
1e-12; embeddings differ in their last digits with their batch.
"""

import json
import math
from pathlib import Path

import pytest

from tests.evaluation.golden_tables import (
    IMAGE_METRICS,
    SYSTEMS,
    TEXT_METRICS,
    image_tables,
    text_tables,
)
from tests.evaluation.samples import compare
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

DATA = Path(__file__).parent / "data"
DRAWS = {"resamples": 500, "permutations": 999}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return text_tables(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return image_tables(tmp_path_factory.mktemp("images"))


def stored(name):
    found = json.loads((DATA / f"values_{name}.json").read_text())
    # p adjusted over all numbers, depends on how many there are; test_compare.py has its law.
    if "tested" in found:
        found["tested"] = [row[:-1] for row in found["tested"]]
    return found


def is_new(record):
    """These numbers came after the values were kept; they have tests where they are made."""
    return any(" weighted-" in str(each) or ".percentile" in str(each) for each in record)


def same(found, expected, rel=1e-12):
    """Compare nested lists and mappings of numbers; null stands for nan."""
    if isinstance(expected, dict):
        assert {name for name in found if not is_new([name])} == set(expected)
        for name in expected:
            same(found[name], expected[name], rel)
    elif isinstance(expected, list):
        found = [each for each in found if not (isinstance(each, list) and is_new(each))]
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, rel)
    elif isinstance(expected, float) or expected is None:
        assert (found is None or math.isnan(found)) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, rel=rel, abs=rel)
    else:
        assert found == expected


def interval(record, name):
    values = [record[name], record[f"{name}.low"], record[f"{name}.high"]]
    return None if math.isnan(values[0]) else values


def numbers_of_evaluation(result):
    summary = result.frame("summary").to_dict("records")
    scores = result.rows(f"scores.{result.record['key']['format']}")
    found = {"summary": {}, "scores": {}}
    for each in summary:
        values = {"n": each["n"], "mean": interval(each, "mean")}
        if each["of_corpus"]:
            values["support"] = (
                None
                if each["support"] is None or math.isnan(each["support"])
                else int(each["support"])
            )
        else:
            values["median"] = interval(each, "median")
        found["summary"][each["metric"]] = values
    counts = dict(result.frame("counts").itertuples(index=False))
    found |= {"rows": counts["rows"], "failed": result.record["failed"]}
    found["scores"] = {
        name: scores[name].tolist()
        for name in scores
        if scores[name].dtype == float and name != "error"
    }
    return found


def test_an_evaluation_of_texts(texts, tmp_path):
    found = evaluate(texts["ours"], tmp_path, Scorer(metrics=TEXT_METRICS))
    same(numbers_of_evaluation(found), stored("evaluate_text"))


@pytest.mark.filterwarnings("ignore::vlscore.errors.DemonstrationEncoderWarning")
def test_an_evaluation_of_images(images, tmp_path):
    scorer = Scorer("phantom", metrics=IMAGE_METRICS, device="cpu")
    found = evaluate(images["ours"], tmp_path, scorer)
    same(numbers_of_evaluation(found), stored("evaluate_image"), 2e-6)


def numbers_of_comparison(result):
    texts = result.frame("texts").set_index("system")
    measured = {}
    for each in result.frame("systems").to_dict("records"):
        number = measured.setdefault(
            each["metric"],
            {"n": each["n"], "values": {}, "support": {}, "primary": each["primary"]},
        )
        value = [each["value"], each["value.low"], each["value.high"]]
        number["values"][each["system"]] = [None if math.isnan(x) else x for x in value]
        if each["support"] is not None and not math.isnan(each["support"]):
            number["support"][each["system"]] = int(each["support"])
    tested = [
        [
            *(each[name] for name in ("metric", "first", "second", "n")),
            [each["difference"], each["difference.low"], each["difference.high"]],
            *(each[name] for name in ("p", "adjusted_p")),
        ]
        for each in result.frame("differences").to_dict("records")
    ]
    values = result.rows("values.parquet")
    return {
        "measured": measured,
        "tested": tested,
        "texts": {
            name: {
                "count": int(facts["n"]),
                **{k: facts[k] for k in ("mean_words", "distinct", "verbatim", "unfinished")},
                "empty": int(facts["empty"]),
                "truncated": facts["truncated"],
            }
            for name, facts in texts.to_dict("index").items()
        },
        "failed": {
            name: {
                part.rpartition(" ")[0]: int(part.rpartition(" ")[2])
                for part in filter(None, facts.split(", "))
            }
            for name, facts in texts["without_value"].items()
        },
        "values": {name: values[name].tolist() for name in values if values[name].dtype == float},
    }


def test_a_comparison_of_texts_by_patients(texts, tmp_path):
    systems = [texts[system] for system in SYSTEMS]
    options = {"patient_column": "patient", "against": "theirs", "seed": 3}
    found = compare(systems, tmp_path / "out", Scorer(metrics="bleu-4,rouge-l"), **DRAWS, **options)
    same(numbers_of_comparison(found), stored("compare_patients"))


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_comparison_of_finished_folders(texts, tmp_path, format):
    evaluate(texts["theirs"], tmp_path / "f2", Scorer(metrics="rouge-l,bleu-4"), format=format)
    metrics = "bleu-4,rouge-l,chrf"
    evaluate(texts["ours"], tmp_path / "f1", Scorer(metrics=metrics), format=format)
    systems = [tmp_path / "f1", tmp_path / "f2", texts["third"]]
    found = compare(systems, tmp_path / "out", Scorer(metrics="bleu-4,rouge-l"), **DRAWS)
    same(numbers_of_comparison(found), stored("compare_folders"))
