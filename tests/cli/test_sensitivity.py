"""`vlscore sensitivity` from the command line."""

import csv
import json
import re
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.doubles import HashEncoder
from tests.meta.samples import make_pairs
from vlscore.cli import app
from vlscore.cli.sensitivity import _names


@pytest.fixture
def perturbed(tmp_path):
    with (tmp_path / "perturbations.jsonl").open("w", encoding="utf-8") as stream:
        for pair in make_pairs():
            record = asdict(pair)
            significant = record.pop("is_significant")
            record["expected"] = "significant" if significant else "insignificant"
            stream.write(json.dumps(record) + "\n")
    return tmp_path


@pytest.fixture
def studies(tmp_path):
    rng = np.random.default_rng(3)
    rows = ["id,image"]
    for k in range(8):
        Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)).save(tmp_path / f"{k}.png")
        rows.append(f"{k},{k}.png")
    table = tmp_path / "studies.csv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return table


@pytest.fixture
def hash_encoder(monkeypatch):
    from vlscore.scorer import scorer

    monkeypatch.setattr(scorer, "load_encoder", lambda *_, **__: HashEncoder())


def _run(*arguments):
    return CliRunner().invoke(app, ["sensitivity", *map(str, arguments)], env={"COLUMNS": "60"})


def test_texts_alone(perturbed, tmp_path):
    out = tmp_path / "out"
    done = _run("-p", perturbed, "-o", out, "--metrics", "bleu-1,rouge-l", "--resamples", 50)
    assert done.exit_code == 0, done.output
    for shown in ("Table 2", "Table 3", "Standard normal report", "rouge-score:"):
        assert shown in done.output
    assert (out / "normal_reports.png").read_bytes().startswith(b"\x89PNG")
    with (out / "values.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(make_pairs())
    assert {float(row["rouge-l original"]) for row in rows} == {1.0}
    content = json.loads((out / "sensitivity.json").read_text(encoding="utf-8"))
    assert [metric["name"] for metric in content["metrics"]] == ["bleu-1", "rouge-l"]
    assert content["swaps"] == []
    tables = (out / "tables.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]", tables)
    assert numbers
    assert all(number in done.output for number in numbers)


@pytest.mark.usefixtures("hash_encoder")
def test_images_and_their_swap(perturbed, studies, tmp_path):
    out = tmp_path / "out"
    options = ("--studies", studies, "--swap-images", "--resamples", 50)
    done = _run("-p", perturbed, "-o", out, *options, "--metrics", "vlscore,cosine")
    assert done.exit_code == 0, done.output
    assert "Does the image count?" in done.output
    content = json.loads((out / "sensitivity.json").read_text(encoding="utf-8"))
    assert [(swap["metric"], swap["image"]) for swap in content["swaps"]] == [
        ("vlscore", "other study"),
        ("vlscore", "black"),
        ("cosine", "other study"),
        ("cosine", "black"),
    ]


@pytest.mark.usefixtures("hash_encoder")
def test_an_unreadable_image_is_named_and_the_status_tells(perturbed, studies, tmp_path):
    (tmp_path / "3.png").write_bytes(b"no image")
    done = _run(
        "-p", perturbed, "-o", tmp_path / "out", "--studies", studies, "--metrics", "vlscore"
    )
    assert done.exit_code == 1
    assert "3.png" in done.output


def test_swapping_without_studies_is_refused(perturbed, tmp_path):
    done = _run("-p", perturbed, "-o", tmp_path / "out", "--swap-images")
    assert done.exit_code != 0
    assert "--studies" in str(done.exception)


def test_commas_inside_parentheses_separate_parameters():
    assert _names("vlscore, bleu-4(smoothing=exp,tokens=cxr),") == [
        "vlscore",
        "bleu-4(smoothing=exp,tokens=cxr)",
    ]
