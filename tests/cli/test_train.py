"""`vlscore train`: from a table to a checkpoint, a config, and its messages."""

import json
import re
import tomllib

import pytest
from safetensors import safe_open

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.training.toys import write_table
from vlscore.core import file_digest
from vlscore.encoders import load_encoder

SMALL = ("--batch-size", "6", "--epochs", "2", "--set", "validation_share=0.2", "--workers", "0")
# The toy encoder has a tower for lateral views, which --views does not use here.
NOTE = re.compile(r"^note: toy has a tower for lateral views, .*\n")
TOY = ("--encoder", "tests.training.toys:ToyEncoder", "--objective", "tests.training.toys:Local")


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path, 20)


def test_a_table_becomes_an_encoder_that_scores(table, tmp_path, command):
    out = tmp_path / "out"
    done = command("train", table, "--out", out, "--objective", "siglip", "--device", "cpu", *SMALL)
    assert done.exit_code == 0, done.output
    assert "16 pairs, 4 steps of siglip" in done.stdout
    assert f"use it with: --encoder small --weights {out}" in done.stdout
    encoder = load_encoder("small", weights=out)
    assert "siglip" in encoder.card.title
    assert encoder.encode_reports(["Clear lungs."]).shape == (1, encoder.card.dim)
    rows = [{**row, "candidate": row["reference"]} for row in read_jsonl(table)]
    scored = command(
        "evaluate", write_jsonl(tmp_path / "scored.jsonl", rows), "--out", tmp_path / "scores",
        "--encoder", "small", "--weights", out, "--metrics", "cosine", "--device", "cpu",
        "--workers", "0",
    )  # fmt: skip
    assert scored.exit_code == 0, scored.output


def test_the_card_says_what_it_was_trained_on(table, tmp_path, command):
    command("train", table, "--out", tmp_path / "out", "--device", "cpu", *SMALL, "--seed", "3")
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    training = card["training"]
    assert training["objective"] == "convirt"
    assert training["seed"] == 3
    pixels = file_digest(tmp_path / "out" / "pairs" / "pixels.bin")
    assert len(training["data_sha256"]) == len(pixels) == 64
    assert run["data_sha256"] == training["data_sha256"]
    assert run["key"]["data"]["table_sha256"] == file_digest(table)
    assert run["libraries"]["torch"]
    measured = card["calibration"]
    assert card["C"] == measured["C"] > 0
    assert measured["studies"] == run["validation_pairs"] == 4
    assert measured["triangles"] == 16
    loaded = load_encoder("small", weights=tmp_path / "out")
    assert card["C"] == loaded.card.C
    assert "largest area of 16 triangles of 4 studies of studies.jsonl" in loaded.card.C_source
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as weights:
        assert len(list(weights.keys())) > 5


def test_a_config_repeats_the_run(table, tmp_path, command):
    first, second = tmp_path / "first", tmp_path / "second"
    options = ("--learning-rate", "0.01", "--augmentation", "light", "--sentences", "shuffled")
    command("train", table, "--out", first, "--device", "cpu", *TOY, *SMALL, *options)
    config = first / "training.toml"
    values = tomllib.loads(config.read_text())
    assert values["learning_rate"] == 0.01
    assert values["batch_size"] == 6
    assert values["studies"] == str(table)
    refused = command("train", "--config", config, "--out", second)
    assert "names the encoder 'tests.training.toys:ToyEncoder'" in refused.stderr
    assert "--encoder" in refused.stderr
    named = ("train", "--config", config, *TOY)
    done = command(*named, "--out", second, "--device", "cpu", "--quiet")
    assert done.exit_code == 0, done.output
    assert [done.output] == NOTE.findall(done.output)
    for name in ("model.safetensors", "training.toml", "log.csv", "validation.csv"):
        assert file_digest(first / name) == file_digest(second / name)
    third = tmp_path / "third"
    command(*named, "--out", third, "--seed", "9", "-q", "--device", "cpu")
    values = tomllib.loads((third / "training.toml").read_text())
    assert (values["seed"], values["learning_rate"]) == (9, 0.01)


def test_bad_rows_are_listed_and_set_the_exit_status(table, tmp_path, command):
    rows = read_jsonl(table)
    rows[2]["image"] = "absent.png"
    rows[5]["reference"] = ""
    write_jsonl(table, rows)
    arguments = ("train", table, "--device", "cpu", *TOY, *SMALL)
    done = command(*arguments, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "2 rows gave no pair:" in done.stderr
    listed = (tmp_path / "out" / "failures.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in listed[1:]] == [["3", "s2"], ["6", "s5"]]
    kept = command(*arguments, "--out", tmp_path / "out", "--keep-going")
    assert kept.exit_code == 0


def test_runs_share_their_pairs(table, tmp_path, command):
    pairs = tmp_path / "decoded"
    for seed in ("0", "1"):
        done = command(
            "train", table, "--out", tmp_path / seed, "--pairs", pairs, "--seed", seed, *TOY, *SMALL
        )
        assert done.exit_code == 0, done.output
    assert not (tmp_path / "1" / "pairs").exists()
    one, other = (json.loads((tmp_path / s / "run.json").read_text()) for s in ("0", "1"))
    assert one["data_sha256"] == other["data_sha256"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--objective", "convrit"), "did you mean convirt"),
        (("--augmentation", "flip"), "no augmentation is called 'flip'"),
        (("--batch-size", "500"), "there are 20 training pairs, fewer than batch_size=500"),
        (("--batch-size", "20"), "there are 19 training pairs, fewer than batch_size=20"),
        (("--style", "convirt", *TOY), "is of a new small encoder"),
        (("--views", "frontal+lateral", "--encoder", "biovil"), "has no tower for lateral views"),
        (("--style", "mgca", "--objective", "judging"), "trains the lengths of vectors"),
        (("--set", "clip=warm"), "clip is a number, true or false"),
    ],
)
def test_a_slip_is_said_in_words(table, tmp_path, command, options, said):
    done = command("train", table, "--out", tmp_path / "out", "--workers", "0", *options)
    assert done.exit_code != 0
    assert said in done.output
    assert not (tmp_path / "out" / "model.safetensors").exists()
    # What can be known at once is said before an image is decoded.
    assert (tmp_path / "out").exists() == (options == ("--batch-size", "20"))
