"""`vlscore calibrate` on the bundled studies."""

import json
import shutil

from tests.conftest import REPOSITORY

STUDIES = REPOSITORY / "weights" / "phantom" / "demo" / "studies.jsonl"
HERE = ("--workers", "0")


def test_prints_C_with_its_quantiles_and_signature(command):
    done = command("calibrate", STUDIES, *HERE)
    assert done.exit_code == 0, done.stderr
    assert "largest (C)" in done.stdout
    assert "0.95" in done.stdout
    assert "enc:phantom-judging@" in done.stdout
    assert "trained on synthetic phantoms" in done.stderr


def test_json_alone_with_others(command, hash_encoder):
    done = command("calibrate", STUDIES, "--others", "2", "--json", *HERE)
    found = json.loads(done.stdout)
    assert (found["studies"], found["triangles"]) == (100, 200)
    assert found["C"] >= found["quantiles"]["0.99"]["estimate"]


def test_writes_the_card_of_the_folder(command, tmp_path):
    weights = tmp_path / "trained"
    shutil.copytree(REPOSITORY / "weights" / "phantom-judging", weights)
    encoder = ("-e", "phantom-judging", "--weights", weights)
    asked = ("calibrate", STUDIES, *encoder, "--write-card", *HERE)
    card = json.loads((weights / "card.json").read_text())
    (weights / "card.json").write_text(json.dumps(card | {"C": None}))
    done = command(*asked)
    assert done.exit_code == 0, done.stderr
    assert f"wrote {weights / 'card.json'}" in done.stdout
    assert json.loads((weights / "card.json").read_text())["C"] > 0


def test_rows_that_failed_are_listed(command, hash_encoder, tmp_path):
    lines = STUDIES.read_text().splitlines()
    broken = json.loads(lines[0]) | {"image": "absent.dcm"}
    table = tmp_path / "studies.jsonl"
    table.write_text("\n".join([json.dumps(broken), *lines[1:]]))
    asked = ("calibrate", table, "--image-root", STUDIES.parent, *HERE)
    done = command(*asked)
    assert done.exit_code == 1
    assert "1 row could not be used" in done.stderr
    assert "absent.dcm" in done.stderr
    assert command(*asked, "--keep-going").exit_code == 0
