"""`vlscore index`: what is printed, written and refused."""

import os

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import write_jsonl
from tests.doubles import HashEncoder
from vlscore.retrieval import load_index

pytestmark = pytest.mark.usefixtures("hash_encoder")


def test_build_and_info(command, corpus, tmp_path):
    out = tmp_path / "index"
    done = command("index", "build", corpus, "--out", out)
    assert done.exit_code == 1
    assert "5 reports, 4 distinct\nindex|enc:hash@" in done.stdout
    assert f"2 rows of {corpus} could not be used" in done.stderr
    assert "row 4 (a4): no text in report" in done.stderr
    assert "row 6 (a6): a report cannot be tokenized" in done.stderr
    index = load_index(out)
    assert index.all_ids() == [["a1", "a3"], ["a2"], ["a5"], ["a7"]]
    again = command("index", "build", corpus, "--out", out)
    assert again.exit_code == 1  # the two failed rows still fail
    assert "holds this corpus already" in again.stderr
    refused = command("index", "build", corpus, "--out", out, "--section", "auto")
    assert refused.exit_code == 2
    shown = command("index", "info", out).stdout
    for line in (
        f"checksum    {HashEncoder.checksum}",
        "holds       5 reports, 4 distinct",
        "failed rows 2",
        "dimension   8",
        "approximate none (exact search only)",
    ):
        assert line in shown
    missing = command("index", "info", tmp_path / "x")
    assert missing.exit_code == 2


def test_an_image_file_whose_name_is_no_utf8_costs_its_own_row(command, tmp_path):
    rows = []
    for study, name in (("s1", b"a\xff.png"), ("s2", b"b.png")):
        (tmp_path / study).mkdir()
        picture = np.arange(64, dtype=np.uint8).reshape(8, 8)
        Image.fromarray(picture).save(tmp_path / "one.png", format="png")
        (tmp_path / "one.png").rename(tmp_path / study / os.fsdecode(name))
        rows.append({"id": study, "image": study})
    table = write_jsonl(tmp_path / "studies.jsonl", rows)
    done = command("index", "build", table, "--out", tmp_path / "index", "--images")
    index = load_index(tmp_path / "index")
    assert [failure.id for failure in index.failures] == ["s1"]
    assert index.all_ids() == [["s2"]]
    assert "rename the file" in done.stderr
