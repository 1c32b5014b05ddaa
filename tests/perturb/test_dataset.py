"""From a table of reports to the files of a data set."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.perturb.reports import REPORTS
from vlscore.errors import InvalidSetting, InvalidTable, UnknownName
from vlscore.perturb import (
    KINDS,
    Edit,
    PerturbedTable,
    apply_edits,
    default_standard_normal,
    lexicons_digest,
    perturb,
    perturb_report,
    standard_normal_of,
)
from vlscore.perturb import run as dataset
from vlscore.perturb.run import PERTURBATIONS_FILE, RUN_FILE, SKIPPED_FILE

FILES = (PERTURBATIONS_FILE, SKIPPED_FILE, RUN_FILE)
NORMAL = REPORTS["normal"]
TABLE = [
    {"id": "a", "report": REPORTS["several findings"]},
    {"id": "b", "report": NORMAL},
    {"id": "c", "report": REPORTS["sections"]},
    {"id": "d", "report": REPORTS["comparison"]},
    {"id": "e", "report": REPORTS["emoji and accents"]},
    {"id": "f", "report": REPORTS["german"]},
    {"id": "g", "report": REPORTS["one word"]},
    {"id": "h", "report": f"{NORMAL} Heart size is normal."},
]


def write(path: Path, rows: list[dict[str, Any]] = TABLE) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def records(out: Path, name: str = PERTURBATIONS_FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / name).read_text("utf-8").splitlines()]


def contents(out: Path) -> dict[str, bytes]:
    files = sorted(file for file in out.iterdir() if file.is_file() and file.name != ".lock")
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> PerturbedTable:
    folder = tmp_path_factory.mktemp("made")
    return perturb(write(folder / "table.jsonl"), folder / "out", seed=3, per_report=2)


def test_the_files_hold_what_perturb_yields(made):
    assert sorted(contents(made.folder)) == sorted(FILES)
    expected = [
        perturbation.to_dict()
        for row in TABLE
        for perturbation in perturb_report(
            row["report"],
            seed=3,
            per_report=2,
            study_id=row["id"],
            standard_normal=made.standard_normal,
        )
    ]
    assert records(made.folder) == expected
    assert sum(made.counts.values()) == len(expected) > 60
    assert made.reports == len(TABLE)
    assert made.bad_rows == []


def test_a_record_says_all_there_is_to_say(made):
    for record in records(made.folder):
        assert list(record) == [
            "study_id",
            "kind",
            "expected",
            "category",
            "original",
            "perturbed",
            "edits",
            "rule",
        ]
        kind = KINDS[record["kind"]]
        assert record["expected"] == kind.expected
        assert record["category"] == kind.category
        edits = [Edit(**edit) for edit in record["edits"]]
        assert apply_edits(record["original"], edits) == record["perturbed"]
    texts = [(r["study_id"], r["kind"], r["perturbed"]) for r in records(made.folder)]
    assert len(set(texts)) == len(texts)


def test_every_report_and_kind_is_either_changed_or_explained(made):
    changed = {(record["study_id"], record["kind"]) for record in records(made.folder)}
    explained = {
        (skipped["study_id"], name)
        for skipped in records(made.folder, SKIPPED_FILE)
        for name in skipped["reasons"]
    }
    assert changed.isdisjoint(explained)
    assert changed | explained == {(row["id"], name) for row in TABLE for name in KINDS}
    one_word = next(s for s in records(made.folder, SKIPPED_FILE) if s["study_id"] == "g")
    assert one_word["row"] == 7
    assert one_word["reasons"]["change-location"] == KINDS["change-location"].nothing


def test_run_facts(made):
    facts = json.loads((made.folder / RUN_FILE).read_text("utf-8"))
    table = made.folder.parent / "table.jsonl"
    assert facts["table"] == "table.jsonl"
    assert facts["table_sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()
    assert facts["lexicons_sha256"] == lexicons_digest()
    assert (facts["seed"], facts["per_report"]) == (3, 2)
    assert (facts["reports"], facts["bad_rows"]) == (len(TABLE), 0)
    assert facts["perturbations"] == made.counts
    assert list(made.counts) == list(KINDS)
    assert facts["standard_normal"] == made.standard_normal
    assert str(made.folder.parent) not in json.dumps(facts)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_formats_agree(made, tmp_path, format):
    table = write(tmp_path / f"table.{format}")
    other = perturb(table, tmp_path / "out", seed=3, per_report=2)
    for name in (PERTURBATIONS_FILE, SKIPPED_FILE):
        assert contents(other.folder)[name] == contents(made.folder)[name]


def test_same_seed_same_bytes_another_seed_others(made, tmp_path):
    table = made.folder.parent / "table.jsonl"
    again = perturb(table, tmp_path / "again", seed=3, per_report=2)
    other = perturb(table, tmp_path / "other", seed=4, per_report=2)
    assert contents(again.folder) == contents(made.folder)
    assert contents(other.folder)[PERTURBATIONS_FILE] != contents(made.folder)[PERTURBATIONS_FILE]


def test_order_of_rows_does_not_change_what_a_study_gets(made, tmp_path):
    table = write(tmp_path / "table.jsonl", TABLE[::-1])
    other = perturb(table, tmp_path / "out", seed=3, per_report=2)
    assert other.standard_normal == made.standard_normal
    for row in TABLE:
        own = [[r for r in records(t.folder) if r["study_id"] == row["id"]] for t in (made, other)]
        assert own[0] == own[1]


def test_some_kinds_get_what_all_get(made, tmp_path):
    names = ["paraphrase", "change-location", "standard-normal"]
    table = made.folder.parent / "table.jsonl"
    some = perturb(table, tmp_path / "out", names, seed=3, per_report=2)
    assert some.counts == {name: made.counts[name] for name in KINDS if name in names}
    assert records(some.folder) == [r for r in records(made.folder) if r["kind"] in names]


def test_fewer_per_report_get_the_first_ones(made, tmp_path):
    one = perturb(made.folder.parent / "table.jsonl", tmp_path / "out", seed=3)
    firsts = {}
    for record in records(made.folder):
        firsts.setdefault((record["study_id"], record["kind"]), record)
    assert records(one.folder) == list(firsts.values())


# ------------------------------------------------------------------ the standard normal report


def test_the_standard_normal_report_comes_from_the_table_itself(tmp_path):
    said = "No effusion or pneumothorax is seen anywhere."
    table = write(tmp_path / "t.jsonl", [{"id": k, "report": said} for k in range(3)])
    made = perturb(table, tmp_path / "out", ["standard-normal"])
    assert said in made.standard_normal
    assert made.standard_normal == standard_normal_of([said] * 3)
    assert (
        json.loads((made.folder / RUN_FILE).read_text())["standard_normal"] == made.standard_normal
    )


def test_a_given_standard_normal_report_is_taken(tmp_path):
    table = write(tmp_path / "t.jsonl", [{"id": 1, "report": NORMAL}])
    options = {"kinds": ["standard-normal"], "standard_normal": "All is well."}
    made = perturb(table, tmp_path / "out", **options)
    (record,) = records(made.folder)
    assert record["perturbed"] == made.standard_normal == "All is well."


def test_without_its_kind_no_standard_normal_report_is_made(tmp_path):
    made = perturb(write(tmp_path / "t.jsonl"), tmp_path / "out", ["paraphrase"])
    assert made.standard_normal is None


def test_a_corpus_without_normal_sentences_gets_the_default():
    assert standard_normal_of(["Nothing said."]) == default_standard_normal()


# ------------------------------------------------------------------ bad input


def test_bad_rows_are_named_and_spoil_no_other(tmp_path):
    lines = [
        '{"id": "a", "report": "Mild edema. No effusion."}',
        '{"id": "b", "report": "  "}',
        '{"id": "c"}',
        '{"id": "d", "report": 7}',
        "{broken",
        '{"id": "a", "report": "Left effusion. No edema."}',
        '{"id": "g", "report": "half a pair: \\ud800. Mild edema."}',
        '{"id": ["h"], "report": "Mild edema."}',
        '{"id": "i", "report": "Left effusion. No edema."}',
    ]
    table = tmp_path / "t.jsonl"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = perturb(table, tmp_path / "out")
    assert made.reports == 2
    assert {record["study_id"] for record in records(made.folder)} == {"a", "i"}
    reasons = {row.row: row.reason for row in made.bad_rows}
    assert list(reasons) == [2, 3, 4, 5, 6, 7, 8]
    assert "no text in report" in reasons[2]
    assert "no text in report" in reasons[3]
    assert "holds a int, not a text" in reasons[4]
    assert "json" in reasons[5].lower()
    assert "id 'a' is already in row 1" in reasons[6]
    assert "surrogate" in reasons[7]
    assert 'column "id" holds a list' in reasons[8]
    written = [skipped for skipped in records(made.folder, SKIPPED_FILE) if "reason" in skipped]
    assert [(w["row"], w["study_id"], w["reason"]) for w in written] == [
        (bad.row, bad.id, bad.reason) for bad in made.bad_rows
    ]
    assert [w["study_id"] for w in written] == ["b", "c", "d", None, "a", "g", None]


def test_a_table_without_ids_counts_its_rows(tmp_path):
    table = write(tmp_path / "t.csv", [{"text": "Mild edema. No effusion."}] * 2)
    made = perturb(table, tmp_path / "out", ["negate-finding"])
    assert [record["study_id"] for record in records(made.folder)] == ["1", "2"]


def test_columns_may_be_named(tmp_path):
    rows = [{"accession": "x7", "body": "Mild edema. No effusion.", "report": "No edema."}]
    table = write(tmp_path / "t.csv", rows)
    columns = {"id_column": "accession", "text_column": "body"}
    made = perturb(table, tmp_path / "out", ["negate-finding"], **columns)
    (record,) = records(made.folder)
    assert (record["study_id"], record["perturbed"]) == ("x7", "No edema. No effusion.")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "report": ""}], "holds no report; row 1: no text in report"),
        ([], "holds no rows"),
        ([{"id": "a", "comment": "x"}], "no column report or text or reference"),
    ],
)
def test_a_table_without_reports_is_refused_and_nothing_is_written(tmp_path, rows, message):
    table = write(tmp_path / "t.jsonl", rows)
    with pytest.raises(InvalidTable, match=message):
        perturb(table, tmp_path / "out")
    assert not (tmp_path / "out").exists() or contents(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"kinds": ["change-colour"]},
            UnknownName,
            "'change-colour'; did you mean change-location",
        ),
        ({"per_report": 0}, InvalidSetting, "per_report is a whole number, at least 1, not 0"),
    ],
)
def test_wrong_settings_are_refused_before_the_table_is_read(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        perturb(tmp_path / "absent.jsonl", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_failure_on_the_way_leaves_the_results_of_before(made, tmp_path):
    table = write(tmp_path / "t.jsonl")
    out = perturb(table, tmp_path / "out", seed=1).folder
    before = contents(out)

    def stop(done: int, bad: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perturb(table, out, seed=2, overwrite=True, on_progress=stop)
    assert contents(out) == before
    with pytest.raises(InvalidSetting, match="seed: 1 there, 2 now"):
        perturb(table, out, seed=2)
    assert contents(out) == before
    assert perturb(table, out, seed=2, overwrite=True).reports == len(TABLE)
    assert contents(out) != before


def test_the_same_again_changes_nothing_and_says_so(made):
    before = contents(made.folder)
    table = made.folder.parent / "table.jsonl"
    again = perturb(table, made.folder, seed=3, per_report=2)
    assert again.unchanged
    assert (again.reports, again.counts, again.standard_normal) == (
        made.reports,
        made.counts,
        made.standard_normal,
    )
    assert contents(made.folder) == before


def test_a_stopped_run_goes_on_behind_its_last_chunk_to_the_same_bytes(made, tmp_path, monkeypatch):
    """Also where it was stopped behind the rows that the standard normal report is made of."""
    table = made.folder.parent / "table.jsonl"
    whole = contents(made.folder)
    monkeypatch.setattr(dataset, "_ROWS_IN_CHUNK", 3)
    for stop_at in (1, 4, 7, 8):
        out = tmp_path / str(stop_at)
        told: list[tuple[int, int]] = []

        def stop(done: int, bad: int, stop_at: int = stop_at) -> None:
            if done == stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            perturb(table, out, seed=3, per_report=2, on_progress=stop)
        assert not (out / RUN_FILE).exists()
        went_on = perturb(
            table, out, seed=3, per_report=2, on_progress=lambda *at, told=told: told.append(at)
        )
        seen = [done for done, _ in told]
        assert went_on.resumed_from == seen[0] == (stop_at - 1) // 3 * 3
        assert seen[1:] == list(range(seen[0] + 1, 9))
        assert contents(out) == whole


def test_bad_rows_alone_in_the_first_chunks_leave_the_others_their_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "_ROWS_IN_CHUNK", 2)
    rows = [{"id": f"x{k}", "report": ""} for k in range(5)]
    made = perturb(write(tmp_path / "t.jsonl", [*rows, TABLE[0]]), tmp_path / "out")
    assert (made.reports, len(made.bad_rows)) == (1, 5)
    with pytest.raises(InvalidTable, match="holds no report; row 1: no text in report"):
        perturb(write(tmp_path / "u.jsonl", rows), tmp_path / "none")
    assert contents(tmp_path / "none") == {}


def test_progress_counts_rows_and_bad_rows(tmp_path):
    rows = [TABLE[0], {"id": "x", "report": ""}, TABLE[1]]
    told: list[tuple[int, int]] = []
    perturb(
        write(tmp_path / "t.jsonl", rows),
        tmp_path / "out",
        on_progress=lambda done, bad: told.append((done, bad)),
    )
    assert told == [(0, 0), (1, 0), (2, 1), (3, 1)]
