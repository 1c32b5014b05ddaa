"""Joining systems: the same studies, the same references, or a refusal that shows what differs."""

import json
import re

import pytest

from tests.evaluation.samples import compare
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import evaluate, join, open_sources
from vlscore.evaluation.comparison.sources import column_of
from vlscore.metrics import Scorer

ROWS = [
    {"id": f"s{k}", "reference": f"Reference number {k}.", "candidate": f"Candidate {k}."}
    for k in range(8)
]


@pytest.fixture
def write(tmp_path):
    def write(name, rows):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_rows_are_joined_by_id_in_the_order_of_the_first_table(write):
    other = [{**row, "candidate": row["candidate"].upper()} for row in reversed(ROWS)]
    systems = join(open_sources([write("a", ROWS), f"mine={write('b', other)}"]))
    assert [study.id for study in systems.studies] == [row["id"] for row in ROWS]
    assert list(systems.candidates) == ["a", "mine"]
    assert systems.candidates["mine"] == [row["candidate"].upper() for row in ROWS]


def test_missing_studies_are_named_from_both_sides(write):
    paths = [write("a", ROWS[:7]), write("b", ROWS[1:])]
    with pytest.raises(InvalidTable) as raised:
        join(open_sources(paths))
    said = str(raised.value)
    assert re.search(r"a\.jsonl lacks 1 study \(s7\) of \S*b\.jsonl", said)
    assert re.search(r"b\.jsonl lacks 1 study \(s0\) of \S*a\.jsonl", said)
    assert "or add them with an empty candidate" in said


def test_of_many_missing_studies_some_are_named(write):
    with pytest.raises(InvalidTable, match=r"lacks 7 studies \(s1, s2, s3, s4, s5, \.\.\.\)"):
        join(open_sources([write("a", ROWS), write("b", ROWS[:1])]))


def test_another_reference_is_shown_where_it_begins_to_differ(write):
    long = "The lungs are clear and the heart is of normal size. "
    mine = [{**ROWS[0], "reference": long + "No effusion."}]
    theirs = [{**ROWS[0], "reference": long + "An effusion."}]
    with pytest.raises(InvalidTable) as raised:
        join(open_sources([write("a", mine), write("b", theirs)]))
    said = str(raised.value)
    assert "references of 1 study (s0) differ" in said
    # Reports are patients' data, which a message never quotes.
    assert f"of s0, from character {len(long) + 1} on" in said
    assert "effusion" not in said
    assert "lungs" not in said


def test_a_row_that_no_system_can_use_is_left_out_with_a_note(write):
    bad = {"id": "s9", "reference": "", "candidate": "x"}
    systems = join(open_sources([write("a", [*ROWS, bad]), write("b", [bad, *ROWS])]))
    assert len(systems.studies) == 8
    assert len([note for note in systems.notes if "s9" in note and "is empty" in note]) == 2


def test_a_row_that_one_system_cannot_use_is_a_difference_with_its_reason(write):
    broken = [{**ROWS[0], "reference": None}, *ROWS[1:]]
    with pytest.raises(InvalidTable, match=r'lacks 1 study \(s0\).*column "reference" is empty'):
        join(open_sources([write("a", ROWS), write("b", broken)]))


def test_an_id_that_stands_twice_is_refused(write):
    with pytest.raises(InvalidTable, match=r"b\.jsonl, row 9: id 's0' is already in row 1"):
        join(open_sources([write("a", ROWS), write("b", [*ROWS, ROWS[0]])]))


def test_files_of_one_name_are_told_apart_by_their_folders(write):
    paths = [write("one/results", ROWS), write("two/results", ROWS)]
    assert [s.name for s in open_sources(paths)] == ["one/results", "two/results"]
    assert [s.name for s in open_sources([paths[0], f"x={paths[1]}"])] == ["results", "x"]
    with pytest.raises(InvalidSetting, match="two systems would be called x"):
        open_sources([f"x={path}" for path in paths])
    with pytest.raises(InvalidSetting, match="begin with"):
        open_sources([f"baseline:mine={paths[0]}"])


def test_a_finished_evaluation_stands_for_its_table(write, tmp_path):
    table = write("a", ROWS)
    evaluate(table, tmp_path / "done", Scorer(metrics="bleu-1"))
    (source,) = open_sources([tmp_path / "done"])
    assert source.run is not None
    assert source.name == "done"
    assert join([source]).candidates["done"] == [row["candidate"] for row in ROWS]


def test_a_folder_is_refused_without_its_table(write, tmp_path):
    table = write("a", ROWS)
    evaluate(table, tmp_path / "done", Scorer(metrics="bleu-1"))
    write("a", ROWS[:3])
    with pytest.raises(InvalidTable, match="was changed since"):
        open_sources([tmp_path / "done"])
    table.unlink()
    with pytest.raises(InvalidTable, match="which is not there"):
        open_sources([tmp_path / "done"])
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InvalidTable, match=r"without run\.json"):
        open_sources([tmp_path / "nothing"])
    (tmp_path / "nothing" / "run.json").write_text('{"key": {}, "results": {}}')
    with pytest.raises(InvalidTable, match="not that of `vlscore evaluate`"):
        open_sources([tmp_path / "nothing"])


def test_rows_that_are_left_out_are_failures(tmp_path):
    """One note a table, however many rows; failures.csv has each of them."""
    rows = [
        {"id": f"s{k}", "reference": "" if k % 2 else f"Report {k}.", "candidate": "Clear."}
        for k in range(40)
    ]
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = compare(paths, tmp_path / "out", Scorer(metrics="rouge-l"), resamples=50)
    assert result.record["studies"] == 20
    left_out = [(each.row, each.id) for each in result.failures]
    assert left_out == [(name, f"s{k}") for name in "ab" for k in range(1, 40, 2)]
    assert all('column "reference" is empty' in each.reason for each in result.failures)
    assert sum("left out" in note for note in result.notes) == 2


def test_a_column_is_joined_by_the_ids_of_the_studies(write):
    """Ids may be numbers, or have blanks around them; a study in several rows has one group."""
    rows = [{**row, "id": k + 1.0, "view": "pa"} for k, row in enumerate(ROWS)]
    rows[3] |= {"id": " s3 ", "view": "ap"}
    sources = open_sources([write("a", rows)])
    ids = [study.id for study in join(sources).studies]
    assert column_of("view", sources, ids) == {name: "ap" if name == "s3" else "pa" for name in ids}
    assert column_of("view", sources, ["2", "none"]) == {"2": "pa"}
    sources = open_sources([write("b", [*rows, {"id": "s3", "view": ""}, {"id": 1, "view": "ll"}])])
    with pytest.raises(InvalidTable, match="row 10: study 1 has two entries of view"):
        column_of("view", sources, ids)


def test_rows_without_ids_are_joined_with_their_columns_by_their_numbers(write):
    rows = [{"reference": "Edema.", "candidate": str(k), "sex": "fm"[k % 2]} for k in range(4)]
    sources = open_sources([write("a", rows), write("b", rows)])
    ids = [study.id for study in join(sources).studies]
    assert column_of("sex", sources, ids) == {"1": "f", "2": "m", "3": "f", "4": "m"}


def test_a_column_is_read_from_all_tables_which_may_not_disagree(write, tmp_path):
    whole = [{**row, "sex": "fm"[k % 2], "patient": k // 2} for k, row in enumerate(ROWS)]
    gaps = [{**row, "sex": row["sex"] * (k > 1), "patient": None} for k, row in enumerate(whole)]
    other = [{**row, "sex": "f"} for row in whole]
    full, partly, bare = write("full", whole), write("partly", gaps), write("bare", ROWS)
    settings = {"by": ("sex",), "patient_column": "patient", "resamples": 50, "permutations": 99}
    scorer, runs = Scorer(metrics="rouge-l"), []
    for k, paths in enumerate([(full, partly), (partly, full), (bare, full), (full, bare)]):
        runs.append(compare(paths, tmp_path / str(k), scorer, **settings))
        groups = runs[-1].frame("subgroups")
        assert dict(zip(groups["value"], groups["n"], strict=True)) == {"f": 4, "m": 4}
        assert any("resample and permute the 4 patients" in note for note in runs[-1].notes)
    said = [f"{bare} has no column {name}" for name in ("patient", "sex")]
    for run, expected in zip(runs, [0, 0, 2, 2], strict=True):
        assert sum(note.startswith(each) for note in run.notes for each in said) == expected
    with pytest.raises(
        InvalidTable, match=r"column sex differs between .*full.* \(s1, s3, s5, s7\)"
    ):
        compare([full, write("other", other)], tmp_path / "x", scorer, **settings)
    run = compare([partly, bare], tmp_path / "y", scorer, **settings)
    assert any(note.startswith("the column patient is empty for 8 studies") for note in run.notes)
    assert any("resample and permute the 0 patients" in note for note in run.notes)
