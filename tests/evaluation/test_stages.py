"""Where the time goes is measured of what an evaluation does, and of nothing else."""

import time

import pytest

from tests.doubles import HashEncoder
from tests.evaluation.samples import make_table, write_table
from vlscore.core import resource_path
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting
from vlscore.evaluation import Stage, measure_stages
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"


class Slow(HashEncoder):
    """Takes so long for images, and half of that for reports."""

    def embed_images(self, pixels):
        time.sleep(0.4)
        return super().embed_images(pixels)

    def embed_reports(self, tokens):
        time.sleep(0.2)
        return super().embed_reports(tokens)


@pytest.fixture
def table(tmp_path):
    """Six studies, of which the first lacks its image and the second its reference."""
    path, records = make_table(tmp_path, 6)
    (tmp_path / "0.png").unlink()
    records[1]["reference"] = ""
    for record in records[2:]:
        record["candidate"] = "clear lungs"
    return open_studies(write_table(path, records))


def seconds(stages):
    return {stage.name: stage.seconds for stage in stages.stages}


def test_each_stage_takes_what_it_takes(table):
    found = measure_stages(table, Scorer(Slow()), 6, [Stage("loading", 1.5)])
    spent = seconds(found)
    assert list(spent) == [
        "reading the table",
        "reading files",
        "decoding PNG",
        "encoding images",
        "encoding reports",
        "scoring",
        "writing",
    ]
    assert spent["encoding images"] >= 0.4
    assert spent["encoding reports"] >= 0.2
    # Neither tower runs in any other stage.
    assert spent["scoring"] < 0.2
    assert found.seconds == sum(spent.values())
    assert [stage.name for stage in found.startup] == ["loading", "results and summary"]
    assert found.startup[0] == Stage("loading", 1.5)


def test_what_cannot_be_used_is_left_out_and_said(table):
    found = measure_stages(table, Scorer(HashEncoder()), 6)
    assert (found.studies, found.failed) == (4, 2)
    assert "2 of the first rows could not be used and were left out" in found.advice
    items = {stage.name: stage.items for stage in found.stages}
    assert items["encoding images"] == "4 images"
    used = [row for row in table if row.row > 2]
    distinct = len({text for row in used for text in (row.candidate, row.reference)})
    assert items["encoding reports"] == f"{distinct} distinct of 8"
    repeated = f"{1 - distinct / 8:.0%} of the reports repeat"
    assert any(sentence.startswith(repeated) for sentence in found.advice)
    text = found.table().text(120)
    assert "4 studies" in text
    assert "100%" in text


def test_nothing_is_taken_from_the_cache_or_kept(table, cache_folder):
    measure_stages(table, Scorer(HashEncoder(), cache=False), 3)
    measure_stages(table, Scorer(HashEncoder()), 3)
    assert not list(cache_folder.glob("*.sqlite"))


def test_advice_is_of_what_was_measured(table, monkeypatch):
    monkeypatch.setenv("VLSCORE_CACHE", "off")
    monkeypatch.setattr("vlscore.encoders.devices._processor_flags", lambda: frozenset({"sse2"}))
    found = measure_stages(table, Scorer(Slow()), 6, [Stage("loading", 30.0)])
    said = "\\n".join(found.advice)
    assert "bf16 is no help: this processor has no units" in said
    assert "The cache is off" in said
    assert "What is done once a run takes 30." in said
    assert "safetensors" not in said
    assert "Decoding" not in said


def test_there_must_be_something_to_measure(table):
    with pytest.raises(InvalidSetting, match="no metric looks at embeddings"):
        measure_stages(table, Scorer(metrics="bleu-1"))
    with pytest.raises(InvalidSetting, match="none of the first 1 "):
        measure_stages(table, Scorer(HashEncoder()), 1)


def test_dicom_files_and_texts_alone():
    found = measure_stages(open_studies(DEMO), Scorer("phantom", device="cpu"), 3)
    assert "decoding DICOM" in seconds(found)
    texts = measure_stages(
        open_studies(DEMO, needs={"reference", "candidate"}),
        Scorer("phantom", device="cpu", metrics=["cosine"]),
        3,
    )
    assert "encoding reports" in seconds(texts)
