"""`vlscore orders` from the command line."""

import json

import pytest

from tests.evaluation.alignment.test_orders import CASES


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "radjudge.json"
    path.write_text(json.dumps(CASES), encoding="utf-8")
    return path


def test_passed_and_failed_are_printed_and_written(command, path, tmp_path):
    done = command("orders", path, "-m", "rouge-l", "-o", tmp_path / "orders.md")
    assert done.exit_code == 0, done.output
    assert "3 of 4" in done.stdout
    assert "C2 > C1" in done.stdout
    written = (tmp_path / "orders.md").read_text(encoding="utf-8")
    assert "| rouge-l | 3 of 4 |" in written
    told = command("orders", path, "-m", "rouge-l", "--json")
    assert json.loads(told.stdout)["passed"]["rouge-l"] == [True, False, True, True]
