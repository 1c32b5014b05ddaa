"""What training starts from, and how it stops."""

import json
import os
import signal

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.conftest import opened
from tests.training.toys import ToyEncoder, write_table
from vlscore.encoders import SmallEncoder
from vlscore.encoders.blocks.convolutional import EfficientNetLite
from vlscore.errors import InvalidSetting
from vlscore.training import Start
from vlscore.training.loop import stop_requests
from vlscore.training.start import loaded_encoder, loaded_modules, own_copy, small_encoder
from vlscore.training.training_pairs import prepare


def test_a_small_encoder_has_the_words_of_the_reports():
    start = Start(style="gloria")
    assert loaded_encoder(start) is None
    one, same, other = (
        small_encoder(start, ["Large heart.", "No edema."], seed) for seed in (1, 1, 2)
    )
    assert set(one.tokenizer.words) == {"large", "heart", "no", "edema"}
    assert one.card.title == "Small encoder in the style of gloria"
    states = [encoder.state_dict() for encoder in (one, same, other)]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    assert any(not torch.equal(value, states[2][name]) for name, value in states[0].items())
    assert start.stored_side == 256
    large = Start(side=320)
    assert small_encoder(large, ["Large heart."], 1).image_pipeline.side == 320
    assert large.stored_side == round(320 * 8 / 7)


@pytest.fixture(scope="module")
def image_weights(tmp_path_factory):
    """Return a file of EfficientNet-Lite0 with timm's names and its classifier."""
    trunk = EfficientNetLite()
    tensors = {
        **{f"model.{name}": value + 0.25 for name, value in trunk.state_dict().items()},
        "model.classifier.weight": torch.zeros(2, 1280),
        "model.bn2.weight": torch.zeros(1280),
    }
    path = tmp_path_factory.mktemp("weights") / "efficientnet.safetensors"
    save_file(tensors, path)
    return path


def test_a_small_encoder_starts_from_image_weights(image_weights, tmp_path):
    start = Start(style="convirt", side=64, image_weights=image_weights)
    encoder = small_encoder(start, ["Large heart."], 3, lateral=True)
    stored = load_file(image_weights)
    for name, value in encoder.image_trunk.state_dict().items():
        assert torch.equal(value, stored[f"model.{name}"]), name
    assert loaded_modules(start) == ("image_trunk",)
    encoder.save(tmp_path)
    again = SmallEncoder.load(tmp_path)
    assert again.settings == encoder.settings
    assert again.has_lateral_tower
    images = torch.randn(3, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for embed in ("embed_images", "embed_lateral_images"):
            assert torch.equal(getattr(again, embed)(images), getattr(encoder, embed)(images))
        both = again.study_features(images, images[:1], torch.tensor([False, True, False])).vectors
        alone = again.embed_images(images) / 2
        torch.testing.assert_close(both[[0, 2]], alone[[0, 2]])
        torch.testing.assert_close(
            both[1], alone[1] + again.embed_lateral_images(images[:1])[0] / 2
        )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"encoder": "limitr", "style": "limitr"}, "is of a new small encoder"),
        ({"encoder": "limitr", "side": 96}, "side .* is of a new small encoder"),
        ({"encoder": "limitr", "image_weights": "i"}, "image-weights.* is of a new small encoder"),
        ({"style": "bogus"}, "style is one of biovil, .*, not 'bogus'"),
        ({"side": 100}, "side is a multiple of 32"),
        ({"image_weights": "i", "side": 96}, "side is a multiple of 64"),
    ],
)
def test_settings_that_do_not_go_together(settings, said):
    with pytest.raises(InvalidSetting, match=said):
        Start(**settings)


def test_training_does_not_write_to_the_memory_that_was_given():
    """Weights of a checkpoint may lie in the mapped file."""
    encoder = ToyEncoder()
    lent = {name: tensor.detach() for name, tensor in encoder.named_parameters()}
    before = {name: tensor.clone() for name, tensor in lent.items()}
    digest = encoder.weights_digest
    assert own_copy(encoder) is encoder
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in lent.items())
    assert encoder.weights_digest != digest


def test_a_signal_asks_once_and_stops_the_second_time():
    before = signal.getsignal(signal.SIGTERM)
    with stop_requests() as is_stopped:
        assert not is_stopped()
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_stop_while_images_are_decoded_stops_at_once(run_toy, tmp_path):
    """No step is there to be finished; decoded images are kept."""
    table = write_table(tmp_path, 8)
    made = opened(table)

    def interrupt(done, failed):
        if done:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_toy(tmp_path / "out", preparation=made, on_progress=interrupt)
    prepare(made, tmp_path / "out" / "pairs")


def test_studies_without_a_patient_are_by_themselves(tmp_path):
    table = write_table(tmp_path, 4)
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    for row, patient in zip(rows, ("a", None, "", "a"), strict=True):
        row["patient"] = patient
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = prepare(opened(table, group_column="patient"), tmp_path / "pairs")
    assert len(set(pairs.groups)) == 3
    assert pairs.groups[0] == pairs.groups[3]
