"""Pairs on disk: every image decoded once, every bad row listed, a stop at any moment."""

import json

import cv2
import numpy as np
import pytest

from tests.training.conftest import opened
from tests.training.toys import write_table
from vlscore.data import ImagePolicy, Provenance, Radiograph
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.training import training_pairs as preparing
from vlscore.training.training_pairs import StoredPixels, prepare


def _rows(table):
    return [json.loads(line) for line in table.read_text().splitlines()]


def _write(table, rows):
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return table


def test_images_and_reports_come_back_as_they_were(table, pairs):
    rows = _rows(table)
    assert list(pairs.ids) == [row["id"] for row in rows]
    assert list(pairs.texts) == [row["reference"] for row in rows]
    for number, row in enumerate(rows):
        stored = cv2.imread(str(table.parent / row["image"][0]), cv2.IMREAD_GRAYSCALE)
        # The reader maps the darkest and brightest level to 0 and 255.
        low, high = stored.min(), stored.max()
        stretched = (stored.astype(float) - low) / (high - low) * 255
        as_read = stored if np.array_equal(pairs.image(number), stored) else stretched
        assert np.abs(pairs.image(number) - as_read).max() <= 1
    assert not pairs.failed
    assert not pairs.has_lateral.any()


def test_lateral_views_are_kept_beside_the_frontal_ones(lateral_table, tmp_path):
    pairs = prepare(opened(lateral_table, views="frontal+lateral"), tmp_path / "pairs")
    assert pairs.has_lateral.tolist() == [number % 2 == 1 for number in range(24)]
    assert np.array_equal(pairs.image(5, 1), pairs.image(5)[::-1])


@pytest.mark.parametrize(
    ("height", "width", "kept"), [(40, 20, (20, 10)), (20, 40, (10, 20)), (7, 9, (7, 9))]
)
def test_the_shorter_side_is_shrunk_and_never_enlarged(height, width, kept):
    pixels = np.linspace(0, 1, height * width, dtype=np.float32).reshape(height, width)
    found = StoredPixels(10)(Radiograph(pixels, Provenance("array", 8), "x"))
    assert found.shape == (1, *kept)
    assert abs(found.float().mean() / 255 - 0.5) < 0.01


def test_bad_rows_are_listed_and_lose_no_other(tmp_path):
    table = write_table(tmp_path, 8)
    rows = _rows(table)
    rows[0]["reference"] = " "
    rows[1]["reference"] = "nan"
    rows[2]["image"] = ["absent.png"]
    (tmp_path / "damaged.png").write_bytes(b"\x89PNG no image")
    rows[3]["image"] = ["damaged.png"]
    rows[4]["view"] = ["LATERAL"]
    pairs = prepare(opened(_write(table, rows)), tmp_path / "pairs")
    assert list(pairs.ids) == ["s5", "s6", "s7"]
    assert [(row, study) for row, study, _ in pairs.failed] == [(k + 1, f"s{k}") for k in range(5)]
    reasons = [reason for _, _, reason in pairs.failed]
    for reason, said in zip(
        reasons, ("empty", "'nan'", "absent.png", "damaged.png", "lateral view"), strict=True
    ):
        assert said in reason


def test_a_table_without_one_pair_is_refused(tmp_path):
    table = write_table(tmp_path, 2)
    rows = [{**row, "reference": ""} for row in _rows(table)]
    with pytest.raises(InvalidSetting, match="no row gives an image and its report; row 1"):
        prepare(opened(_write(table, rows)), tmp_path / "pairs")


def test_pairs_that_were_changed_are_noticed(table, tmp_path):
    pairs = prepare(opened(table), tmp_path / "pairs")
    content = bytearray((tmp_path / "pairs" / "pixels.bin").read_bytes())
    content[7] ^= 1
    del pairs
    (tmp_path / "pairs" / "pixels.bin").write_bytes(content)
    with pytest.raises(ChecksumMismatch, match=r"pixels.bin has been changed"):
        prepare(opened(table), tmp_path / "pairs")


def test_after_a_stop_no_image_is_decoded_again(table, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "_ROWS_AHEAD", 5)
    made = []
    pipeline = StoredPixels.__call__

    def counting(self, radiograph):
        made.append(radiograph.name)
        return pipeline(self, radiograph)

    monkeypatch.setattr(StoredPixels, "__call__", counting)

    def stop(done, failed):
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(opened(table), tmp_path / "pairs", on_progress=stop)
    # A kill in the middle of the next row.
    for name, half in (("pixels.bin", b"\1\2"), ("pairs.jsonl", b'{"row": 11')):
        with (tmp_path / "pairs" / name).open("ab") as stream:
            stream.write(half)
    stored = set(made[:10])
    del made[:]
    again = prepare(opened(table), tmp_path / "pairs")
    assert len(made) == 14
    assert not stored & set(made)
    assert again.sha256 == pairs.sha256
    assert np.array_equal(again.pixels, pairs.pixels)
    with pytest.raises(InvalidSetting, match="side: 256 there, 64 now"):
        prepare(opened(table, side=64), tmp_path / "pairs")


def test_views_and_policies_that_training_has_no_use_for(table):
    with pytest.raises(InvalidSetting, match="first-frontal or frontal"):
        opened(table, views="mean")
    with pytest.raises(InvalidSetting, match="authors"):
        opened(table, image_policy=ImagePolicy.named("authors"))


def test_pairs_of_one_study_or_with_equal_reports_are_the_same(tmp_path):
    table = write_table(tmp_path, 5)
    rows = _rows(table)
    rows[3]["id"] = rows[0]["id"]
    rows[4]["reference"] = rows[1]["reference"]
    pairs = prepare(opened(_write(table, rows)), tmp_path / "pairs")
    found = pairs.same(np.array([4, 0, 1, 3]))
    expected = np.eye(4, dtype=bool)
    expected[1, 3] = expected[3, 1] = True  # one study
    expected[0, 2] = expected[2, 0] = True  # one report
    assert np.array_equal(found, expected)
