"""`vlscore bench` as a person uses it."""

import json


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
    assert {"importing torch", "the table and the encoder"} == {s["name"] for s in found["startup"]}
