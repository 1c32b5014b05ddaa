"""Where memory is short, every kind of run says so and goes on with smaller batches."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder, Narrow
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer
from vlscore.retrieval import OracleSettings, SourceSettings, index_build, oracle

ROWS = 9


@pytest.fixture
def table(tmp_path):
    rows = []
    for k in range(ROWS):
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        texts = {"reference": f"finding {k} on the left", "candidate": f"finding {k + 3} is new"}
        rows.append({"id": f"s{k}", "image": f"{k}.png", **texts})
    path = tmp_path / "studies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(embedder, table, folder):
    images = [table.parent / f"{k}.png" for k in range(ROWS)]
    texts = [f"finding {k}" for k in range(ROWS)]
    return Scorer(embedder).score(images, texts, texts[::-1]).scores.tobytes()


def evaluated(embedder, table, folder):
    evaluate(open_studies(table), folder, Scorer(embedder), format="csv", workers=1)
    return (folder / "scores.csv").read_bytes()


def index_of_reports(embedder, table, folder):
    settings = SourceSettings(text_column="reference")
    return index_build(table, folder, embedder, settings).index.vectors.tobytes()


def index_of_images(embedder, table, folder):
    return index_build(table, folder, embedder, SourceSettings("image")).index.vectors.tobytes()


def searched(embedder, table, folder):
    corpus = StudyEmbedder(HashEncoder(), device="cpu", batch_size=8)
    settings = SourceSettings(text_column="candidate")
    index = index_build(table, folder / "index", corpus, settings).index
    found = oracle(table, folder / "oracle", index, embedder, OracleSettings(k=2))
    return found.answers_file.read_bytes()


@pytest.mark.parametrize("run", [scored, evaluated, index_of_reports, index_of_images, searched])
def test_a_run_goes_on_with_smaller_batches(run, table, tmp_path):
    roomy = StudyEmbedder(HashEncoder(), device="cpu", batch_size=8)
    narrow = StudyEmbedder(Narrow(3, MemoryError()), device="cpu", batch_size=8)
    expected = run(roomy, table, tmp_path / "roomy")
    with pytest.warns(RuntimeWarning, match="too little memory .* from here on .* at once"):
        found = run(narrow, table, tmp_path / "narrow")
    assert found == expected
    assert narrow.engine.batch_size < 8 == roomy.engine.batch_size
