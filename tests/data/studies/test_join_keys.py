"""Joins of two files: by a key that both have, or refused; never by chance.

What is right is known from how the files are made: the reference of study k is "reference k", its
candidate is "candidate k".
"""

import csv
import json
import random

import pandas
import pytest

from tests.command import run_command
from vlscore.data import open_studies, pair, read_rows
from vlscore.errors import InvalidTable

NAMES = [f"00{k}7" for k in range(1, 7)]
SHUFFLED = [NAMES[k] for k in (3, 0, 5, 1, 4, 2)]


def rows_of(names, role, key, **more):
    return [
        {key: name, "report": f"{role} {name}"} | {n: f(name) for n, f in more.items()}
        for name in names
    ]


def written(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pandas.DataFrame(rows).to_parquet(path)
    else:
        with path.open("w", newline="") as stream:
            table = csv.DictWriter(stream, rows[0])
            table.writeheader()
            table.writerows(rows)
    return path


def is_right(path):
    """Return the number of rows, all of which join the two reports of one study."""
    rows = [row for _, row in read_rows(path)]
    for row in rows:
        assert row["reference"].split()[1] == row["candidate"].split()[1], row
    return len(rows)


@pytest.mark.parametrize(
    "key",
    [
        *("id", "ID", "Id", "study_id", "Study_ID", "study id", "StudyID", "dicom_id", "DICOM_ID"),
        *("image_id", "uid", "UID", "filename", "file_name", "File Name", "image", "image_path"),
        *("StudyInstanceUID", "SOPInstanceUID", "AccessionNumber", "accession", "exam_id", "path"),
        *("case_id", "Study No.", "key", "name"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_key_of_any_usual_name_joins(tmp_path, key, suffix):
    ours = written(tmp_path / f"r{suffix}", rows_of(NAMES, "reference", key))
    theirs = written(tmp_path / f"c{suffix}", rows_of(SHUFFLED, "candidate", key))
    found = pair(ours, theirs, tmp_path / "s.csv")
    assert found.key == (key, key)
    assert is_right(found.out) == len(NAMES)


def test_two_spellings_of_an_id_join(tmp_path):
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "study_id"))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", "Study ID"))
    assert is_right(pair(ours, theirs, tmp_path / "s.csv").out) == len(NAMES)


@pytest.mark.parametrize("theirs_key", ["Study No.", "Nummer", "x"])
@pytest.mark.parametrize(
    "rename", ["id={key}", "c.id={key}", "c.csv.id={key}", "candidates.id={key}"]
)
def test_a_named_column_counts_for_the_file_that_has_it(tmp_path, theirs_key, rename):
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "id"))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", theirs_key))
    out = tmp_path / "s.csv"
    refused = run_command("pair", ours, theirs, "--out", out)
    assert refused.exit_code == 2
    assert f"references.id=id,candidates.id={theirs_key}" in refused.stderr
    assert not out.exists()
    done = run_command(
        "pair", ours, theirs, "--out", out, "--rename", rename.format(key=theirs_key)
    )
    assert done.exit_code == 0, done.output
    assert is_right(out) == len(NAMES)


def test_a_column_that_no_file_has_is_refused(tmp_path):
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "id"))
    with pytest.raises(InvalidTable, match='no file has the column "uid"'):
        pair(ours, ours, tmp_path / "s.csv", id_column="uid")
    with pytest.raises(InvalidTable, match='no column "uid"'):
        pair(ours, ours, tmp_path / "s.csv", id_column={"candidates": "uid"})


@pytest.mark.parametrize("more", [{}, {"length": lambda name: 7}])
def test_without_a_key_order_must_be_asked_for(tmp_path, more):
    ours = [{"report": f"reference {n}"} | {k: f(n) for k, f in more.items()} for n in NAMES]
    theirs = [{"report": f"candidate {n}"} | {k: f(n) for k, f in more.items()} for n in NAMES]
    files = written(tmp_path / "r.csv", ours), written(tmp_path / "c.csv", theirs)
    with pytest.raises(InvalidTable, match="--by-order joins the rows by their order"):
        pair(*files, tmp_path / "s.csv")
    found = pair(*files, tmp_path / "s.csv", by_order=True)
    assert (found.by_id, is_right(found.out)) == (False, len(NAMES))
    assert found.notes == ["the rows were joined by their order"]


@pytest.mark.parametrize("column", ["id", "Patient no", "subject", "reference", "whatever"])
def test_an_order_that_a_column_contradicts_is_refused(tmp_path, column):
    """A further column of both files with the same values in another order."""
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", column))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", column))
    with pytest.raises(InvalidTable, match="another order"):
        pair(ours, theirs, tmp_path / "s.csv", reference_column="report", by_order=True)
    same = written(tmp_path / "same.csv", rows_of(NAMES, "candidate", column))
    found = pair(ours, same, tmp_path / "s.csv", reference_column="report", by_order=True)
    assert found.pairs == len(NAMES)


def test_an_order_that_ids_of_another_name_contradict_is_refused(tmp_path):
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "id"))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", "Nummer"))
    for files in ((ours, theirs), (theirs, ours)):
        with pytest.raises(InvalidTable, match="another order"):
            pair(*files, tmp_path / "s.csv", by_order=True)


def test_a_copy_of_the_references_in_another_order_contradicts_the_order(tmp_path):
    ours = written(tmp_path / "r.csv", [{"reference": f"reference {n}"} for n in NAMES])
    theirs = [{"reference": f"reference {n}", "candidate": f"candidate {n}"} for n in SHUFFLED]
    with pytest.raises(InvalidTable, match='both files have the column "reference"'):
        pair(ours, written(tmp_path / "c.csv", theirs), tmp_path / "s.csv", by_order=True)


def test_an_unknown_column_of_the_same_values_is_named(tmp_path):
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "Nummer"))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", "Nummer"))
    with pytest.raises(InvalidTable, match=r"--rename 'id=Nummer' joins by it"):
        pair(ours, theirs, tmp_path / "s.csv")
    found = pair(ours, theirs, tmp_path / "s.csv", id_column="Nummer")
    assert is_right(found.out) == len(NAMES)


def test_two_keys_that_contradict_each_other_are_refused(tmp_path):
    """Rows were numbered anew in each file, as a spreadsheet does, and image says so."""
    ids = {name: f"n{k}" for k, name in enumerate(NAMES)}
    others = {name: f"n{k}" for k, name in enumerate(SHUFFLED)}
    ours = written(tmp_path / "r.csv", rows_of(NAMES, "reference", "image", id=ids.get))
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", "image", id=others.get))
    with pytest.raises(InvalidTable, match=r'two keys that contradict each other.*"image"'):
        pair(ours, theirs, tmp_path / "s.csv")
    found = pair(ours, theirs, tmp_path / "s.csv", id_column="image")
    assert is_right(found.out) == len(NAMES)


def test_row_numbers_and_scores_contradict_nothing(tmp_path):
    numbers = {name: str(k) for k, name in enumerate(SHUFFLED)}
    more = {"Unnamed: 0": numbers.get, "path": lambda name: f"{name}.png"}
    ours = written(
        tmp_path / "r.csv",
        [{**row, "Unnamed: 0": k} for k, row in enumerate(rows_of(NAMES, "reference", "id"))],
    )
    theirs = written(tmp_path / "c.csv", rows_of(SHUFFLED, "candidate", "id", **more))
    assert is_right(pair(ours, theirs, tmp_path / "s.csv").out) == len(NAMES)


@pytest.mark.parametrize("step", [-1, 1, 3])
def test_a_range_index_of_parquet_is_a_column(tmp_path, step):
    """pandas stores it in the metadata alone; `pandas.read_parquet` is the second opinion."""
    numbers = list(range(40, 40 + 6 * step, step))
    frame = pandas.DataFrame({"id": numbers, "candidate": [f"candidate {n}" for n in numbers]})
    frame = frame.set_index("id")
    frame.index = pandas.RangeIndex(numbers[0], numbers[0] + 6 * step, step, name="id")
    frame.to_parquet(tmp_path / "c.parquet")
    expected = pandas.read_parquet(tmp_path / "c.parquet").index.tolist()
    assert [s.id for s in open_studies(tmp_path / "c.parquet", needs={"candidate"})] == [
        str(n) for n in expected
    ]
    ours = [{"id": n, "report": f"reference {n}"} for n in sorted(numbers, key=str)]
    random.Random(1).shuffle(ours)
    found = pair(written(tmp_path / "r.csv", ours), tmp_path / "c.parquet", tmp_path / "s.csv")
    assert is_right(found.out) == 6


def test_an_index_without_a_name_or_of_a_filtered_table_is_none(tmp_path):
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    frame = pandas.DataFrame({"report": list("abcd")}, index=pandas.RangeIndex(4))
    frame.to_parquet(tmp_path / "a.parquet")
    assert next(read_rows(tmp_path / "a.parquet")) == (1, {"report": "a"})
    frame.index = pandas.RangeIndex(4, name="id")
    frame.to_parquet(tmp_path / "b.parquet")
    table = pq.read_table(tmp_path / "b.parquet")
    pq.write_table(table.filter(pc.field("report") == "c"), tmp_path / "c.parquet")
    assert next(read_rows(tmp_path / "c.parquet")) == (1, {"report": "c"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda name: name.lstrip("0"), "zeros at their beginning"),
        (lambda name: f"{name}.0", '".0" at their end'),
        (lambda name: f"{name}.dcm", "suffix of a file"),
        (lambda name: f"p10/{name}.dcm", "folder or suffix of a file"),
        (lambda name: f"s{name}", "letters at their beginning"),
        (lambda name: f"{name[0]}-{name[1:]}", "blanks and signs"),
    ],
)
def test_ids_that_nearly_agree_are_named_as_such(tmp_path, change, words):
    names = [f"0{k}A7" for k in range(1, 5)]
    ours = written(tmp_path / "r.csv", rows_of(names, "reference", "id"))
    theirs = written(tmp_path / "c.csv", rows_of([change(n) for n in names], "candidate", "id"))
    done = run_command("pair", ours, theirs, "--out", tmp_path / "s.csv")
    assert done.exit_code == 2
    assert f"ids differ by {words.split()[0]}" in done.stderr or words in done.stderr
    assert names[0] in done.stderr
    # Some ids agree: the others are listed, and the reason is a note.
    some = [names[0], *(change(n) for n in names[1:])]
    theirs = written(tmp_path / "c.csv", rows_of(some, "candidate", "id"))
    done = run_command("pair", ours, theirs, "--out", tmp_path / "s.csv")
    assert done.exit_code == 1
    assert words in done.stderr
    assert f"3 left out: no candidate has this id ({', '.join(names[1:])})" in done.stdout


def test_ids_of_two_collections_are_both_shown(tmp_path):
    ours = written(tmp_path / "r.csv", rows_of(["a1", "a2"], "reference", "id"))
    theirs = written(tmp_path / "c.csv", rows_of(["q8", "q9"], "candidate", "id"))
    with pytest.raises(InvalidTable, match=r"ids there: q8, q9; here: a1, a2"):
        pair(ours, theirs, tmp_path / "s.csv")


def test_lists_of_references_are_named_as_such(tmp_path):
    content = {"references": [["Clear.", "Normal."], ["Edema."]], "hypotheses": ["a", "b"]}
    (tmp_path / "d.json").write_text(json.dumps(content))
    with pytest.raises(InvalidTable, match=r'row 1 of d\.json: column "reference" holds a list'):
        pair(tmp_path / "d.json", tmp_path / "d.json", tmp_path / "s.csv")
