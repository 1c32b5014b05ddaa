"""`make paper`: verdicts, what is absent, and the whole of it on a stand-in of phantoms."""

import csv
import json
import math
import subprocess
import sys
from collections import Counter

import pytest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from scipy.stats import kendalltau

from tests.conftest import REPOSITORY
from tests.paper_stand_in import (
    write_authors_tables,
    write_limitr,
    write_mimic,
    write_rexval,
)
from vlscore.stats import Interval

SCRIPT = REPOSITORY / "benchmarks" / "paper.py"
NOTHING = Interval(math.nan, math.nan, math.nan)


@pytest.fixture
def verdicts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import paper_verdicts

    return paper_verdicts


@pytest.mark.parametrize(
    ("printed", "ours", "low", "high", "verdict"),
    [
        ("0.718", 0.7184, 0.6, 0.8, "EQUAL"),
        ("0.718", 0.7175, 0.7, 0.71, "EQUAL"),
        ("0.718", 0.7186, 0.6, 0.8, "agrees"),
        ("0.718", 0.65, 0.6, 0.7, "DIFFERS"),
        ("890", 890.4, math.nan, math.nan, "EQUAL"),
        ("890", 891, math.nan, math.nan, "DIFFERS"),
        ("0.06", 0.0649, math.nan, math.nan, "EQUAL"),
        ("-0.01", -0.0149, -0.1, 0.1, "EQUAL"),
        ("0.00", -0.0049, -0.1, 0.1, "EQUAL"),
        (None, 0.5, 0.4, 0.6, "no number of the paper"),
        ("0.5", math.nan, math.nan, math.nan, "left out"),
    ],
)
def test_a_verdict_follows_the_digits_that_are_printed(verdicts, printed, ours, low, high, verdict):
    line = verdicts.Line("Table 1", "x", paper=printed, ours=Interval(ours, low, high))
    assert line.verdict == verdict
    assert verdict in verdicts.MEANING


def test_the_numbers_are_those_that_the_design_lists(verdicts):
    """The differences of Table 2 follow from its means, up to the rounding of three numbers."""
    numbers = verdicts.paper_numbers()
    for name, (insignificant, pathology, difference) in numbers["table2"].items():
        found = float(insignificant) - float(pathology)
        assert found == pytest.approx(float(difference), abs=0.0151), name
    assert set(numbers["table1"]) == set(numbers["table2"]) == set(numbers["figure2"])
    assert numbers["table1"]["VLScore"] == numbers["table5"]["vlscore"] == "0.718"
    assert numbers["table4"]["tau"]["limitr"] == "0.718"


def _paper(folder, work, *options):
    """Run the script; return its output and the lines of its json."""
    out = work / "page.md"
    command = [sys.executable, SCRIPT, folder, "--work", work, "--out", out, *options]
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    return done.stdout, content["lines"], out.read_text(encoding="utf-8")


def test_what_is_absent_is_named_and_left_out(tmp_path):
    (tmp_path / "data").mkdir()
    said, lines, page = _paper(tmp_path / "data", tmp_path / "work")
    assert {line["verdict"] for line in lines} == {"left out"}
    for name in ("rexval", "mimic-cxr-jpg", "mimic-cxr-reports.zip", "perturbed"):
        assert f"{name}: absent" in said
        assert f"{name}: absent" in page
    tables = {line["table"] for line in lines}
    assert tables == {"Table 1", "Table 2", "Table 4", "Table 5", "Figure 2"}
    assert "0.718 on ReXVal was not computed" in said
    failed = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "nowhere"], capture_output=True, text=True, check=False
    )
    assert failed.returncode != 0
    assert "docs/reproduce.md" in failed.stderr


def _bleu1(candidate, reference):
    """BLEU-1 of one report, by its definition, on the lower-case tokens of sacrebleu."""
    g, r = (Tokenizer13a()(text.lower()).split() for text in (candidate, reference))
    if not g:
        return 0.0
    matched = sum((Counter(g) & Counter(r)).values())
    return matched / len(g) * min(1.0, math.exp(1 - len(r) / len(g)))


def _ours(lines, table, name, what=""):
    (found,) = (x for x in lines if (x["table"], x["name"], x["what"]) == (table, name, what))
    return found


@pytest.mark.slow
def test_tables_whose_images_are_elsewhere_are_compared_by_their_texts(tmp_path):
    data = tmp_path / "data"
    authors = write_authors_tables(data / "perturbed", 4)
    write_limitr(data / "weights" / "limitr")
    _, lines, _ = _paper(data, tmp_path / "work", "--resamples", 50)
    table = "Table 2, the authors' perturbations"
    mean = sum(_bleu1(output, gt) for gt, output in authors["pathology"])
    line = _ours(lines, table, "BLEU-1", "remove-pathology")
    assert line["ours"] == pytest.approx(mean / len(authors["pathology"]), abs=1e-9)
    left_out = _ours(lines, table, "VLScore", "remove-pathology")
    assert left_out["verdict"] == "left out"
    assert "no change has a value of every metric" in left_out["reason"]
    assert "no such file" in left_out["reason"] or "dicom-" in left_out["reason"]


@pytest.mark.slow
def test_the_whole_runs_on_a_stand_in(tmp_path):
    data = tmp_path / "data"
    known = write_rexval(data / "rexval", 8)
    write_mimic(data, 12)
    authors = write_authors_tables(data / "perturbed", 12)
    write_limitr(data / "weights" / "limitr")
    said, lines, page = _paper(data, tmp_path / "work", "--reports", 10, "--resamples", 50)
    assert "absent" not in said.replace("is absent", "")

    values = [_bleu1(candidate, reference) for reference, candidate, _ in known.values()]
    tau = kendalltau(values, [-errors for _, _, errors in known.values()]).statistic
    line = _ours(lines, "Table 1", "BLEU-1")
    assert line["ours"] == pytest.approx(tau, abs=1e-9)
    assert line["low"] <= line["ours"] <= line["high"]
    assert line["difference"] == pytest.approx(tau - 0.388)

    table = "Table 2, the authors' perturbations"
    removed = {"remove-insignificant": "Insignificant", "remove-pathology": "pathology"}
    for what, name in removed.items():
        mean = sum(_bleu1(output, gt) for gt, output in authors[name]) / len(authors[name])
        assert _ours(lines, table, "BLEU-1", what)["ours"] == pytest.approx(mean, abs=1e-9)

    # Areas of triangles of filled vectors: C is the largest, and the score of it is 1 - C / 890.
    (C,) = (x for x in lines if (x["name"], x["what"]) == ("LIMITR", "C"))
    rows = (tmp_path / "work" / "encoder-limitr" / "values.csv").read_text().splitlines()
    scores = [float(row["vlscore"]) for row in csv.DictReader(rows)]
    assert C["ours"] == pytest.approx((1 - min(scores)) * 890, rel=1e-6)
    same = {
        _ours(lines, "Table 1", "VLScore")["ours"],
        _ours(lines, "Table 5", "vlscore")["ours"],
        _ours(lines, "Table 4", "LIMITR", "tau")["ours"],
    }
    assert len(same) == 1
    tables = {line["table"].partition(",")[0] for line in lines}
    assert tables == {"Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Figure 2"}
    assert "GLoRIA" in page
    assert "0.718" in said
