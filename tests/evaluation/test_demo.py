"""The demonstration table scores with phantom-supervised what it scored when values were kept.

`data/demo.json` holds every number of the twelve studies. Those of embeddings and their geometry
were computed by the first release's code as well, and came out the same to the last digit. A
changed encoder, image reader, tokenizer or kernel shows here. What README prints is of the default
encoder, and is compared by tests/test_docs.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.samples import read_scores
from vlscore.core import resource_path
from vlscore.evaluation import evaluate, summary_text
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"
KEPT = json.loads((Path(__file__).parent / "data" / "demo.json").read_text())
METRICS = [name for name in KEPT if "." not in name and "_" not in name]
METRICS = [name for name in METRICS if name not in ("area", "foot")]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    scorer = Scorer("phantom-supervised", metrics=METRICS, device="cpu")
    return evaluate(DEMO, tmp_path_factory.mktemp("demo"), scorer)


def test_every_number_is_the_kept_one(result):
    rows = read_scores(result)
    assert len(rows) == 12
    assert {"vlscore", "bleu-4", "findings-f1.recall", "area", "foot"} <= set(KEPT)
    for name, values in KEPT.items():
        found = [row[name] for row in rows]
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-9, err_msg=name)


def test_the_means_are_those_of_the_kept_numbers(result):
    metrics = result.summary.metrics
    assert f"{metrics['vlscore'].values['vlscore'].mean.estimate:.4f}" == "0.4888"
    assert f"{KEPT['vlscore'][0]:.4f}" == "0.2184"
    shown = summary_text(result.summary)
    for name in METRICS:
        mean = float(np.mean(KEPT[name]))
        assert metrics[name].values[name].mean.estimate == pytest.approx(mean, rel=1e-5)
        assert f"{mean:.4f}" in shown
    assert result.summary.metrics["vlscore"].signature.has("DEMONSTRATION-ENCODER")
