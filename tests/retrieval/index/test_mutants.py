"""An index may come from elsewhere: whatever its files hold, it is read or refused by name."""

import json
import subprocess
import sys

import pytest

from tests.doubles import HashEncoder
from tests.retrieval.index import mutants
from tests.retrieval.index.test_index import write_table
from vlscore.embedding import StudyEmbedder
from vlscore.retrieval import build_index


@pytest.mark.parametrize("approximate", [None, "HNSW4", "IVF4,Flat", "IVF4,PQ2x4"])
def test_a_mutated_index_with_right_digests_is_read_or_refused(tmp_path, approximate):
    rows = [{"id": f"s{k}", "text": f"finding {k} {k * 7 % 17} of the lung"} for k in range(40)]
    table = write_table(tmp_path / "corpus.jsonl", [*rows, {"id": "bad", "text": ""}])
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    index = build_index(table, tmp_path / "index", embedder, approximate=approximate)
    command = [sys.executable, mutants.__file__, str(index.index.path), "250"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    assert sum(found.values()) == 250
    assert found["InvalidIndex"] > 100
    assert found.keys() <= {"InvalidIndex", "InvalidSetting", "read"}
