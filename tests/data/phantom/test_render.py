"""The picture shows the scene: where a finding is, the picture changes, and nowhere else much."""

import numpy as np
import pytest

from vlscore.data import (
    KINDS,
    Acquisition,
    PhantomFinding,
    Scene,
    read_image,
    render,
    sample_scene,
)
from vlscore.data.phantom.phantom_pairs import (
    scene_at,
    write_dataset,
    write_dicom,
    write_png,
)

PLAIN = Acquisition(1.0, 0.0, 0.0, 1.0, 0.0, seed=3)
SIZE = 128


def change(finding):
    """How far the finding changes the picture, (SIZE, SIZE)."""
    with_it = render(Scene((finding,), PLAIN), SIZE).astype(float)
    return np.abs(with_it - render(Scene((), PLAIN), SIZE).astype(float)) / 4095


def one_of(kind, **attributes):
    spec = KINDS[kind]
    return PhantomFinding(
        kind,
        attributes.get("side", spec.sides[0] if spec.sides else None),
        attributes.get("zone", spec.zones[-1] if spec.zones else None),
        attributes.get("severity", 2 if spec.severities else None),
    )


def test_the_same_scene_gives_the_same_picture_in_twelve_bits():
    scene = sample_scene(np.random.default_rng(0))
    picture = render(scene)
    assert picture.shape == (256, 256)
    assert picture.dtype == np.uint16
    assert picture.max() <= 4095
    assert np.array_equal(picture, render(scene))


@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_shows(kind):
    assert (change(one_of(kind)) > 0.03).sum() >= 8


SIDED = ["effusion", "pneumothorax", "consolidation", "nodule", "atelectasis", "fracture"]


@pytest.mark.parametrize("kind", SIDED)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_finding_shows_on_its_side(kind, side):
    difference = change(one_of(kind, side=side))
    image_left, image_right = difference[:, : SIZE // 2].sum(), difference[:, SIZE // 2 :].sum()
    # The patient faces the viewer.
    own, other = (image_right, image_left) if side == "left" else (image_left, image_right)
    assert own > 4 * other


@pytest.mark.parametrize("kind", ["consolidation", "nodule", "atelectasis", "fracture"])
def test_a_finding_shows_in_its_zone(kind):
    rows = np.arange(SIZE)[:, None]
    heights = []
    for zone in ("upper", "middle", "lower"):
        difference = change(one_of(kind, zone=zone))
        heights.append((rows * difference).sum() / difference.sum())
    assert heights[0] < heights[1] - 8 < heights[2] - 16


@pytest.mark.parametrize("kind", [k for k, spec in KINDS.items() if spec.severities])
def test_a_severer_finding_shows_more(kind):
    amounts = [change(one_of(kind, severity=severity)).sum() for severity in (1, 2, 3)]
    assert amounts[0] < amounts[1] < amounts[2]


def test_files_hold_the_picture(tmp_path):
    picture = render(scene_at(5, 1))
    write_dicom(tmp_path / "a.dcm", picture)
    write_png(tmp_path / "a.png", picture)
    dicom = read_image(tmp_path / "a.dcm")
    np.testing.assert_allclose(dicom.pixels * 4095, picture, atol=1.0)
    assert dicom.provenance.modality == "CR"
    assert dicom.provenance.view == "PA"
    assert read_image(tmp_path / "a.png").shape == picture.shape


def test_a_data_set_is_the_same_bytes_each_time(tmp_path):
    tables = [
        write_dataset(tmp_path / name, seed=4, count=2, format="dicom", size=64)
        for name in ("a", "b")
    ]
    for name in ("studies.jsonl", "phantom-4-00000.dcm", "phantom-4-00001.dcm"):
        first, second = ((table.parent / name).read_bytes() for table in tables)
        assert first == second
