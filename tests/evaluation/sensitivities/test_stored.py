"""Numbers of a sensitivity test, and of swapped images, are those that were stored."""

import pytest

from tests.doubles import HashEncoder
from tests.evaluation.golden import assert_same, stored
from tests.evaluation.golden_inputs import PHANTOM, some_perturbations
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import SensitivitySettings, sensitivity
from vlscore.metrics import Scorer

TEXTS = ["bleu-4", "rouge-l", "cider-d"]


def _check(run, expected):
    assert_same(run.frame("kinds"), expected["kinds"], ["metric", "kind"])
    assert_same(run.frame("contrasts"), expected["contrasts"], ["metric", "significant"])
    normal = run.frame("normal")
    for each in expected["normal"]:
        own = normal[normal["metric"] == each["metric"]]["value"].tolist() if len(normal) else []
        assert own == pytest.approx(each["values"], rel=1e-12)
    assert run.record["truncated"] == expected["truncated"]
    assert run.signatures == expected["signatures"]
    if expected["swaps"]:
        assert_same(run.frame("swaps"), expected["swaps"], ["metric", "image"])


def test_texts(tmp_path):
    run = sensitivity(
        PHANTOM, tmp_path / "out", Scorer(metrics=TEXTS), SensitivitySettings(resamples=60)
    )
    _check(run, stored("sensitivity")["phantom"])


@pytest.mark.parametrize("images", [False, True])
def test_an_encoder(tmp_path, images):
    changed, table = some_perturbations(tmp_path)
    names = ["vlscore", "cosine", "rouge-l"] if images else ["cosine", "rouge-l"]
    scorer = Scorer(StudyEmbedder(HashEncoder(), cache=False), metrics=names)
    studies = open_studies(table, needs={"image"}) if images else None
    run = sensitivity(
        changed,
        tmp_path / "out",
        scorer,
        SensitivitySettings(swap_images=images, resamples=60, seed=1 if images else 0),
        studies=studies,
    )
    _check(run, stored("sensitivity")["images" if images else "texts of an encoder"])
