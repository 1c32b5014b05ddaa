"""Metrics that are fitted to references see all originals of a sensitivity run, chunk by chunk."""

import csv
import json

import numpy as np
import pytest

from vlscore.evaluation import sensitivity
from vlscore.metrics import Batch, Plan

ORIGINALS = [
    "Small left pleural effusion. The heart is normal.",
    "No pneumothorax. The lungs are clear.",
    "Large right pneumothorax. Chest tube in place.",
    "Mild edema. The heart is large.",
]


@pytest.fixture
def perturbations(tmp_path):
    path = tmp_path / "perturbations.jsonl"
    rows = [
        {
            "study_id": f"s{number}",
            "kind": kind,
            "expected": expected,
            "category": "removal",
            "original": original,
            "perturbed": original.split(". ")[keep],
        }
        for number, original in enumerate(ORIGINALS)
        for kind, expected, keep in (
            ("remove-pathology", "significant", 1),
            ("remove-sentence", "insignificant", 0),
        )
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def _values(folder):
    with (folder / "values.csv").open() as stream:
        return [float(row["cider-d.perturbed"]) for row in csv.DictReader(stream)]


def test_chunks_share_one_fit_in_which_each_study_counts_once(perturbations, tmp_path, monkeypatch):
    whole = sensitivity(perturbations, tmp_path / "whole", metrics="cider-d", resamples=10)
    monkeypatch.setattr("vlscore.evaluation.sensitivities.run._PAIRS_AT_ONCE", 3)
    parts = sensitivity(perturbations, tmp_path / "parts", metrics="cider-d", resamples=10)
    assert parts.signatures == whole.signatures
    assert "fit:4-references@" in whole.signatures[0]
    found = _values(tmp_path / "parts")
    assert found == _values(tmp_path / "whole")
    plan = Plan("cider-d").fit(ORIGINALS)
    changed = [part for each in ORIGINALS for part in reversed(each.split(". "))]
    batch = Batch(changed, [each for each in ORIGINALS for _ in range(2)])
    np.testing.assert_allclose(found, plan.values(batch)[plan.metrics[0]].headline, rtol=1e-12)
