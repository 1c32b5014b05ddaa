"""A whole alignment into a folder: values by metrics and from tables, resumably."""

import csv
import json
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import make_radpref, make_rexval, rated, write_csv
from vlscore.cli.output import print_failures
from vlscore.core import frame
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import AlignmentRun, RatingColumns, align, read_ratings
from vlscore.evaluation.alignment import run as run_module
from vlscore.evaluation.alignment.tables import write_csv as write_table
from vlscore.metrics import Scorer
from vlscore.stats import Difference


@dataclass(frozen=True)
class Record:
    name: str
    difference: Difference


@pytest.fixture
def pairs(tmp_path):
    folder, _ = make_rexval(tmp_path / "rexval")
    return read_ratings(folder)


def _values(path, pairs, **columns):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["study_id", "candidate_id", *columns])
        for row in range(len(pairs)):
            cells = [values[row] for values in columns.values()]
            writer.writerow([pairs.studies[row], pairs.candidates[row], *cells])
    return path


def _read(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_files_hold_what_was_computed(pairs, tmp_path):
    scorer = Scorer(metrics="bleu-1,rouge-l")
    run = align(pairs, tmp_path / "out", scorer=scorer, resamples=30)
    rows = _read(run.folder / "values.csv")
    assert [row["candidate_id"] for row in rows[:2]] == ["radgraph", "bertscore"]
    table = scorer.score([None] * len(pairs), list(pairs.texts), list(pairs.references))
    computed = [float(row["bleu-1"]) for row in rows]
    np.testing.assert_array_equal(computed, table.columns["bleu-1"])
    means = [float(row["mean total errors"]) for row in rows]
    np.testing.assert_array_equal(means, pairs.means["total errors"])

    agreement = _read(run.folder / "agreement.csv")
    assert len(agreement) == 2 * 9
    first = run.result.agreements[0]
    assert float(agreement[0]["by_study.tau_b"]) == first.by_study["tau_b"].estimate
    assert float(agreement[0]["by_study.tau_b.low"]) == first.by_study["tau_b"].low
    assert len(_read(run.folder / "differences.csv")) == 2
    assert len(_read(run.folder / "raters.csv")) == 2 * 2 * 2
    assert len(_read(run.folder / "ceilings.csv")) == 9
    assert len(_read(run.folder / "rankings.csv")) == 3 * 9
    assert _read(run.folder / "failures.csv") == []

    content = json.loads((run.folder / "alignment.json").read_text(encoding="utf-8"))
    assert content == run.content
    assert (content["pairs"], content["studies"], content["raters"]) == (12, 3, ["0", "1"])
    assert [each["n"] for each in content["metrics"]] == [12, 12]
    tables = (run.folder / "tables.md").read_text(encoding="utf-8")
    assert "rouge-score:" in tables
    # Tables for papers have the papers' names of metrics; files for programs the registry's.
    assert "| ROUGE-L |" in tables
    assert "| rouge-l |" not in tables
    assert {row[0] for row in run.tables[0].rows} == {"bleu-1", "rouge-l"}
    latex = (run.folder / "tables.tex").read_text(encoding="utf-8")
    assert latex.count(r"\caption{") == len(run.tables)
    for table in run.tables:
        heads = " ".join(table.columns)
        assert "n" in heads.split() or "(n)" in heads or "n in parentheses" in table.caption


def test_a_second_call_changes_nothing_and_other_settings_are_refused(pairs, tmp_path):
    scorer = Scorer(metrics="bleu-1")
    first = align(pairs, tmp_path / "out", scorer=scorer, resamples=30)
    again = align(pairs, tmp_path / "out", scorer=scorer, resamples=30)
    assert again.unchanged
    assert again.content == first.content
    assert [t.text() for t in again.tables] == [t.text() for t in first.tables]
    with pytest.raises(InvalidSetting, match="resamples"):
        align(pairs, tmp_path / "out", scorer=scorer, resamples=31)


def test_pairs_of_ones_own_need_no_file_and_are_told_apart(tmp_path):
    texts = ("Clear.", "Edema.", "Clear lungs.")
    own = rated({"errors": [[0, 2, 1]]}, texts=texts, references=("Clear.",) * 3)
    scorer = Scorer(metrics="bleu-1")
    run = align(own, tmp_path / "out", scorer=scorer, resamples=30)
    assert run.content["pairs"] == 3
    changed = rated({"errors": [[0, 2, 3]]}, texts=texts, references=("Clear.",) * 3)
    with pytest.raises(InvalidSetting, match="pairs_sha256"):
        align(changed, tmp_path / "out", scorer=scorer, resamples=30)
    with pytest.raises(InvalidSetting, match="the rated set has none"):
        align(rated({"errors": [[0, 2]]}), tmp_path / "x", scorer=scorer)


def test_a_stopped_run_goes_on_and_ends_alike(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_TEXTS_IN_CHUNK", 5)
    scorer = Scorer(metrics="bleu-1")
    whole = align(pairs, tmp_path / "whole", scorer=scorer, resamples=30)

    def stop(done, failed):
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        align(pairs, tmp_path / "out", scorer=scorer, resamples=30, on_progress=stop)
    seen = []
    ended = align(
        pairs,
        tmp_path / "out",
        scorer=scorer,
        resamples=30,
        on_progress=lambda done, failed: seen.append(done),
    )
    assert seen == [10, 12]
    assert ended.content == whole.content
    for name in ("values.csv", "agreement.csv", "tables.md"):
        assert (ended.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_values_from_a_table_join_those_computed(pairs, tmp_path):
    mean = pairs.means["total errors"]
    path = _values(tmp_path / "values.csv", pairs, mine=-mean, errors=mean)
    run = align(
        pairs,
        tmp_path / "out",
        scorer=Scorer(metrics="bleu-1"),
        values=path,
        lower_is_better=["errors"],
        resamples=30,
    )
    taus = {
        each.metric: each.by_study["tau_b"].estimate
        for each in run.result.agreements
        if each.rating == "total errors"
    }
    assert list(taus) == ["bleu-1", "mine", "errors"]
    assert taus["mine"] == taus["errors"] == 1
    assert any("larger values of mine are assumed to be better" in note for note in run.notes)


def test_a_known_name_has_its_own_direction_and_gaps_are_listed(pairs, tmp_path):
    mean = [*map(str, pairs.means["total errors"][:-2]), "", "much"]
    path = _values(tmp_path / "values.csv", pairs, **{"bounding-sphere": mean, "bleu-4": mean})
    path.write_text(path.read_text(encoding="utf-8") + "999,bleu,1,1\n", encoding="utf-8")
    run = align(pairs, tmp_path / "out", values=path, resamples=30)
    assert [each["n"] for each in run.content["metrics"]] == [10, 10]
    directions = {m["name"]: m["higher_is_better"] for m in run.content["metrics"]}
    assert directions == {"bounding-sphere": False, "bleu-4": True}
    assert len(run.content["failures"]) == 4
    assert "has no value" in run.content["failures"][0]["error"]
    assert "'much'" in run.content["failures"][-1]["error"]
    assert any("1 row belongs to no rated pair" in note for note in run.notes)


def test_an_infinite_value_of_a_metric_is_not_called_a_rating(pairs, tmp_path):
    path = _values(tmp_path / "values.csv", pairs, mine=["inf", *range(1, len(pairs))])
    run = align(pairs, tmp_path / "out", values=path, resamples=30)
    (failure,) = run.content["failures"]
    assert failure["error"].endswith("column \"mine\" holds 'inf'; a finite number is needed")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("study_id,candidate_id\n500,bleu\n", "no column of values"),
        ("study_id,m\n500,1\n", "no column candidate_id"),
        ("study_id,candidate_id,m\n1,bleu,1\n", "none of its rows"),
        ("study_id,candidate_id,m\n500,bleu,1\n500,bleu,2\n", "row 2: .*earlier row"),
        ("study_id,candidate_id,m\n,bleu,1\n", 'row 1: column "study_id" is empty'),
    ],
)
def test_a_table_of_values_that_fits_not_is_refused(pairs, tmp_path, content, message):
    path = tmp_path / "values.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidTable, match=message):
        align(pairs, tmp_path / "out", values=path)


def test_settings_that_cannot_be_honoured_are_refused_before_anything(pairs, tmp_path):
    path = _values(tmp_path / "values.csv", pairs, **{"bleu-1": range(12)})
    scorer = Scorer(metrics="bleu-1")
    out = tmp_path / "out"
    with pytest.raises(InvalidSetting, match="--values"):
        align(pairs, out)
    with pytest.raises(InvalidSetting, match="both computed and read"):
        align(pairs, out, scorer=scorer, values=path)
    with pytest.raises(InvalidSetting, match="no column other"):
        align(pairs, out, values=path, lower_is_better=["other"])
    with pytest.raises(InvalidSetting, match="name the table too"):
        align(pairs, out, scorer=scorer, lower_is_better=["x"])
    with pytest.raises(InvalidSetting, match="--studies"):
        align(pairs, out, scorer=Scorer(HashEncoder(), metrics="vlscore"))
    said = {"user_1": {"7": {"C1": 2, "C2": 5}}}
    without_texts = read_ratings(make_radpref(tmp_path / "RadPref", said))
    with pytest.raises(InvalidSetting, match="has none"):
        align(without_texts, out, scorer=scorer)
    assert not any(out.glob("*.json"))


def test_images_come_from_a_table_of_studies(pairs, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["id,image"]
    for study in ("500", "501"):
        pixels = rng.integers(0, 256, (32, 32), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{study}.png")
        lines.append(f"{study},{study}.png")
    table = tmp_path / "studies.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1")
    run: AlignmentRun = align(
        pairs,
        tmp_path / "out",
        scorer=scorer,
        studies=open_studies(table, needs={"image"}),
        resamples=30,
    )
    assert [each["n"] for each in run.content["metrics"]] == [8, 8]
    assert {each["id"].split(",")[0] for each in run.content["failures"]} == {"502"}
    assert "no image is known of study '502'" in run.content["failures"][0]["error"]
    other = tmp_path / "others.csv"
    other.write_text("id,image\n7,500.png\n", encoding="utf-8")
    with pytest.raises(InvalidSetting, match="none of its studies"):
        align(pairs, tmp_path / "x", scorer=scorer, studies=open_studies(other, needs={"image"}))


def test_ranks_of_one_rater_write_every_file(tmp_path):
    texts = ("Clear lungs.", "Clear.", "Edema.") * 2
    ranks = rated(
        {"rank": [[1, 2, 3, 1, 2, 3]]},
        list("aaabbb"),
        meaning="ranks",
        texts=texts,
        references=("Clear lungs.",) * 6,
    )
    run = align(ranks, tmp_path / "out", scorer=Scorer(metrics="bleu-1"), resamples=30)
    assert len(run.tables) == 1
    assert (run.folder / "agreement.csv").read_text(encoding="utf-8").strip() == ""
    (row,) = _read(run.folder / "rankings.csv")
    assert (row["metric"], row["comparisons"], row["right"]) == ("bleu-1", "6", "1.0")
    again = align(ranks, tmp_path / "out", scorer=Scorer(metrics="bleu-1"), resamples=30)
    assert again.unchanged


def test_a_missing_value_is_listed_with_the_row_of_its_pair_in_the_table(tmp_path):
    """Three raters: the fourth candidate begins in row 10 of the file."""
    rows = [
        {"study_id": k // 2, "candidate_id": k % 2, "rater": rater, "rating": k + rater}
        for k in range(8)
        for rater in range(3)
    ]
    table = write_csv(tmp_path / "ratings.csv", rows)
    columns = RatingColumns(rater="rater", ratings=("rating",))
    found = read_ratings(table, columns=columns)
    values = [*range(3), "", *range(4, 8)]
    path = _values(tmp_path / "values.csv", found, mine=values)
    run = align(found, tmp_path / "out", values=path, resamples=30)
    assert [(row["row"], row["id"]) for row in _read(run.folder / "failures.csv")] == [
        ("10", "1, 1")
    ]
    ((row, name, _),) = run.first_failures(3)
    assert (row, name) == (10, "1, 1")


def test_a_set_of_several_files_has_no_row_for_a_pair(pairs, tmp_path, capsys):
    path = _values(tmp_path / "values.csv", pairs, mine=["", *range(1, len(pairs))])
    run = align(pairs, tmp_path / "out", values=path, resamples=30)
    (failure,) = _read(run.folder / "failures.csv")
    assert (failure["row"], failure["id"]) == ("", "500, radgraph")
    print_failures(run.first_failures(3), 1, "value is missing")
    assert "  500, radgraph: " in capsys.readouterr().err


def test_a_difference_has_the_same_columns_in_the_file_and_in_a_frame(tmp_path):
    difference = Difference(0.25, 0.125, 0.5, 0.03125)
    write_table(tmp_path / "out.csv", [Record("bleu-4", difference)])
    (row,) = _read(tmp_path / "out.csv")
    assert row == {
        "name": "bleu-4",
        "difference": "0.25",
        "difference.low": "0.125",
        "difference.high": "0.5",
        "difference.p_value": "0.03125",
    }
    pytest.importorskip("pandas")
    assert list(frame([Record("bleu-4", difference)])) == list(row)
