"""`vlscore claims`: options, files, what is printed and refused."""

import json

import pytest

from tests.claims.test_run import write

pytestmark = pytest.mark.usefixtures("hash_encoder")


def test_claims(command, tmp_path):
    fit, _ = write(tmp_path, 1, 160)
    studies, _ = write(tmp_path, 2, 20, candidates=True)
    out = tmp_path / "out"
    done = command("claims", studies, "--fit", fit, "--rate", "0.2", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "Verdicts on the claims of 20 studies" in done.stdout
    assert "no promise for another hospital" in done.stderr
    assert {"claims.csv", "evidence.npz"} <= {path.name for path in out.iterdir()}
    assert json.loads((out / "run.json").read_text())["key"]["rate"] == 0.2
    metric = f"judge-image(evidence={out / 'evidence.npz'})"
    scored = command("evaluate", studies, "-m", metric, "--out", tmp_path / "scored")
    assert scored.exit_code == 0, scored.stderr
    judged = command(
        "judge", studies, "--evidence", out / "evidence.npz", "--out", tmp_path / "judged"
    )
    assert judged.exit_code == 0, judged.stderr
    assert "the image sides with" in judged.stdout
    refused = command("claims", studies, "--out", tmp_path / "no")
    assert refused.exit_code == 2
    assert "--fit" in refused.stderr
