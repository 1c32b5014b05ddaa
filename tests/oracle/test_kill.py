"""An oracle, and a retrieval evaluation, that are killed go on, and end with the same bytes."""

import json
import subprocess
import sys
import time

import pytest

from tests.oracle.test_find import files_of
from vlscore.embedding import StudyEmbedder
from vlscore.index import SourceSettings, build_index
from vlscore.meta.retrieval_run import RESULTS
from vlscore.phantom.dataset import write_dataset

STUDIES = 140


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Phantoms whose references repeat from chunk to chunk, and an index of their reports."""
    folder = tmp_path_factory.mktemp("phantoms")
    table = write_dataset(folder / "few", seed=1, count=35, size=32)
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    studies = table.parent / "many.jsonl"
    with studies.open("w") as stream:
        for k in range(STUDIES):
            stream.write(json.dumps({**rows[k % 35], "id": str(k)}) + "\n")
    settings = SourceSettings(text_column="reference")
    build_index(table, folder / "index", StudyEmbedder("phantom", device="cpu"), settings)
    return studies, folder / "index"


def start(*arguments):
    command = [sys.executable, "-m", "vlscore", *map(str, arguments), "--workers", "0"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["oracle", "retrieval"])
def test_sigkill_costs_the_chunk_in_work_and_nothing_else(tables, tmp_path, name):
    studies, index = tables
    options = ("--index", index, "--device", "cpu") if name == "oracle" else ("--device", "cpu")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(name, studies, *options, "--out", killed)
    while not (killed / ".parts" / "part-00000000").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -9
    assert not (killed / "run.json").exists()
    again = start(name, studies, *options, "--out", killed)
    undisturbed = start(name, studies, *options, "--out", whole)
    assert again.wait() == 0
    assert "went on after row 128" in again.stderr.read()
    assert undisturbed.wait() == 0
    if name == "oracle":
        assert len(files_of(whole)) == 3
        assert files_of(killed) == files_of(whole)
    else:
        for file in RESULTS:
            assert (killed / file).read_bytes() == (whole / file).read_bytes()
