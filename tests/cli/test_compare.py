"""`vlscore compare` from the command line."""

import json

import pytest

from tests.cli.conftest import write_jsonl

ROWS = [
    {"id": f"s{k}", "reference": f"There is a nodule of {k} mm.", "candidate": f"A nodule of {k}."}
    for k in range(6)
]
QUICK = ("--resamples", 50, "--permutations", 99)


@pytest.fixture
def tables(tmp_path):
    clear = [{**row, "candidate": "The lungs are clear"} for row in ROWS]
    return write_jsonl(tmp_path / "ours.jsonl", ROWS), write_jsonl(tmp_path / "theirs.jsonl", clear)


def test_text_metrics_of_two_systems(command, tables, tmp_path):
    out = tmp_path / "out"
    done = command("compare", *tables, "--text-only", "--baselines", "-o", out, *QUICK)
    assert done.exit_code == 0, done.output
    for shown in ("ROUGE-L ↑", "BLEU-4 ↑", "*: best.", f"{out / 'tables.md'}"):
        assert shown in done.stdout
    assert len(done.stdout.splitlines()) <= 44
    rest = (out / "tables.md").read_text(encoding="utf-8")
    for written in ("Differences in rouge-l", "ours - theirs", "bleu-4 corpus", "rouge-score:"):
        assert written in rest
    assert "note: baseline:nearest-image is left out" in done.stderr
    assert "demonstration" not in done.stderr
    again = command("compare", *tables, "--text-only", "--baselines", "-o", out, *QUICK)
    assert again.exit_code == 0
    assert "nothing was computed" in again.stderr
    assert again.stdout == done.stdout


def test_by_default_embeddings_count_where_there_are_images(
    command, tables, tmp_path, hash_encoder, studies
):
    rows = [{**row, "image": f"{'xyz'[k % 3]}.png"} for k, row in enumerate(ROWS)]
    shown = write_jsonl(tmp_path / "shown.jsonl", rows)
    done = command("compare", shown, tables[1], "--baselines", "-o", tmp_path / "out", *QUICK)
    assert done.exit_code == 0, done.output
    assert "VLScore ↑" in done.stdout
    assert "baseline:nearest-image" in done.stdout


def test_a_missing_image_is_said_and_ends_with_1(command, tables, tmp_path, hash_encoder):
    shown = write_jsonl(tmp_path / "shown.jsonl", [{**row, "image": "no.png"} for row in ROWS])
    arguments = ("compare", shown, tables[1], "-m", "vlscore", "-o", tmp_path / "out", *QUICK)
    done = command(*arguments)
    assert done.exit_code == 1
    assert "12 rows or values are missing" in done.stderr
    # Equal reasons are one line.
    assert "and 9 more: " in done.stderr
    assert "no.png" in done.stderr
    assert command(*arguments, "--keep-going").exit_code == 0


def test_tables_and_baselines_get_the_metrics_of_a_finished_run(command, tables, tmp_path):
    command("evaluate", tables[0], "-m", "bleu-2,rouge-l(beta=1.2)", "-o", tmp_path / "run")
    for number, systems in enumerate([(tmp_path / "run",), (tables[1], tmp_path / "run")]):
        out = tmp_path / f"out{number}"
        done = command("compare", *systems, "--baselines", "-o", out, *QUICK)
        assert done.exit_code == 0, done.output
        assert "BLEU-2 ↑" in done.stdout
        content = json.loads((out / "result.json").read_text(encoding="utf-8"))
        assert list(content["signatures"]) == ["bleu-2", "rouge-l(beta=1.2)"]


def test_text_only_leaves_out_the_metrics_of_embeddings_of_a_finished_run(
    command, tables, tmp_path, hash_encoder, studies
):
    shown = write_jsonl(tmp_path / "shown.jsonl", [{**row, "image": "x.png"} for row in ROWS])
    out = tmp_path / "out"
    arguments = (tables[1], "--text-only", "-o", out, *QUICK)
    command("evaluate", shown, "-m", "cosine,rouge-l", "-o", tmp_path / "both")
    done = command("compare", tmp_path / "both", *arguments)
    assert done.exit_code == 0, done.output
    content = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert list(content["signatures"]) == ["rouge-l"]
    command("evaluate", shown, "-m", "cosine", "-o", tmp_path / "vectors")
    refused = command("compare", tmp_path / "vectors", *arguments)
    assert "no metric of texts alone" in refused.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--text-only", "-m", "vlscore"), "but vlscore uses them"),
        (("--encoder", "gloria"), "no table has a column of images"),
        (("-m", "vlscore"), "no table has a column image"),
    ],
)
def test_what_cannot_be_honoured_is_refused(command, tables, tmp_path, hash_encoder, more, message):
    done = command("compare", *tables, "-o", tmp_path / "out", *more)
    assert done.exit_code != 0
    assert message in done.stderr
    assert not (tmp_path / "out" / "run.json").exists()


def test_tables_with_unlike_columns(command, tables, tmp_path):
    """Each system's columns have names of their own; the values are those of equal tables."""
    ours, theirs = tables
    records = [json.loads(line) for line in theirs.read_text(encoding="utf-8").splitlines()]
    names = {"id": "StudyID", "reference": "gt", "candidate": "generated"}
    other = write_jsonl(
        tmp_path / "b.jsonl", [{names[k]: v for k, v in r.items()} for r in records]
    )
    own = ",".join(f"theirs.{role}={column}" for role, column in names.items())
    metrics = ("-m", "rouge-l", *QUICK, "--json")
    plain = command("compare", ours, theirs, "-o", tmp_path / "plain", *metrics)
    renamed = ("compare", ours, f"theirs={other}", "--rename", own)
    done = command(*renamed, "-o", tmp_path / "own", *metrics)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["frames"] == json.loads(plain.stdout)["frames"]
    wrong = command(
        "compare", ours, theirs, "--rename", "third.id=StudyID", "-o", tmp_path / "x", *metrics
    )
    assert "the system third, but the systems are ours, theirs" in wrong.stderr


@pytest.mark.parametrize(
    ("format", "has", "lacks"),
    [("md", "[@lin2004rouge]", "@inproceedings"), ("tex", r"\cite{lin2004rouge}", "@inproceedings"),
     ("bib", "@inproceedings{lin2004rouge", "We compared")],
)  # fmt: skip
def test_the_paragraph_and_its_entries_are_printed_apart(
    command, tables, tmp_path, format, has, lacks
):
    command("compare", *tables, "-m", "rouge-l", "-o", tmp_path / "o", *QUICK)
    shown = command("methods", tmp_path / "o", "--format", format).stdout
    assert has in shown
    assert lacks not in shown
