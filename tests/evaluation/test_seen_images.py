"""A finished run and the image files that it was computed from."""

import hashlib
import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.evaluation.samples import BATCH, make_table
from vlscore.errors import InvalidSetting
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer


def scorer_of(metrics):
    return Scorer(HashEncoder(), metrics=metrics, batch_size=BATCH)


def _replace(path, seed=5):
    pixels = np.random.default_rng(seed).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize("then", ["vlscore,cosine,image-centred-cosine", "vlscore"])
def test_numbers_of_a_replaced_image_join_no_finished_row(tmp_path, then):
    table, _ = make_table(tmp_path, 5)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    before = (tmp_path / "out" / "scores.parquet").read_bytes()
    _replace(tmp_path / "2.png")
    with pytest.raises(InvalidSetting, match=r"2\.png has been replaced.*--overwrite"):
        evaluate(table, tmp_path / "out", scorer_of(then))
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == before
    anew = evaluate(table, tmp_path / "out", scorer_of(then), overwrite=True)
    fresh = evaluate(table, tmp_path / "fresh", scorer_of(then))
    assert anew.to_pandas().equals(fresh.to_pandas())


def test_a_metric_of_texts_is_added_whatever_became_of_the_images(tmp_path):
    table, _ = make_table(tmp_path, 3)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    _replace(tmp_path / "1.png")
    found = evaluate(table, tmp_path / "out", scorer_of("vlscore,bleu-1"))
    assert list(found.summary.metrics) == ["vlscore", "bleu-1"]


def test_the_same_content_with_another_time_is_the_same_image(tmp_path):
    table, _ = make_table(tmp_path, 3)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    os.utime(tmp_path / "1.png", (1, 1))
    assert evaluate(table, tmp_path / "out", scorer_of("vlscore")).unchanged
    found = evaluate(table, tmp_path / "out", scorer_of("vlscore,image-centred-cosine"))
    assert found.summary.scored == 3


def test_images_first_read_by_an_added_metric_are_known_afterwards(tmp_path):
    table, _ = make_table(tmp_path, 3)
    evaluate(table, tmp_path / "out", scorer_of("bleu-1"))
    # No metric has looked at an image yet.
    _replace(tmp_path / "1.png", seed=6)
    evaluate(table, tmp_path / "out", scorer_of("bleu-1,vlscore"))
    details = pq.read_table(tmp_path / "out" / "details.parquet")
    names = [list(json.loads(text)) for text in details["images"].to_pylist()]
    assert names == [[str(tmp_path / f"{k}.png")] for k in range(3)]
    _replace(tmp_path / "1.png")
    with pytest.raises(InvalidSetting, match=r"1\.png has been replaced"):
        evaluate(table, tmp_path / "out", scorer_of("bleu-1,vlscore,image-centred-cosine"))


def test_a_missing_image_that_is_brought_is_read_by_a_retry(tmp_path):
    table, _ = make_table(tmp_path, 4)
    kept = (tmp_path / "2.png").read_bytes()
    (tmp_path / "2.png").unlink()
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    (tmp_path / "2.png").write_bytes(kept)
    found = evaluate(table, tmp_path / "out", scorer_of("vlscore"), retry_failed=True)
    assert found.summary.scored == 4
    _replace(tmp_path / "2.png")
    with pytest.raises(InvalidSetting, match=r"2\.png has been replaced"):
        evaluate(table, tmp_path / "out", scorer_of("vlscore,image-centred-cosine"))


def test_a_run_that_does_not_know_its_images_takes_no_numbers_of_images(tmp_path):
    """As an earlier version left it."""
    from vlscore.core import file_digest

    table, _ = make_table(tmp_path, 3)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    details, record = (tmp_path / "out" / name for name in ("details.parquet", "run.json"))
    pq.write_table(pq.read_table(details).drop_columns(["images"]), details)
    content = json.loads(record.read_text(encoding="utf-8"))
    content["results"]["details.parquet"] = file_digest(details)
    record.write_text(json.dumps(content), encoding="utf-8")
    assert evaluate(table, tmp_path / "out", scorer_of("vlscore")).unchanged
    with pytest.raises(InvalidSetting, match="does not say which image files"):
        evaluate(table, tmp_path / "out", scorer_of("vlscore,image-centred-cosine"))
    assert evaluate(table, tmp_path / "out", scorer_of("vlscore,bleu-1")).summary.scored == 3


def test_each_image_is_hashed_once_in_a_run(tmp_path, monkeypatch):
    table, _ = make_table(tmp_path, 5)
    hashed, real = [], hashlib.file_digest

    def file_digest(stream, kind):
        hashed.append(os.path.basename(stream.name))
        return real(stream, kind)

    monkeypatch.setattr(hashlib, "file_digest", file_digest)
    evaluate(table, tmp_path / "out", scorer_of("vlscore"))
    images = [name for name in hashed if name.endswith(".png")]
    assert sorted(images) == [f"{k}.png" for k in range(5)]
    # A file that is replaced has other facts, and is read again.
    _replace(tmp_path / "2.png")
    with pytest.raises(InvalidSetting, match=r"2\.png has been replaced"):
        evaluate(table, tmp_path / "out", scorer_of("vlscore,cosine,image-centred-cosine"))
