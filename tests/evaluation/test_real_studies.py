"""Every real radiograph and report goes through, or is refused for the right reason."""

import json

import numpy as np
import pytest

from tests.evaluation.samples import read_scores
from vlscore.data import read_image
from vlscore.errors import UnreadableImage
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

# What must be refused among the shared files, and why.
REFUSED = {
    "mono2_16bit_ot.dcm": "every pixel has the same value",
}


def test_every_real_image_is_read_or_refused_for_its_reason(shared):
    files = [
        path
        for folder in ("radiographs", "dicom")
        for path in sorted((shared / "data" / folder).iterdir())
    ]
    assert len(files) > 15
    for path in files:
        if path.name in REFUSED:
            with pytest.raises(UnreadableImage, match=REFUSED[path.name]) as caught:
                read_image(path)
            assert str(path) in str(caught.value)
        else:
            radiograph = read_image(path)
            assert min(radiograph.shape) >= 256
            assert 0.2 < radiograph.pixels.mean() < 0.9


def test_evaluate_scores_every_real_study(shared, tmp_path):
    table = shared / "data" / "studies.jsonl"
    records = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    result = evaluate(table, tmp_path, Scorer("phantom", device="cpu"), workers=1)
    failed = {study_id: reason for _, study_id, reason in result.failures}
    for record in records:
        name = record["image"].split("/")[-1]
        if name in REFUSED:
            assert REFUSED[name] in failed.pop(record["id"])
    assert failed == {}
    rows = read_scores(result)
    assert len(rows) == len(records)
    for row in rows:
        assert row["error"] is not None or 0 <= row["vlscore"] <= 1
    assert "DEMONSTRATION-ENCODER" in result.signatures["vlscore"]


def test_real_generated_reports_score_with_a_real_radiograph(shared, tmp_path):
    image = shared / "data" / "radiographs" / "nih_00000001_000.png"
    source = (shared / "data" / "generated" / "vlm_final.jsonl").read_text(encoding="utf-8")
    table = tmp_path / "studies.jsonl"
    rows = [json.loads(line) | {"image": str(image)} for line in source.splitlines()[:60]]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = evaluate(table, tmp_path / "out", Scorer("phantom", device="cpu"))
    assert np.isfinite(result.rows("scores.parquet")["vlscore"]).sum() == 60
