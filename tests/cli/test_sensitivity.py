"""`vlscore sensitivity` from the command line."""

import json
import re

import pytest

from tests.command import run_command
from tests.evaluation.sensitivities.samples import make_pairs, write_pairs, write_studies
from vlscore.cli.output import SCREEN


@pytest.fixture
def perturbed(tmp_path):
    return write_pairs(tmp_path / "perturbed", make_pairs())


@pytest.fixture
def studies(tmp_path):
    return write_studies(tmp_path)


def _run(*arguments, columns=60):
    arguments = ["sensitivity", *map(str, arguments), "--resamples", "50"]
    return run_command(*arguments, columns=columns)


def test_texts_alone(perturbed, tmp_path):
    out = tmp_path / "out"
    done = _run("-p", perturbed, "-o", out, "--metrics", "bleu-1,rouge-l")
    assert done.exit_code == 0, done.output
    for shown in ("Mean drop by kind", "Table 2", "BLEU-1", "ROUGE-L"):
        assert shown in done.output
    assert done.stdout.count("\n") <= SCREEN + 2
    lines = [line for line in done.stdout.splitlines() if str(out) not in line]
    assert max(map(len, lines)) <= 80
    # The table with the rest is named.
    assert f"the signatures: {out / 'tables.md'}" in done.stdout
    as_json = _run("-p", perturbed, "-o", out, "--metrics", "bleu-1,rouge-l", "--json")
    file = (out / "result.json").read_text(encoding="utf-8")
    assert json.loads(as_json.stdout) == json.loads(file)


@pytest.mark.usefixtures("hash_encoder")
def test_images_their_swap_and_an_unreadable_one(perturbed, studies, tmp_path):
    (tmp_path / "3.png").write_bytes(b"no image")
    options = ("--studies", studies, "--swap-images", "--metrics", "vlscore,cosine")
    done = _run("-p", perturbed, "-o", tmp_path / "out", *options)
    assert done.exit_code == 1
    assert "Does the image count?" in done.output
    assert "3.png" in done.stderr
    again = _run("-p", perturbed, "-o", tmp_path / "out", *options, "--keep-going")
    assert again.exit_code == 0
    assert "nothing was computed" in again.stderr


def test_metrics_that_cannot_run_are_named_with_the_option_that_helps(perturbed, tmp_path):
    done = _run("-p", perturbed, "-o", tmp_path / "out", "--quiet")
    assert done.exit_code == 0
    grouped = r"  vlscore, cosine, .* more: it needs embeddings, but there is no encoder"
    assert re.search(grouped, done.stderr)
    assert done.stderr.count("no encoder") == 1
    asked = _run("-p", perturbed, "-o", tmp_path / "other", "--metrics", "vlscore")
    assert asked.exit_code == 2
    assert "(--studies)" in asked.stderr
    assert "(--encoder)" in asked.stderr
