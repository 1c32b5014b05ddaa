"""`vlscore weights fetch` of the networks of metrics, from a hub on the loopback address."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback_hub import hub_environment, loopback_hub
from tests.metrics.networks.constructed import (
    pack,
    write_chexbert,
    write_radgraph,
)
from vlscore.encoders import network_cards, networks_named
from vlscore.metrics import METRICS

_SCORERS = "StanfordAIMI/RRG_scorers"
_BIOMEDBERT = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"
# The name that the archive contains: the repository was renamed later.
_PUBMEDBERT = "microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext"


def _run(program: str, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


_VLSCORE = "import sys; from vlscore.cli import command_line; sys.exit(command_line(sys.argv[1:]))"


def _vlscore(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess:
    return _run(_VLSCORE, environment, *arguments)


def test_every_card_names_a_hub_and_metrics_that_there_are():
    for name, card in network_cards().items():
        assert card.weights.hub, name
        assert card.weights.status == "published", name
        assert card.weights.files or card.weights.is_folder, name
        assert set(card.metrics) <= set(METRICS), name
    assert networks_named("CheXbert") == ["chexbert"]
    assert set(networks_named("radcliq-v1")) == {"chexbert", "radgraph", "distilroberta-base"}
    assert networks_named("biovil") == []


def _radgraph(folder: Path, bert: str) -> dict[str, dict[str, bytes]]:
    files = write_radgraph(folder / "files", bert)
    archive = pack(files, folder / "radgraph.tar.gz")
    words = (files / "vocab.txt").read_bytes()
    return {
        _SCORERS: {"radgraph.tar.gz": archive.read_bytes()},
        _BIOMEDBERT: {"vocab.txt": words},
    }


@pytest.mark.slow
def test_radgraph_runs_after_one_command(tmp_path):
    table = tmp_path / "pairs.csv"
    report = "There is a small left pleural effusion."
    table.write_text(f"id,reference,candidate\na,{report},{report}\n")
    with loopback_hub(_radgraph(tmp_path, _PUBMEDBERT)) as (address, asked):
        environment = hub_environment(address, tmp_path)
        score = ("evaluate", str(table), "--metrics", "radgraph-partial", "--out")
        refused = _vlscore(environment, *score, str(tmp_path / "before"))
        assert refused.returncode != 0
        assert "vlscore weights fetch radgraph" in " ".join(refused.stderr.split())
        assert not asked
        fetched = _vlscore(environment, "weights", "fetch", "radgraph")
        assert fetched.returncode == 0, fetched.stderr
        assert "no digest is published" in fetched.stdout
        count = len(asked)
        done = _vlscore(environment, *score, str(tmp_path / "after"))
        assert done.returncode == 0, done.stderr
        assert len(asked) == count, "scoring asks no hub"
    run = json.loads((tmp_path / "after" / "run.json").read_text())
    archive = hashlib.sha256((tmp_path / "radgraph.tar.gz").read_bytes()).hexdigest()
    assert f"radgraph.tar.gz@{archive[:12]}" in json.dumps(run)
    listed = _vlscore(environment, "weights", "list").stdout
    assert "published; found on this machine" in listed.split("\nradgraph\n")[1]


@pytest.mark.slow
def test_the_vocabulary_of_another_bert_is_refused(tmp_path):
    """Both have 30,522 pieces, so that nothing but the name tells them apart."""
    table = tmp_path / "pairs.csv"
    table.write_text("id,reference,candidate\na,Clear lungs.,Clear lungs.\n")
    with loopback_hub(_radgraph(tmp_path, "bert-base-uncased")) as (address, _):
        environment = hub_environment(address, tmp_path)
        assert _vlscore(environment, "weights", "fetch", "radgraph").returncode == 0
    out = str(tmp_path / "out")
    done = _vlscore(environment, "evaluate", str(table), "-m", "radgraph-f1", "--out", out)
    assert done.returncode != 0
    assert "uses the BERT bert-base-uncased" in " ".join(done.stderr.split())


# The card's digest replaced by that of the constructed file, which no hub publishes.
_CONSTRUCTED = """
import sys
from dataclasses import replace
from vlscore.cli import command_line
from vlscore.encoders import network_cards
card = network_cards()["chexbert"]
(file,) = card.weights.files
files = (replace(file, sha256=sys.argv[1]),)
network_cards()["chexbert"] = replace(card, weights=replace(card.weights, files=files))
sys.exit(command_line(sys.argv[2:]))
"""


@pytest.mark.slow
def test_chexbert_must_have_the_published_digest(tmp_path):
    content = write_chexbert(tmp_path / "made").read_bytes()
    words = (tmp_path / "made" / "vocab.txt").read_bytes()
    repositories = {_SCORERS: {"chexbert.pth": content}, "bert-base-uncased": {"vocab.txt": words}}
    (file,) = network_cards()["chexbert"].weights.files
    table = tmp_path / "pairs.csv"
    table.write_text("id,reference,candidate\na,Clear lungs.,Clear lungs.\n")
    with loopback_hub(repositories) as (address, _):
        environment = hub_environment(address, tmp_path)
        refused = _vlscore(environment, "weights", "fetch", "chexbert")
        assert refused.returncode != 0
        assert str(file.sha256) in refused.stderr.replace("\n", "").replace(" ", "")
        digest = hashlib.sha256(content).hexdigest()
        fetched = _run(_CONSTRUCTED, environment, digest, "weights", "fetch", "chexbert-f1")
        assert fetched.returncode == 0, fetched.stderr
        assert f"sha256 {digest}, the published file" in fetched.stdout
    score = ("evaluate", str(table), "-m", "chexbert-f1", "--out", str(tmp_path / "out"))
    done = _run(_CONSTRUCTED, environment, digest, *score)
    assert done.returncode == 0, done.stderr
    # An encoder's single file in VLSCORE_WEIGHTS is not taken for the network's.
    other = tmp_path / "limitr.ckpt"
    other.write_bytes(b"another model")
    environment |= {"VLSCORE_WEIGHTS": str(other)}
    done = _run(_CONSTRUCTED, environment, digest, *score[:-1], str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr


def test_a_model_of_transformers_is_a_folder_with_its_name(tmp_path):
    held = {
        "config.json": b"{}",
        "model.safetensors": b"tensors",
        "pytorch_model.bin": b"pickle",
        "vocab.json": b"{}",
        "merges.txt": b"",
        "README.md": b"text",
        "onnx/model.safetensors": b"other tensors",
    }
    with loopback_hub({"distilbert/distilroberta-base": held}) as (address, _):
        environment = hub_environment(address, tmp_path)
        fetched = _vlscore(environment, "weights", "fetch", "distilroberta-base")
        assert fetched.returncode == 0, fetched.stderr
        folder = tmp_path / "cache" / "vlscore" / "weights" / "distilroberta-base"
        names = {path.name for path in folder.iterdir() if path.is_file()}
        assert names == {"config.json", "model.safetensors", "vocab.json", "merges.txt"}
        # The hub sends another file later: the first one's digest was recorded.
        (folder / "model.safetensors").unlink()
        held["model.safetensors"] = b"other"
        changed = _vlscore(environment, "weights", "fetch", "distilroberta-base")
    assert changed.returncode != 0
    assert "the first download of" in " ".join(changed.stderr.split())
    assert "digests.json" in changed.stderr.replace("\n", "")


def test_without_a_network_it_fails_at_once(tmp_path):
    environment = hub_environment("http://127.0.0.1:9", tmp_path)
    for name in ("chexbert", "ratescore"):
        failed = _vlscore(environment, "weights", "fetch", name)
        assert failed.returncode != 0
        assert "could not be downloaded from huggingface.co" in " ".join(failed.stderr.split())
        assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("name", ["chexbert-f1", "radgraph-f1", "ratescore", "green"])
def test_a_metric_says_which_command_gets_its_network(name, tmp_path):
    environment = hub_environment("http://127.0.0.1:9", tmp_path)
    said = " ".join(_vlscore(environment, "metrics", name).stdout.split())
    wanted = said.split("`vlscore weights fetch ")[1].split("`")[0]
    assert set(networks_named(wanted)) == set(networks_named(name))
