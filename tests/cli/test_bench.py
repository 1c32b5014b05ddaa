"""`vlscore bench` as a person uses it."""

import json

from vlscore.cli.bench import _is_converted


def test_without_a_table_the_demonstration_is_measured(command):
    done = command("bench", "--encoder", "phantom", "--count", 4)
    assert done.exit_code == 0, done.output
    assert "decoding DICOM" in done.stdout
    assert "4 studies" in done.stdout
    assert "a study" in done.stdout
    assert "trained on synthetic phantoms" in done.stderr


def test_as_json(command):
    done = command("bench", "--encoder", "phantom", "--count", 2, "--json")
    found = json.loads(done.stdout)
    assert found["studies"] == 2
    once = ["importing torch", "the table and the encoder", "results and summary"]
    assert [stage["name"] for stage in found["startup"]] == once


def test_a_checkpoint_that_is_safetensors_need_not_be_converted(tmp_path):
    assert not _is_converted(tmp_path)
    assert not _is_converted(tmp_path / "model.ckpt")
    (tmp_path / "model.safetensors").touch()
    assert _is_converted(tmp_path)
    assert _is_converted(tmp_path / "model.safetensors")
