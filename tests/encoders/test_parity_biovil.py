"""BioViL and BioViL-T against what their authors' code returned."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same,
    load_as_authors,
    row_error,
)
from vlscore.encoders import JointEncoder
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

IMAGE_FILES = {
    "biovil": "biovil_image_resnet50_proj_size_128.pt",
    "biovil-t": "biovil_t_image_model_proj_size_128.pt",
}
NAMES = sorted(IMAGE_FILES)


@pytest.fixture(scope="module")
def goldens() -> dict[str, Golden]:
    return {name: Golden.of(name) for name in NAMES}


@pytest.fixture(scope="module")
def folder(goldens: dict[str, Golden], checkpoints: Path) -> Path:
    """Both models' files under their published names, with the vocabulary beside them."""
    for name, golden in goldens.items():
        torch.save(golden.tensors("manifest_image.json"), checkpoints / IMAGE_FILES[name])
    # The two report towers have the same keys, and so the same pseudo-random tensors.
    torch.save(goldens["biovil"].tensors("manifest_text.json"), checkpoints / "pytorch_model.bin")
    goldens["biovil"].vocabulary(checkpoints)
    return checkpoints


@pytest.fixture(scope="module")
def encoder_of(folder: Path) -> Callable[[str], JointEncoder]:
    loaded: dict[str, JointEncoder] = {}

    def load(name: str) -> JointEncoder:
        if name not in loaded:
            loaded[name] = load_as_authors(name, folder, None)
        return loaded[name]

    return load


@pytest.mark.parametrize("name", NAMES)
def test_parity(
    name: str, encoder_of: Callable[[str], JointEncoder], goldens: dict[str, Golden]
) -> None:
    assert_same(encoder_of(name), goldens[name])


@pytest.mark.parametrize("name", NAMES)
def test_parity_on_all_inputs(
    name: str, encoder_of: Callable[[str], JointEncoder], goldens: dict[str, Golden], shared: Path
) -> None:
    assert_same(encoder_of(name), goldens[name].whole(shared))


@pytest.mark.parametrize("name", NAMES)
def test_patches(
    name: str, encoder_of: Callable[[str], JointEncoder], goldens: dict[str, Golden], shared: Path
) -> None:
    encoder, golden = encoder_of(name), goldens[name].whole(shared)
    pixels = torch.stack([encoder.image_pipeline.as_authors(path) for path in golden.images])
    with torch.inference_mode():
        patches = encoder.embed_patches(pixels)
    assert patches.shape == tuple(golden["img_local_shape"])
    assert row_error(patches.mean((2, 3)), golden["img_local_mean"]) <= TOLERANCE
    assert row_error(patches[:, :8, ::5, ::5], golden["img_local_slice"]) <= TOLERANCE


def test_previous_image(
    encoder_of: Callable[[str], JointEncoder], goldens: dict[str, Golden], shared: Path
) -> None:
    encoder, golden = encoder_of("biovil-t"), goldens["biovil-t"].whole(shared)
    pixels = torch.stack([encoder.image_pipeline.as_authors(path) for path in golden.images])
    previous = pixels[torch.from_numpy(golden["previous_index"])]
    with torch.inference_mode():
        found = encoder.embed_images_with_previous(pixels, previous)
    expected = torch.from_numpy(golden["img_global_raw_with_previous"])
    assert row_error(found, torch.nn.functional.normalize(expected, dim=-1)) <= TOLERANCE


def test_very_long_report_is_truncated_and_flagged(
    encoder_of: Callable[[str], JointEncoder],
) -> None:
    tokens = encoder_of("biovil").tokenize(["lungs are clear. " * 200, "clear"])
    assert tokens.lengths.tolist() == [512, 3]
    assert tokens.truncated.tolist() == [True, False]


def test_folder_without_the_image_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").symlink_to(folder / "vocab.txt")
    (tmp_path / "README.md").write_text("nothing else")
    with pytest.raises(WeightsNotFound, match="biovil_image_resnet50_proj_size_128"):
        load_as_authors("biovil", tmp_path, None)


def test_the_other_models_image_tower_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / IMAGE_FILES["biovil"]).symlink_to(folder / IMAGE_FILES["biovil-t"])
    for name in ("vocab.txt", "pytorch_model.bin"):
        (tmp_path / name).symlink_to(folder / name)
    with pytest.raises(IncompatibleCheckpoint, match=r"encoder\.vit_pooler\.type_embed"):
        load_as_authors("biovil", tmp_path, None)
