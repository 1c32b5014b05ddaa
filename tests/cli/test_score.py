"""`vlscore score`: one study."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.metrics import Scorer

CANDIDATE, REFERENCE = "Small left effusion.", "Left pleural effusion."


@pytest.fixture
def image(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (16, 12), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "chest.png")
    return tmp_path / "chest.png"


@pytest.fixture
def score(command):
    def run(*arguments):
        return command("score", "-g", CANDIDATE, *arguments)

    return run


@pytest.mark.usefixtures("hash_encoder")
def test_it_prints_what_the_scorer_gives(score, image):
    expected = Scorer(HashEncoder(), metrics="vlscore,bleu-1").score(image, CANDIDATE, REFERENCE)
    shown = score("-i", image, "-r", REFERENCE, "-m", "vlscore,bleu-1")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == f"{expected}\n"
    as_json = score("-i", image, "-r", REFERENCE, "-m", "vlscore,bleu-1", "--json")
    assert json.loads(as_json.stdout) == expected.to_dict()


def test_the_demonstration_is_said_with_the_result_and_in_it(score, image):
    done = score("-i", image, "-r", REFERENCE, "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "trained on synthetic phantoms" in done.stderr
    assert "DEMONSTRATION-ENCODER" in done.stdout


@pytest.mark.usefixtures("hash_encoder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-r", REFERENCE), "needs the image"),
        (("-i", "absent.png", "-r", REFERENCE), "absent.png: no such file"),
        (
            ("-i", "x.png", "-r", REFERENCE, "-m", "euclid"),
            "`vlscore metrics` lists all",
        ),
        (("-i", "x.png", "-r", REFERENCE, "--C", "0"), "greater than 0"),
        (("-i", "x.png", "-r", REFERENCE, "--section", "findings"), "no section"),
        (("-i", "x.png"), "needs the reference"),
    ],
)
def test_slips_are_errors_of_ours_without_the_demonstrations_warning(score, options, message):
    done = score(*options)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.output.count("\n") == 1


@pytest.mark.usefixtures("hash_encoder")
@pytest.mark.parametrize("name", ["report.txt", "reports.csv", "chest.png", "report", "dir", "@"])
@pytest.mark.parametrize("command_name", ["score", "explain"])
@pytest.mark.parametrize("given", ["-g", "-r"])
def test_the_path_of_a_file_is_no_report(command, tmp_path, monkeypatch, name, command_name, given):
    """Its letters were scored: 1.0 where both were the same file."""
    for file in ("report.txt", "reports.csv", "chest.png", "report"):
        (tmp_path / file).write_text("Small left effusion.")
    (tmp_path / "dir").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / name, name) if name != "@" else ("@report.txt", "absent/typo.txt"):
        texts = {"-g": CANDIDATE, "-r": REFERENCE, given: path}
        options = [each for pair in texts.items() for each in pair]
        metric = ("-m", "rouge-l") if command_name == "score" else ("--metric", "rouge-l")
        done = command(command_name, *options, *metric)
        assert done.exit_code == 2, done.output
        assert "is a path; write the text of the report" in done.stderr


def test_a_report_may_hold_any_signs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in (".", "..", "-", "Clear/normal.", "x" * 5000, "No edema.\0", "- Clear.", "Normal"):
        done = command("score", "-g", text, "-r", text + " Clear.", "-m", "rouge-l")
        assert done.exit_code == 0, (text, done.output)
