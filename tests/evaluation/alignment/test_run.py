"""A whole alignment into a folder: values by metrics and from tables, resumably."""

import csv

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import aligned, make_radpref, make_rexval, rated, write_csv
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting
from vlscore.evaluation import read_ratings
from vlscore.evaluation.alignment.align import columns_named, split_values
from vlscore.metrics import Scorer, find_metric


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
    run = aligned(pairs, tmp_path / "out", scorer=scorer, resamples=30)
    rows = _read(run.folder / "values.csv")
    assert [row["candidate_id"] for row in rows[:2]] == ["radgraph", "bertscore"]
    table = scorer.score([None] * len(pairs), list(pairs.texts), list(pairs.references))
    computed = [float(row["bleu-1"]) for row in rows]
    np.testing.assert_array_equal(computed, table.columns["bleu-1"])
    means = [float(row["mean total errors"]) for row in rows]
    np.testing.assert_array_equal(means, pairs.means["total errors"])

    assert {name: len(rows) for name, rows in run.frames.items()} == {
        "agreements": 2 * 9,
        "differences": 2,
        "raters": 2 * 2 * 2,
        "ceilings": 9,
        "rankings": 3 * 9,
        "metrics": 2,
    }
    assert run.failures == []
    record = run.record
    assert (record["pairs"], record["studies"], record["raters"]) == (12, 3, ["0", "1"])
    assert list(run.frame("metrics")["n"]) == [12, 12]
    tables = (run.folder / "tables.md").read_text(encoding="utf-8")
    assert "rouge-score:" in tables
    # Tables have the papers' names of metrics; numbers for programs the registry's.
    assert "| ROUGE-L |" in tables
    assert set(run.frame("agreements")["metric"]) == {"bleu-1", "rouge-l"}
    latex = (run.folder / "tables.tex").read_text(encoding="utf-8")
    assert latex.count(r"\caption{") == len(run.tables)
    for table in run.tables:
        heads = " ".join(table.columns)
        assert "n" in heads.split() or "(n)" in heads or "n in parentheses" in table.caption


def test_pairs_of_ones_own_need_no_file_and_are_told_apart(tmp_path):
    texts = ("Clear.", "Edema.", "Clear lungs.")
    own = rated({"errors": [[0, 2, 1]]}, texts=texts, references=("Clear.",) * 3)
    scorer = Scorer(metrics="bleu-1")
    run = aligned(own, tmp_path / "out", scorer=scorer, resamples=30)
    assert run.record["pairs"] == 3
    changed = rated({"errors": [[0, 2, 3]]}, texts=texts, references=("Clear.",) * 3)
    with pytest.raises(InvalidSetting, match="content of the rated pairs"):
        aligned(changed, tmp_path / "out", scorer=scorer, resamples=30)
    with pytest.raises(InvalidSetting, match="the rated set has none"):
        aligned(rated({"errors": [[0, 2]]}), tmp_path / "x", scorer=scorer)


def test_values_from_a_table_join_those_computed(pairs, tmp_path):
    mean = pairs.means["total errors"]
    path = _values(tmp_path / "values.csv", pairs, mine=-mean, errors=mean)
    run = aligned(
        pairs,
        tmp_path / "out",
        scorer=Scorer(metrics="bleu-1"),
        values=path,
        lower_is_better=["errors"],
        resamples=30,
    )
    rows = run.frame("agreements").query("rating == 'total errors'")
    taus = dict(zip(rows["metric"], rows["tau_b"], strict=True))
    assert list(taus) == ["bleu-1", "mine", "errors"]
    assert taus["mine"] == taus["errors"] == 1
    assert any("larger values of mine are assumed to be better" in note for note in run.notes)


def test_settings_that_cannot_be_honoured_are_refused_before_anything(pairs, tmp_path):
    path = _values(tmp_path / "values.csv", pairs, **{"bleu-1": range(12)})
    scorer = Scorer(metrics="bleu-1")
    out = tmp_path / "out"
    with pytest.raises(InvalidSetting, match="--values"):
        aligned(pairs, out)
    with pytest.raises(InvalidSetting, match="both computed and read"):
        aligned(pairs, out, scorer=scorer, values=path)
    with pytest.raises(InvalidSetting, match="no column other"):
        aligned(pairs, out, values=path, lower_is_better=["other"])
    with pytest.raises(InvalidSetting, match="name the table too"):
        aligned(pairs, out, scorer=scorer, lower_is_better=["x"])
    with pytest.raises(InvalidSetting, match="--studies"):
        aligned(pairs, out, scorer=Scorer(HashEncoder(), metrics="vlscore"))
    said = {"user_1": {"7": {"C1": 2, "C2": 5}}}
    without_texts = read_ratings(make_radpref(tmp_path / "RadPref", said))
    with pytest.raises(InvalidSetting, match="has none"):
        aligned(without_texts, out, scorer=scorer)
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
    run = aligned(
        pairs,
        tmp_path / "out",
        scorer=scorer,
        studies=open_studies(table, needs={"image"}),
        resamples=30,
    )
    assert list(run.frame("metrics")["n"]) == [8, 8]
    assert {each.id.split(",")[0] for each in run.failures} == {"502"}
    assert "no image is known of study '502'" in run.failures[0].reason
    other = tmp_path / "others.csv"
    other.write_text("id,image\n7,500.png\n", encoding="utf-8")
    with pytest.raises(InvalidSetting, match="none of its studies"):
        aligned(pairs, tmp_path / "x", scorer=scorer, studies=open_studies(other, needs={"image"}))


def test_a_missing_value_is_listed_with_the_row_of_its_pair_in_the_table(tmp_path):
    """Three raters: the fourth candidate begins in row 10 of the file."""
    rows = [
        {"study_id": k // 2, "candidate_id": k % 2, "rater": rater, "rating": k + rater}
        for k in range(8)
        for rater in range(3)
    ]
    table = write_csv(tmp_path / "ratings.csv", rows)
    found = read_ratings(table)
    values = [*range(3), "", *range(4, 8)]
    path = _values(tmp_path / "values.csv", found, mine=values)
    run = aligned(found, tmp_path / "out", values=path, resamples=30)
    assert [(failure.row, failure.id) for failure in run.failures] == [(10, "1, 1")]


@pytest.mark.parametrize("meaning", ["errors", "quality", "ranks"])
def test_what_looks_reversed_is_named(tmp_path, meaning):
    quality = np.random.default_rng(0).normal(size=(40, 3))
    ratings = {"errors": -quality, "quality": quality}.get(meaning)
    if ratings is None:
        ratings = (-quality).argsort(1).argsort(1) + 1.0
    names = [f"s{k}" for k in range(40) for _ in "abc"]
    own = rated({"rating": ratings.reshape(1, -1)}, names, meaning=meaning)
    good = quality.ravel()

    def notes(**columns):
        path = _values(tmp_path / "values.csv", own, **columns)
        run = aligned(own, tmp_path / "out", values=path, resamples=100, overwrite=True)
        return [note for note in run.notes if "assumed" not in note]

    (note,) = notes(good=good, turned=-good)
    assert note.startswith("turned disagrees with the raters")
    assert notes(one=good) == []
    assert f"read as {meaning}" in notes(one=-good, other=-good + 0.1)[0]


def test_names_of_numbers():
    names = ["judge", "judge(score=count)", "judge.sum"]
    metrics, columns = split_values(names)
    assert list(map(str, metrics)) == names[:2]
    assert columns == [column for _, column in columns_named(metrics, columns)] == names
    # A setting may be added after the name was written.
    metric = find_metric("vlscore(C=2.5)")
    assert columns_named([metric], ["vlscore"]) == [(metric, "vlscore(C=2.5)")]
