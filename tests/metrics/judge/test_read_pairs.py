"""The benchmark that holds judges against pairs read for errors, with a model that is a server."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.metrics.judge.endpoint_server import EMPTY, Answer, running
from vlscore.errors import InvalidTable
from vlscore.metrics import EndpointModel, ModelJudge, RuleJudge

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "judge_read.py"
PAIRS = [
    {
        "id": "s1",
        "candidate": "Small left effusion. Clear lungs.",
        "reference": "Small right effusion.",
        "rating": 2,
        "errors": [
            {"category": "wrong_location", "finding": "effusion side", "words": "left effusion"}
        ],
    },
    {
        "id": "s2",
        "candidate": "Clear lungs.",
        "reference": "Pneumothorax.",
        "rating": 1,
        "errors": [
            {"category": "omitted_finding", "finding": "pneumothorax", "words": "Pneumothorax"}
        ],
    },
]
WRONG_SIDE = json.dumps(
    {
        "errors": [
            {"category": "wrong_location", "severity": 4, "finding": "effusion",
             "candidate_line": 1, "reference_line": 1, "correction": "Small right effusion.",
             "reason": "The effusion is on the other side."}
        ],
        "correct": [],
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("judge_read", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(SCRIPT.parent))
    return module


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "read.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    return path


def test_an_error_is_found_by_category_and_words(script):
    judge = RuleJudge()
    first = script.counts_of(PAIRS[0], judge.judge(PAIRS[0]["candidate"], PAIRS[0]["reference"]))
    # found, invented, missed
    assert first == {"wrong_location": (1, 0, 0)}
    silent = script.counts_of(PAIRS[1], judge.judge("Pneumothorax.", "Pneumothorax."))
    assert silent == {"omitted_finding": (0, 0, 1)}


def test_rules_and_a_model_stand_in_one_table(script, pairs):

    def answer(number, body):
        seen = body["messages"][-1]["content"]
        return Answer(WRONG_SIDE if "left effusion" in seen else EMPTY)

    with running(answer) as server:
        model = EndpointModel("fake", server.url, timeout=5.0, retries=1)
        text = script.report([pairs], ModelJudge(model, prompt="zero-shot", cache=False))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = {(row[0].strip("| "), row[1]): row[2:5] for row in rows}
    # The rules find both errors; the model one of two, and it invents none.
    assert found["rules", "all"][:2] == ["1.000", "1.000"]
    assert found["model", "all"][:2] == ["1.000", "0.500"]
    assert found["model", "all"][2].startswith("0.667")
    assert "0 pairs could not be judged" in text


def test_a_line_without_a_field_is_named(script, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(PAIRS[0]) + "\n" + json.dumps({"id": "s2"}) + "\n")
    with pytest.raises(InvalidTable, match="line 2 lacks candidate, reference, rating, errors"):
        script.read_pairs(path)
