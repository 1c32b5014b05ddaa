"""`vlscore retrieval`: what is printed, written and refused."""

import json
import re

import numpy as np
import pytest

from tests.cli.conftest import write_jsonl
from tests.doubles import HashEncoder

pytestmark = pytest.mark.usefixtures("hash_encoder")


def test_retrieval(command, studies, tmp_path):
    out = tmp_path / "retrieval"
    done = command("retrieval", studies, "--out", out)
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split("  ")[0] == "direction"
    assert re.match(r"image to text +[01]\.\d{3} \[[01]\.\d{3}, [01]\.\d{3}\] ", lines[2])
    assert lines[3].startswith("text to image ")
    assert "\nretrieval|txt:all|enc:hash@" in done.stdout
    content = json.loads((out / "result.json").read_text())
    written = {each["direction"]: each for each in content["frames"]["directions"]}
    encoder = HashEncoder()
    i = encoder.encode_images([str(tmp_path / f"{name}.png") for name in "xz"]).double().numpy()
    r = encoder.encode_reports(["Clear\nlungs. ", "Left effusion."]).double().numpy()
    cosines = i @ r.T / np.linalg.norm(i, axis=1)[:, None] / np.linalg.norm(r, axis=1)
    for name, table in (("image to text", cosines), ("text to image", cosines.T)):
        way = written[name]
        assert way["R@1.low"] <= way["R@1"] <= way["R@1.high"]
        assert way["R@1"] == np.mean(table.argmax(1) == [0, 1])
        assert way["R@5"] == 1
        assert f"| {name} | " in (out / "tables.md").read_text()
    assert "holds these results already" in command("retrieval", studies, "--out", out).stderr
    shown = command("retrieval", studies, "--json", "--keep-going")
    assert json.loads(shown.stdout) == content
    bad = write_jsonl(tmp_path / "bad.jsonl", [{"id": 1, "image": "no.png", "reference": "x"}])
    refused = command("retrieval", bad)
    assert refused.exit_code == 2
    assert "no row can be embedded; row 1: " in refused.stderr
