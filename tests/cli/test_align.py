"""`vlscore align` from the command line."""

import csv
import json

import pytest

from tests.evaluation.alignment.samples import make_rexval, write_csv
from vlscore.metrics import read_composite


@pytest.fixture
def ratings(tmp_path):
    texts = [
        "Small left effusion. Heart size is normal.",
        "Left effusion. Heart size is normal.",
        "Heart size is normal.",
        "Large right pneumothorax.",
    ]
    rows = [
        {
            "study_id": study,
            "candidate_id": f"g{place}",
            "rater": rater,
            "rating": place + (study + place) % 2 * (rater == "b"),
            "reference": texts[0],
            "candidate": text,
        }
        for study in range(5)
        for place, text in enumerate(texts)
        for rater in "ab"
    ]
    return write_csv(tmp_path / "ratings.csv", rows)


def frames(folder):
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))["frames"]


def test_tables_are_printed_and_written(command, ratings, tmp_path):
    out = tmp_path / "out"
    done = command("align", ratings, "-m", "bleu-1,rouge-l", "-o", out, "--resamples", 50)
    assert done.exit_code == 0, done.output
    for shown in (
        "Agreement with raters: rating",
        "Differences between metrics",
        "Agreement with single raters",
        "The raters' own agreement",
        "Ranking two candidates",
        f"wrote {out}",
    ):
        assert shown in done.stdout
    assert frames(out)["agreements"][1]["tau_b"] > 0.8
    options = ("-m", "bleu-1,rouge-l", "-o", out, "--resamples", 50, "--json")
    again = command("align", ratings, *options)
    assert "nothing was computed" in again.stderr
    assert json.loads(again.stdout)["frames"] == frames(out)


@pytest.mark.usefixtures("hash_encoder")
def test_images_by_study_and_missing_ones_set_the_status(command, studies, tmp_path):
    folder, _ = make_rexval(tmp_path / "rexval")
    reports = folder / "50_samples_gt_and_candidates.csv"
    text = reports.read_text(encoding="utf-8")
    for number, name in ((500, "s1"), (501, "s2"), (502, "s9")):
        text = text.replace(str(number), name)
    reports.write_text(text, encoding="utf-8")
    options = ("--studies", studies, "-m", "vlscore,cosine", "--resamples", 50)
    done = command("align", folder, "-o", tmp_path / "out", *options)
    assert done.exit_code == 1
    assert "absent.png" in done.stderr
    assert "no image is known of study 's9'" in (tmp_path / "out" / "failures.csv").read_text()
    kept = command("align", folder, "-o", tmp_path / "out", *options, "--keep-going")
    assert kept.exit_code == 0


def test_columns_of_other_names_are_renamed(command, ratings, tmp_path):
    text = ratings.read_text(encoding="utf-8").replace("study_id", "ID").replace("rater,", "who,")
    ratings.write_text(text, encoding="utf-8")
    options = ("-m", "bleu-1", "-o", tmp_path / "out", "--resamples", 20)
    assert "no column study_id" in command("align", ratings, *options).stderr
    done = command("align", ratings, *options, "--rename", "study_id=ID,rater=who")
    assert done.exit_code == 0, done.output
    assert "Agreement with single raters" in done.stdout


def test_bad_rows_are_named(command, ratings, tmp_path):
    text = ratings.read_text(encoding="utf-8").splitlines()
    text[3] = text[3].replace(",a,1,", ",a,many,")
    ratings.write_text("\n".join(text) + "\n", encoding="utf-8")
    done = command("align", ratings, "-m", "bleu-1", "-o", tmp_path / "out", "--resamples", 50)
    assert done.exit_code == 1
    assert "row 3 (0)" in done.stderr
    assert "'many'" in done.stderr


def test_any_number_of_a_metric_is_compared(command, ratings, tmp_path):
    text = ratings.read_text(encoding="utf-8").replace("Large right", "Left effusion. Large right")
    ratings.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    names = "findings-f1.recall,bleu-1,findings-f1.precision,findings-f1"
    done = command("align", ratings, "-m", names, "-o", out, "--resamples", 50)
    assert done.exit_code == 0, done.output
    assert [metric["name"] for metric in frames(out)["metrics"]] == names.split(",")
    with (out / "values.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    of = {
        name: {float(row[name]) for row in rows if row["candidate_id"] == "g3"}
        for name in rows[0]
        if name.startswith("findings")
    }
    # Of two observations that the candidate states, the reference has one.
    assert of["findings-f1.precision"] == {0.5}
    assert of["findings-f1.recall"] == {1.0}
    assert list(of["findings-f1"]) == pytest.approx([2 / 3])
    wrong = command("align", ratings, "-m", "bleu-1.recall", "-o", out)
    assert "no metric has the value bleu-1.recall; there are bleu-1" in wrong.stderr


def test_a_composite_is_fitted_and_then_named_like_any_metric(command, ratings, tmp_path):
    out = tmp_path / "fitted"
    options = ("-m", "bleu-1,rouge-l", "--resamples", 20)
    done = command("align", ratings, "-o", out, *options, "--fit", "rating")
    assert done.exit_code == 0, done.output
    # Before the other tables, of which a screen shows as many as fit.
    assert done.stdout.startswith("A composite fitted to rating\n")
    file = out / "composite.json"
    studies = write_csv(
        tmp_path / "studies.csv", [{"id": 1, "reference": "No edema.", "candidate": "Edema."}]
    )
    done = command("evaluate", studies, "-m", f"bleu-4,composite:{file}", "-o", tmp_path / "scored")
    assert done.exit_code == 0, done.output
    assert f"file:given@{read_composite(file).digest}" in done.stdout


def test_reports_come_from_further_tables(command, tmp_path):
    studies = {"s1": "Left effusion.", "s2": "Clear lungs.", "s3": "Edema."}
    for name, change in (("ours", str), ("theirs", str.upper)):
        rows = [
            {"id": study, "reference": text, "candidate": change(text[::-1]) if k else text}
            for k, (study, text) in enumerate(studies.items())
        ]
        write_csv(tmp_path / f"{name}.csv", rows)
    rated = [
        {"study_id": study, "candidate_id": name, "rating": len(study + name)}
        for study in studies
        for name in ("ours", "theirs")
    ]
    ratings = write_csv(tmp_path / "only.csv", rated)
    options = ["-m", "rouge-l", "-o", tmp_path / "out", "--resamples", 20]
    assert "--reports NAME=TABLE" in command("align", ratings, *options).stderr
    given = [f"--reports={name}={tmp_path / name}.csv" for name in ("ours", "theirs")]
    done = command("align", ratings, *given, *options)
    assert done.exit_code == 0, done.output
    assert frames(tmp_path / "out")["metrics"][0]["n"] == 6
    wrong = command("align", ratings, "--reports", "ours.json", *options)
    assert "write NAME=TABLE" in wrong.stderr


def test_a_figure_is_drawn_from_finished_numbers(command, ratings, tmp_path):
    pytest.importorskip("matplotlib")
    options = ["-m", "bleu-1", "--resamples", 50]
    assert command("align", ratings, *options, "-o", tmp_path / "o").exit_code == 0
    later = command("draw", tmp_path / "o", "--figure", "svg")
    assert later.exit_code == 0, later.output
    at_once = command("align", ratings, *options, "-o", tmp_path / "f", "--figure", "svg")
    assert at_once.exit_code == 0
    drawn = [(tmp_path / each / "agreement.svg").read_bytes() for each in ("o", "f")]
    assert drawn[0] == drawn[1]
