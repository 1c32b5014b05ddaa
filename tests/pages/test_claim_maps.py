"""Claims of one study with their verdicts, and where the evidence lies."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.claims import Cases, fit_evidence
from vlscore.embedding import StudyEmbedder
from vlscore.metrics import Scorer
from vlscore.pages import explain_study


@pytest.fixture
def study(tmp_path):
    """A scorer whose evidence of pneumothorax is a bright upper left quarter, and such an image."""
    rng = np.random.default_rng(0)
    there = (rng.random(400) < 0.4).astype(float)
    quarters = rng.normal(0.4, 0.03, (400, 4))
    quarters[:, 0] += 0.4 * there
    cases = Cases(np.tile(quarters, 2), {"pneumothorax": there}, [str(k) for k in range(400)])
    embedder = StudyEmbedder(HashEncoder(), cache=False)
    path = tmp_path / "evidence.npz"
    fit_evidence(*cases.split(0.5, 0), signature=str(embedder.signature)).save(path)
    pixels = np.full((64, 64), 100, np.uint8)
    pixels[:32, :32] = 200
    Image.fromarray(pixels).save(tmp_path / "image.png")
    return Scorer(embedder, metrics=f"judge-image(evidence={path})"), tmp_path / "image.png"


def test_claims_and_maps(study, tmp_path):
    scorer, image = study
    candidate, reference = "Large right pneumothorax. Rib fracture.", "No pneumothorax."
    found = explain_study(scorer, [image], candidate, reference, maps=True)
    verdicts = {(c["report"], c["finding"]): c["verdict"] for c in found.claims}
    assert verdicts["candidate", "pneumothorax"] == "supported"
    assert verdicts["reference", "pneumothorax"] == "contradicted"
    assert verdicts["candidate", "fracture"] == "cannot tell"
    (only,) = found.maps["sentences"]
    places = np.array(only["places"]).reshape(8, 8)
    assert places[:4, :4].min() > 0.9
    assert max(places[4:].max(), places[:, 4:].max()) < 0.2
    assert "candidate  supported" in str(found)
    assert "cannot tell   no evidence  stated: fracture" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["claims"][0]["finding"] == "pneumothorax"
    assert "no proof" in only["note"]
    assert found.write(tmp_path / "page.html", images=True).path.is_file()


def test_other_metrics_have_no_claims(study):
    scorer, image = study
    other = Scorer(scorer.embedder, metrics="clipscore,cosine")
    found = explain_study(other.with_metrics(other.metrics[1:]), [image], "Edema.", "Edema.")
    assert found.claims == []
    assert "claims" not in found.to_dict()
