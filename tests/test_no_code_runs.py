"""Files that the package reads run nothing: an attack for every way in besides the encoders'.

Checkpoints, tokenizers and configurations have their own in `tests/encoders/test_attacks.py`.
"""

import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.doubles import HashEncoder
from tests.metrics.networks.constructed_ratescore import write_ratescore
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import Failure, IncompatibleCheckpoint, VLScoreError
from vlscore.evaluation import compare, evaluate
from vlscore.findings import load_lexicon
from vlscore.metrics import Scorer, find_metric
from vlscore.metrics.networks.model_files import load_model, load_tokenizer
from vlscore.retrieval import index_build, load_index


class _Attack:
    """Unpickling it makes a file."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self._marker),)


@pytest.fixture
def marker(tmp_path):
    """A path that appears only if an attack has succeeded."""
    path = tmp_path / "ran"
    yield path
    assert not path.exists()


def _pickled(marker: Path) -> bytes:
    return pickle.dumps(_Attack(marker))


def test_the_attack_would_succeed(tmp_path):
    place = tmp_path / "made"
    pickle.loads(_pickled(place))
    assert place.is_dir()


def test_an_index_with_a_pickled_array(tmp_path, marker):
    table = tmp_path / "reports.jsonl"
    table.write_text('{"id": "a", "report": "Clear lungs."}\n')
    folder = tmp_path / "index"
    index_build(table, folder, StudyEmbedder(HashEncoder(), device="cpu"))
    vectors = folder / "vectors.npy"
    stream = io.BytesIO()
    np.save(stream, np.array([_Attack(marker)], dtype=object), allow_pickle=True)
    vectors.write_bytes(stream.getvalue())
    with pytest.raises(VLScoreError):
        load_index(folder)
    with pytest.raises(VLScoreError):
        load_index(folder, check=False).vectors.sum()


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".json", ".tsv"])
def test_a_table_that_is_a_pickle(tmp_path, marker, suffix):
    table = tmp_path / f"studies{suffix}"
    table.write_bytes(_pickled(marker))
    with pytest.raises(VLScoreError):
        list(open_studies(table, needs={"candidate"}))


def test_cells_that_are_expressions_or_pickles(tmp_path, marker):
    """A column of lists is read as a literal; the metadata of a table is not looked at."""
    code = f"[__import__('os').mkdir({str(marker)!r})]"
    schema = pa.schema(
        [pa.field("id", pa.string()), pa.field("image", pa.string())],
        metadata={"pandas": _pickled(marker), "ARROW:extension:metadata": _pickled(marker)},
    )
    table = tmp_path / "studies.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "image": [code, "x.png"]}, schema=schema), table)
    rows = list(open_studies(table, needs={"image"}))
    assert isinstance(rows[0], Failure)
    assert not isinstance(rows[1], Failure)


def test_a_folder_of_results_that_names_a_module(tmp_path, marker, monkeypatch):
    (tmp_path / "evil.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    table = tmp_path / "studies.jsonl"
    table.write_text('{"id": "a", "reference": "No effusion.", "candidate": "No effusion."}\n')
    out = tmp_path / "out"
    evaluate(table, out, Scorer(metrics="bleu-1"))
    record = json.loads((out / "run.json").read_text())
    record["key"]["metrics"]["evil:METRIC"] = "evil|v:1"
    (out / "run.json").write_text(json.dumps(record))
    for call in (
        lambda: evaluate(table, out, Scorer(metrics="bleu-1,rouge-l")),
        lambda: compare([out], tmp_path / "compared"),
    ):
        with pytest.raises(VLScoreError):
            call()


def test_a_lexicon_with_code(tmp_path, marker):
    (tmp_path / "observations.toml").write_text(f"__import__('os').mkdir({str(marker)!r})\n")
    with pytest.raises(VLScoreError):
        load_lexicon(tmp_path)


def test_parameters_of_a_metric_are_no_code(marker):
    with pytest.raises(VLScoreError):
        find_metric(f"rouge-l(beta=__import__('os').mkdir({str(marker)!r}))")


@pytest.mark.parametrize("format", ["pickle", "zip"])
def test_a_transformers_folder_with_pickled_weights(tmp_path, marker, format):
    _, folder = write_ratescore(tmp_path)
    (folder / "model.safetensors").unlink()
    weights = folder / "pytorch_model.bin"
    if format == "pickle":
        weights.write_bytes(_pickled(marker))
    else:
        torch.save(_Attack(marker), weights)
    with pytest.raises(IncompatibleCheckpoint):
        load_model("AutoModel", folder)


def test_a_transformers_folder_with_code(tmp_path, marker):
    _, folder = write_ratescore(tmp_path)
    (folder / "attack.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    for file in ("config.json", "tokenizer_config.json"):
        content = json.loads((folder / file).read_text())
        classes = {"AutoConfig": "attack.Config", "AutoModel": "attack.Model"}
        content["auto_map"] = classes | {"AutoTokenizer": ["attack.Tokenizer", None]}
        if file == "config.json":
            content["model_type"] = "of-its-own"
        else:
            content["tokenizer_class"] = "Tokenizer"
        (folder / file).write_text(json.dumps(content))
    with pytest.raises(IncompatibleCheckpoint):
        load_model("AutoModel", folder)
    with pytest.raises(IncompatibleCheckpoint):
        load_tokenizer(folder)
