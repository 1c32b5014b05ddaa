"""`vlscore ratings` from the command line, and back through other commands."""

import csv
import json

import pytest

from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import write_csv
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation.ratings.questions import COUNTS
from vlscore.retrieval import index_build


@pytest.fixture
def oracles(command, tmp_path):
    reports = [f"Effusion {k} on side {k % 2}. Edema {k % 3}." for k in range(6)]
    rows = [{"id": f"s{k}", "reference": text, "report": text} for k, text in enumerate(reports)]
    table = write_csv(tmp_path / "studies.csv", rows)
    embedder = StudyEmbedder(HashEncoder(), device="cpu", cache=False)
    index_build(table, tmp_path / "index", embedder)
    folders = []
    for metric in ("bleu-1", "chrf"):
        folders.append(tmp_path / metric)
        options = ["--metric", metric, "--k", 1, "--candidates", 0, "--exclude-exact"]
        done = command("oracle", table, "-i", tmp_path / "index", *options, "-o", folders[-1])
        assert done.exit_code == 0, done.output
    return folders


def test_sheets_are_made_filled_in_and_read(command, oracles, tmp_path):
    out = tmp_path / "sheets"
    asked = ("ratings", "make", *oracles, "--format", "csv", "--sample", 4, "-o", out)
    first = command(*asked, "--raters", "ann, bob")
    assert first.exit_code == 0, first.output
    assert "reports of 4 studies to be judged" in first.stdout
    again = command(*asked, "--raters", "ann,bob")
    assert "nothing was made" in again.stderr
    assert "no rating" in command("failure-modes", out, "-o", tmp_path / "f").stderr
    for path in sorted(out.glob("sheet-*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        write_csv(path, [{**row, next(iter(COUNTS)): "2"} for row in rows])
    done = command("failure-modes", out, "-o", tmp_path / "f", "--resamples", 20, "--json")
    assert done.exit_code == 0, done.output
    means = json.loads(done.stdout)["frames"]["means"]
    assert {row["candidate"] for row in means} == {"bleu-1", "chrf"}
    shown = {(row["which"], row["category"]): row["mean"] for row in means}
    assert shown["significant", "1 false finding"] == 2
    assert shown["insignificant", "1 false finding"] == 0
    aligned = command("align", out, "-m", "bleu-1", "-o", tmp_path / "a", "--resamples", 20)
    assert aligned.exit_code == 0, aligned.output


def test_systems_are_compared_and_ranked(command, tmp_path):
    for name, extra in (("ours", ""), ("theirs", " Edema."), ("third", " Old fracture.")):
        rows = [
            {"id": f"s{k}", "reference": f"Effusion {k}.", "candidate": f"Effusion {k}.{extra}"}
            for k in range(4)
        ]
        write_csv(tmp_path / f"{name}.csv", rows)
    tables = [tmp_path / f"{name}.csv" for name in ("ours", "theirs", "third")]
    options = ["--ask", "preferences", "--format", "csv", "--raters", "ann,bob,carl"]
    out = tmp_path / "s"
    made = command("ratings", "make", *tables, *options, "-o", out)
    assert made.exit_code == 0, made.output
    assert "12 comparisons of 4 studies to be made" in made.stdout
    for path in sorted(out.glob("sheet-*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        # The shorter report is better.
        for row in rows:
            a, b = len(row["report A"]), len(row["report B"])
            row["preferred"] = "A" if a < b else "B"
        rows[0]["preferred"] = "both" if "carl" in path.name else rows[0]["preferred"]
        write_csv(path, rows)
    groups = ["--group", "clinicians=ann,bob", "--group", "lay=carl"]
    read = command("ratings", "read", out, *groups, "-o", tmp_path / "r", "--resamples", 20)
    assert read.exit_code == 1
    assert "sheet-carl.csv" in read.stderr
    assert "Systems by preferred: lay" in read.stdout
    rows = json.loads((tmp_path / "r" / "result.json").read_text())["frames"]["systems"]
    assert [r["system"] for r in rows if r["group"] == "all"] == ["ours", "theirs", "third"]
    options = ["--rename", "rating=preference rank", "--ratings-are", "ranks", "-m", "bleu-1"]
    ranks = tmp_path / "r" / "ranks.csv"
    aligned = command("align", ranks, *options, "-o", tmp_path / "a", "--resamples", 20)
    assert aligned.exit_code == 0, aligned.output
    for group, said in (("lay", "write NAME=RATERS"), ("lay=zoe", "zoe, who rated nothing")):
        wrong = command("ratings", "read", out, "--group", group, "-o", tmp_path / "w")
        assert said in wrong.stderr
