"""An index may come from elsewhere: whatever its files hold, it is read or refused by name."""

import json
import subprocess
import sys

import pytest

from tests.doubles import HashEncoder
from tests.retrieval.index import mutants
from tests.retrieval.index.test_index import write_table
from vlscore.embedding import StudyEmbedder
from vlscore.retrieval import index_build

KINDS = (None, "HNSW4", "IVF4,Flat", "IVF4,PQ2x4")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Kind of index -> how often each outcome occurred; one process reads the copies of all."""
    folder = tmp_path_factory.mktemp("mutants")
    rows = [{"id": f"s{k}", "text": f"finding {k} {k * 7 % 17} of the lung"} for k in range(40)]
    table = write_table(folder / "corpus.jsonl", [*rows, {"id": "bad", "text": ""}])
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    paths = [
        str(index_build(table, folder / str(k) / "index", embedder, approximate=kind).index.path)
        for k, kind in enumerate(KINDS)
    ]
    command = [sys.executable, mutants.__file__, "250", *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    return dict(zip(KINDS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_index_with_right_digests_is_read_or_refused(outcomes, kind):
    found = outcomes[kind]
    assert sum(found.values()) == 250
    assert found["InvalidIndex"] > 100
    assert found.keys() <= {"InvalidIndex", "InvalidSetting", "read"}
