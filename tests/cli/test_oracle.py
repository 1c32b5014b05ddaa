"""`vlscore oracle`: what is printed, written and refused."""

import json
import re

import pyarrow.parquet as pq
import pytest

from tests.doubles import HashEncoder
from vlscore.embedding.encoder_source import EncoderSource

pytestmark = pytest.mark.usefixtures("hash_encoder")


@pytest.fixture
def index(command, corpus, tmp_path):
    command("index", "build", corpus, "--out", tmp_path / "index")
    return tmp_path / "index"


def test_hits_are_printed_with_what_the_score_cannot_see(command, index, studies):
    done = command("oracle", studies, "--index", index, "--k", 2)
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    assert "absent.png" in done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("s1 ")]
    assert lines[0][1:6] == ["1", "1.0000", "1.0000", "1", "yes"]
    assert lines[0][6:] == ["Clear", "lungs."]
    assert "\nvlscore|C:20|txt:all|enc:hash@" in done.stdout
    assert "|oracle:exact|guard:none|index:" in done.stdout
    assert command("oracle", studies, "--index", index, "--keep-going").exit_code == 0


def test_a_folder_and_json(command, index, studies, tmp_path):
    out = tmp_path / "out"
    done = command("oracle", studies, "--index", index, "--out", out)
    assert f"wrote {out}" in done.stdout
    assert {"hits.parquet", "run.json", "tables.md", "failures.csv"} <= {
        path.name for path in out.iterdir()
    }
    hits = pq.read_table(out / "hits.parquet").to_pylist()
    assert [hit["study_id"] for hit in hits] == ["s1"] * 4 + ["s3"] * 4
    again = command("oracle", studies, "--index", index, "--out", out)
    assert "holds these results already" in again.stderr
    assert again.stdout == done.stdout
    shown = json.loads(command("oracle", studies, "--index", index, "--json").stdout)
    (summary,) = shown["frames"]["summary"]
    assert (summary["searched"], summary["failed"], summary["verbatim"]) == (2, 1, 1)
    assert summary["mean.low"] <= summary["mean"]
    assert command("oracle", studies, "--index", index, "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("options", "signed"),
    [
        (("-m", "image-to-text"), "image-to-text|txt:all|"),
        (("-m", "vlscore(C=7)"), "vlscore|C:7|"),
        (("--C", 3), "vlscore|C:3|"),
        (("--guard", "window"), "|guard:window|"),
        (("--exclude-exact", "--exclude-ids", "own"), "|excl:exact+ids(own)|"),
        (("-m", "bleu-2", "--candidates", 0), "|candidates:all\n"),
        (("-m", "image-gain-distance(image=4)"), "image-gain-distance|image:4|"),
    ],
)
def test_options_are_in_the_signature(command, index, studies, options, signed):
    done = command("oracle", studies, "--index", index, "--keep-going", *options)
    assert done.exit_code == 0, done.output
    assert signed in done.stdout


def test_what_does_not_fit_is_refused(command, index, studies, tmp_path):
    for options, said in (
        (("--section", "findings"), r"txt: all against findings"),
        (("--precision", "bf16"), r"prec: fp32 against bf16"),
        (("-m", "cosine", "--C", 3), "cosine has no parameter 'C'"),
        (("--exclude-ids", "patient"), "no column patient; found: "),
        (("--rename", "image=picture"), "no column picture"),
    ):
        done = command("oracle", studies, "--index", index, *options)
        assert done.exit_code == 2
        assert re.search(said, done.stderr), done.stderr
    missing = command("oracle", studies, "--index", tmp_path / "none")
    assert missing.exit_code == 2
    (index / "vectors.npy").write_bytes(b"")
    damaged = command("oracle", studies, "--index", index)
    assert damaged.exit_code == 2


def test_the_environment_does_not_choose_another_encoder_than_the_indexs(
    command, index, studies, monkeypatch
):
    asked = []

    def load(name, **_):
        asked.append(name)
        return EncoderSource(HashEncoder())

    monkeypatch.setattr("vlscore.embedding.embedder.named_encoder", load)
    monkeypatch.setenv("VLSCORE_ENCODER", "gloria")
    found = command("oracle", studies, "--index", index, "--metric", "cosine")
    assert found.exit_code == 0, found.output
    assert asked == ["hash"]
