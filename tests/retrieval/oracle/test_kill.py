"""An oracle, and a retrieval evaluation, that are killed go on, and end with the same bytes."""

import json

import pytest

from tests.killed_process import kill_at_first_part
from tests.retrieval.oracle.test_find import files_of
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import retrieval
from vlscore.retrieval import SourceSettings, index_build, oracle

# Three chunks, so that the kill comes before the end.
STUDIES = 300


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
    index_build(table, folder / "index", StudyEmbedder(device="cpu"), settings)
    return studies, folder / "index"


def kill_after_first_chunk(out, *arguments):
    """Start a command and kill it when it has kept something."""
    options = ("--workers", "0", "--device", "cpu")
    kill_at_first_part([*map(str, arguments), "--out", str(out), *options], out)
    assert not (out / "run.json").exists()


def test_sigkill_costs_an_oracle_the_chunk_in_work_and_nothing_else(tables, tmp_path):
    """Python goes on with what the command began."""
    studies, index = tables
    kill_after_first_chunk(tmp_path / "killed", "oracle", studies, "--index", index)
    embedder = StudyEmbedder(device="cpu")
    went_on = oracle(studies, tmp_path / "killed", index, embedder)
    whole = oracle(studies, tmp_path / "whole", index, embedder)
    assert (went_on.resumed_from in (128, 256), whole.resumed_from) == (True, 0)
    assert len(files_of(whole.folder)) == 3
    assert files_of(went_on.folder) == files_of(whole.folder)


def test_sigkill_costs_a_retrieval_the_chunk_in_work_and_nothing_else(tables, tmp_path):
    studies, _ = tables
    kill_after_first_chunk(tmp_path / "killed", "retrieval", studies)
    embedder = StudyEmbedder(device="cpu")
    went_on = retrieval(studies, tmp_path / "killed", embedder)
    whole = retrieval(studies, tmp_path / "whole", embedder)
    assert (went_on.resumed_from in (128, 256), whole.resumed_from) == (True, 0)
    for mine, other in zip(went_on.files[:-1], whole.files[:-1], strict=True):
        assert mine.read_bytes() == other.read_bytes()
