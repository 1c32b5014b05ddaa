"""The demonstration table scores with the bundled encoder what it scored when values were kept.

`data/demo.json` holds every number of twelve studies. A changed encoder, image reader,
tokenizer or kernel shows here.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.demonstration import demo_table
from tests.evaluation.samples import numbers_of, read_scores
from tests.tolerances import TEXT, of_triangle
from vlscore.data import open_studies
from vlscore.embedding import StudyViews
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

KEPT = json.loads((Path(__file__).parent / "data" / "demo.json").read_text())
METRICS = [name for name in KEPT if "." not in name and "_" not in name]
METRICS = [name for name in METRICS if name not in ("area", "foot")]
ROLES = ("candidate", "reference")
SIDES = ("image_candidate", "image_reference", "candidate_reference", "foot")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return demo_table(tmp_path_factory.mktemp("studies"))


@pytest.fixture(scope="module")
def scorer():
    return Scorer("phantom-judging", metrics=METRICS, device="cpu")


@pytest.fixture(scope="module")
def result(tmp_path_factory, table, scorer):
    return evaluate(table, tmp_path_factory.mktemp("demo"), scorer)


@pytest.fixture(scope="module")
def tolerances(table, scorer):
    """Name of a number -> how far each study's may be from the kept one."""
    studies = list(open_studies(table))
    embedder = scorer.embedder
    vectors = [
        embedder.embed_studies([StudyViews(study.images) for study in studies]).vectors,
        *(embedder.embed_texts([getattr(s, role) for s in studies]).vectors for role in ROLES),
    ]
    norms = torch.stack(vectors).norm(dim=2).max(dim=0).values
    sides = [{name: KEPT[name][k] for name in SIDES} for k in range(len(studies))]
    each = [
        of_triangle(s, float(n), embedder.encoder.card.C) for s, n in zip(sides, norms, strict=True)
    ]
    return {name: [tolerance[name] for tolerance in each] for name in each[0]}


def test_every_number_is_the_kept_one(result, tolerances):
    rows = read_scores(result)
    assert len(rows) == 12
    assert {"vlscore", "bleu-4", "findings-f1.recall", "area", "foot"} <= set(KEPT)
    assert set(tolerances) < set(KEPT)
    # What the model admits is far less than what a changed encoder or reader changes.
    assert max(map(max, tolerances.values())) < 1e-3
    for name, values in KEPT.items():
        apart = np.abs(np.subtract([row[name] for row in rows], values))
        assert (apart <= tolerances.get(name, TEXT)).all(), (name, apart)


def test_the_means_are_those_of_the_kept_numbers(result, tolerances):
    found = numbers_of(result)
    shown = "".join(table.text() for table in result.tables)
    for name in METRICS:
        mean = float(np.mean(KEPT[name]))
        tolerance = np.mean(tolerances.get(name, TEXT))
        assert found[name]["mean"] == pytest.approx(mean, rel=0, abs=tolerance)
        assert f"{mean:.4f}" in shown
    assert "DEMONSTRATION-ENCODER" in result.signatures["vlscore"]
