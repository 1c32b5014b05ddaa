"""Corpus BLEU as papers print it: pycocoevalcap's numbers on real generated reports.

The numbers were made by tests/metrics/goldens/make_pycocoevalcap.py.
"""

import json
from pathlib import Path

import pytest

from tests.metrics.contract import corpus_of
from vlscore.metrics import Batch, Plan

GOLDENS = Path(__file__).with_name("goldens") / "pycocoevalcap.json"


@pytest.mark.parametrize("system", ["vlm_final", "template_fusion"])
def test_corpus_bleu_equals_pycocoevalcap_on_real_reports(shared, system):
    golden = json.loads(GOLDENS.read_text())[system]["bleu"]
    lines = (shared / "data" / "generated" / f"{system}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    names = [f"bleu-{order}(tokens=cxr)" for order in (1, 2, 3, 4)]
    texts = ([row[role] for row in rows] for role in ("candidate", "reference"))
    values = Plan(names).values(Batch(*texts))
    found = [corpus_of(each)["corpus"][0] for each in values.values()]
    # pycocoevalcap adds 1e-9 to denominators, which changes the ninth digit.
    assert found == pytest.approx(golden, rel=1e-8)
