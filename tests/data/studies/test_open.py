"""What every command may rely on: one rule for columns, ids, duplicates, missing values."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlscore.data import (
    Report,
    Study,
    TextPolicy,
    is_encodable,
    looks_missing,
    open_reports,
    open_studies,
)
from vlscore.errors import Failure, InvalidReport, InvalidSetting, InvalidTable

GOOD = {"id": "s1", "image": "a.png", "reference": "No effusion.", "candidate": "Clear."}


def write(path: Path, *records: dict[str, Any]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(records), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(records)), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(stream, list(records[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(records)
    return path


SUFFIXES = [".jsonl", ".json", ".csv", ".tsv", ".parquet"]


@pytest.mark.parametrize("opened", [open_studies, open_reports])
@pytest.mark.parametrize(
    ("name", "content"),
    [("t.jsonl", "\n \n"), ("t.json", "[]"), ("t.csv", "id,image,reference,candidate,report\n")],
)
def test_a_table_without_rows_is_refused(
    tmp_path: Path, opened: Any, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidTable, match="holds no rows"):
        opened(tmp_path / name)


def test_a_table_of_nothing_but_broken_lines_is_refused_with_the_first_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.jsonl").write_text("\n{broken\n")
    with pytest.raises(InvalidTable, match=r"row 2: the line is not valid json"):
        open_reports(tmp_path / "t.jsonl")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_what_is_needed_must_be_there(tmp_path: Path, suffix: str) -> None:
    texts = {"id": "s1", "reference": "No effusion.", "candidate": "Clear."}
    path = write(tmp_path / f"t{suffix}", texts)
    with pytest.raises(InvalidTable, match="no column image"):
        open_studies(path)
    (study,) = open_studies(path, needs={"reference", "candidate"}, image_root=tmp_path / "absent")
    assert study == Study("s1", reference="No effusion.", candidate="Clear.", row=1)
    (study,) = open_studies(path, needs={"candidate"})
    assert study == Study("s1", candidate="Clear.", row=1)
    with pytest.raises(InvalidSetting, match="not picture"):
        open_studies(path, needs={"picture"})


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("empty", ["", " \n", None])
def test_an_empty_candidate_is_a_value(tmp_path: Path, suffix: str, empty: Any) -> None:
    path = write(tmp_path / f"t{suffix}", GOOD, GOOD | {"id": "s2", "candidate": empty})
    _, silent = open_studies(path)
    assert isinstance(silent, Study)
    assert silent.candidate == ""


@pytest.mark.parametrize("word", ["None", "nan", " NaN ", "NA", "N/A", "null", "<NA>"])
def test_words_for_missing_values_are_kept_and_told(tmp_path: Path, word: str) -> None:
    assert looks_missing(word)
    path = write(tmp_path / "t.csv", GOOD | {"candidate": word, "reference": word})
    (study,) = open_studies(path)
    assert isinstance(study, Study)
    assert (study.candidate, study.reference) == (word, word)
    assert study.suspicious == ("reference", "candidate")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_second_row_of_an_id_is_a_bad_row(tmp_path: Path, suffix: str) -> None:
    rows = [GOOD | {"id": f"s{k}", "report": "Clear."} for k in (1, 2, 1, 3, 2)]
    path = write(tmp_path / f"t{suffix}", *rows)
    for table in (open_studies(path), open_reports(path)):
        found = list(table)
        assert [isinstance(row, Failure) for row in found] == [False, False, True, False, True]
        assert found[2].reason == "id 's1' is already in row 1; ids must be unique"
        assert found[4].reason == "id 's2' is already in row 2; ids must be unique"
    assert not any(isinstance(row, Failure) for row in open_studies(path, unique=False))
    assert not any(isinstance(row, Failure) for row in open_reports(path, unique=False))


def test_a_table_without_ids_says_so(tmp_path: Path) -> None:
    nameless = {"study_id": "x"} | {name: GOOD[name] for name in GOOD if name != "id"}
    path = write(tmp_path / "t.csv", nameless, nameless)
    table = open_studies(path)
    assert [row.id for row in table] == ["1", "2"]
    assert table.id_column not in table.found
    (note,) = table.notes
    assert 'no column "id"' in note
    assert "study_id" in note
    assert note.endswith("Name it with --rename id=NAME (Python: columns=)")


@pytest.mark.parametrize("role", ["id", "view", "image", "reference", "candidate"])
def test_a_column_that_was_named_must_be_there(tmp_path: Path, role: str) -> None:
    path = write(tmp_path / "t.csv", GOOD)
    message = f"no column elsewhere.*--rename {role}=NAME"
    with pytest.raises(InvalidTable, match=message):
        open_studies(path, columns={role: "elsewhere"})
    with pytest.raises(InvalidSetting, match="not picture"):
        open_studies(path, columns={"picture": "image"})


def test_an_image_root_that_is_no_folder_is_refused_before_the_first_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", GOOD)
    for root in (tmp_path / "absent", path):
        with pytest.raises(InvalidSetting, match="no such folder"):
            open_studies(path, image_root=root)


def test_a_folder_stands_for_the_images_in_it(tmp_path: Path) -> None:
    """MIMIC-CXR's layout: a folder a study, DICOM files with or without a suffix, other files."""
    folder = tmp_path / "files" / "p10" / "s50414267"
    (folder / "deeper").mkdir(parents=True)
    path = write(tmp_path / "t.csv", GOOD | {"image": "files/p10/s50414267"})
    for name in ("index.html", "SHA256SUMS", ".hidden.png"):
        (folder / name).write_bytes(b"no image" * 40)
    (bad,) = open_studies(path)
    assert isinstance(bad, Failure)
    assert 'column "image"' in bad.reason
    assert "no DICOM, PNG, JPEG or TIFF image among its files (3)" in bad.reason
    png, jpeg = b"\x89PNG\r\n\x1a\n rest", b"\xff\xd8\xff rest"
    dicom = bytes(128) + b"DICM rest"
    for name, head in {"IM2": dicom, "c.PNG": png, "a.jpg": jpeg, "1.2.840.5": dicom}.items():
        (folder / name).write_bytes(head)
    (study,) = open_studies(path)
    assert isinstance(study, Study)
    assert study.images == tuple(folder / name for name in ("1.2.840.5", "IM2", "a.jpg", "c.PNG"))
    both = write(tmp_path / "two.csv", GOOD | {"image": "files/p10/s50414267;x.png"})
    (study,) = open_studies(both)
    assert isinstance(study, Study)
    assert study.images == (
        *(folder / n for n in ("1.2.840.5", "IM2", "a.jpg", "c.PNG")),
        tmp_path / "x.png",
    )


@pytest.mark.parametrize("column", ["id", "image", "reference", "candidate", "view", "also"])
def test_half_a_surrogate_pair_spoils_its_row_only(tmp_path: Path, column: str) -> None:
    good = GOOD | {"view": "PA", "also": "x"}
    bad = good | {"id": "s2"} | {column: "a\ud800b.png"}
    path = write(tmp_path / "t.jsonl", good, bad, good | {"id": "s3"})
    first, second, third = open_studies(path, also=("also",))
    assert isinstance(first, Study)
    assert isinstance(third, Study)
    assert isinstance(second, Failure)
    assert (second.row, second.id) == (2, "" if column == "id" else "s2")
    assert f'column "{column}" holds bytes that are not UTF-8' in second.reason
    assert is_encodable(second.reason)


def parquet(path: Path, **columns: Any) -> Path:
    """A good table of two rows with further or other columns."""
    good = {name: pa.array([f"{value}", f"{value}"]) for name, value in GOOD.items()}
    pq.write_table(pa.table(good | {"id": pa.array(["a", "b"])} | columns), path)
    return path


@pytest.mark.parametrize("column", ["id", "image", "reference", "candidate"])
def test_odd_types_in_a_needed_parquet_column_spoil_their_rows(tmp_path: Path, column: str) -> None:
    odd = {
        "far": pa.array([400_000_000, 1], pa.int32()).view(pa.date32()),
        "zone": pa.array([1, 2], pa.timestamp("ns", tz="Nowhere/At_All")),
        "struct": pa.array([{"x": 1}, {"x": 2}]),
        "bytes": pa.array([b"\xff", b"\xfe"]),
    }
    for values in odd.values():
        path = parquet(tmp_path / "t.parquet", **{column: values})
        found = list(open_studies(path))
        assert [type(row) for row in found] == [Failure, Failure]
        assert all(f'column "{column}"' in row.reason for row in found)


def test_a_json_name_that_stands_twice_spoils_the_row_where_it_is_needed(tmp_path: Path) -> None:
    line = json.dumps(GOOD)[:-1]
    (tmp_path / "t.jsonl").write_text(
        line
        + ', "candidate": "Other."}\n'
        + line.replace("s1", "s2")
        + ', "x": 1, "x": 2}\n'
        + line.replace("s1", "s3")
        + "}\n"
    )
    bad, good, _ = open_studies(tmp_path / "t.jsonl")
    assert isinstance(bad, Failure)
    assert bad.reason == 'the line holds "candidate" twice'
    assert isinstance(good, Study)


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        (pa.array([10001.0, 2.5]), ["10001", "2.5"]),
        (pa.array([10001, None]), ["10001", "2"]),
        (pa.array([b"p10", b"p11"]), ["p10", "p11"]),
        (pa.array(["7", "8"]).cast(pa.decimal128(5, 2)), ["7", "8"]),
        (pa.array([" a ", "b"]).dictionary_encode(), ["a", "b"]),
    ],
)
def test_ids_of_other_parquet_types(tmp_path: Path, values: Any, ids: list[str]) -> None:
    assert [row.id for row in open_studies(parquet(tmp_path / "t.parquet", id=values))] == ids


def test_a_data_frame_is_no_path_of_a_table() -> None:
    import pandas

    for read in (open_studies, open_reports):
        with pytest.raises(InvalidTable, match=r"not a DataFrame: write it .*to_parquet.*the path"):
            read(pandas.DataFrame({"id": [1]}))  # type: ignore[arg-type]


def test_without_a_column_of_ids_its_name_is_asked_for_with_the_others(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", {"StudyID": "a", "gt": "Clear.", "candidate": "Clear."})
    with pytest.raises(InvalidTable, match=r"--rename id=NAME,reference=NAME"):
        open_studies(path, needs={"reference", "candidate"})


def test_further_columns_come_as_they_stand(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", GOOD | {"patient": ["p1", "p2"], "other": 1})
    (study,) = open_studies(path, also=("patient",))
    assert isinstance(study, Study)
    assert study.extra == {"patient": ["p1", "p2"]}
    with pytest.raises(InvalidTable, match=r"no column subject; found: .*patient, other$"):
        open_studies(path, also=("subject",))


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("['a.png', 'b.png']", ["a.png", "b.png"]),
        ("[\"a.png\", 'b;c.png',]", ["a.png", "b;c.png"]),
        ("['it\\'s.png']", ["it's.png"]),
        ("['a.png' 'b.png']", None),
        ("[open('a.png')]", None),
        ("['\\x']", None),
        ("['" + "a" * 100_000, None),
    ],
)
def test_lists_as_pandas_writes_them(tmp_path: Path, cell: str, names: list[str] | None) -> None:
    (row,) = open_studies(write(tmp_path / "t.csv", GOOD | {"image": cell}))
    if names is None:
        assert isinstance(row, Failure)
        assert '["a.png", "b.png"]' in row.reason
    else:
        assert isinstance(row, Study)
        assert row.images == tuple(tmp_path / name for name in names)


def test_findings_and_impression_may_be_columns_of_their_own(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "candidate": "x", "findings": "Clear. ", "impression": "Normal."},
        {"id": "b", "candidate": "", "findings": None, "impression": "Edema."},
        {"id": "c", "candidate": "x", "findings": " ", "impression": ""},
    ]
    path = write(tmp_path / "t.jsonl", *rows)
    first, second, third = open_studies(path, needs={"reference", "candidate"})
    assert isinstance(first, Study)
    assert isinstance(second, Study)
    assert (first.reference, second.reference) == ("Clear. Normal.", "Edema.")
    assert isinstance(third, Failure)
    assert third.reason == "no text in findings or impression"
    policy = TextPolicy(reference_section="findings")
    assert first.selected(policy).reference == "Clear."
    with pytest.raises(InvalidReport, match="the reference has no findings"):
        second.selected(policy)
    auto = second.selected(TextPolicy("auto"))
    assert (auto.reference, auto.candidate) == ("Edema.", "")
    report = next(iter(open_reports(path)))
    assert isinstance(report, Report)
    assert report.selected(TextPolicy("impression")).text == "Normal."


def test_a_reference_column_comes_before_columns_of_sections(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", GOOD | {"findings": "Other."})
    (study,) = open_studies(path)
    assert isinstance(study, Study)
    assert (study.reference, study.parts) == ("No effusion.", None)
    (report,) = open_reports(path, text_column="findings")
    assert report == Report("s1", "Other.", 1)


def studies(path: Path, **options: Any) -> list[Study]:
    found = list(open_studies(path, **options))
    assert all(isinstance(row, Study) for row in found), found
    return found


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("a.png", ["a.png"]),
        ("a.png;b.dcm", ["a.png", "b.dcm"]),
        (" a.png | b.dcm ", ["a.png", "b.dcm"]),
        ('["a.png", "b;c.dcm"]', ["a.png", "b;c.dcm"]),
        (["a.png", "b|c.dcm"], ["a.png", "b|c.dcm"]),
        ("/data/a.png", ["/data/a.png"]),
    ],
)
def test_ways_to_name_images(tmp_path: Path, cell: Any, names: list[str]) -> None:
    path = write(tmp_path / "t.jsonl", GOOD | {"image": cell})
    assert studies(path)[0].images == tuple(tmp_path / name for name in names)
    root = tmp_path / "images"
    root.mkdir()
    assert studies(path, image_root=root)[0].images == tuple(root / name for name in names)


@pytest.mark.parametrize(
    ("view", "views"),
    [
        ("PA;LL", ("PA", "LL")),
        ("PA;", ("PA", None)),
        (";LL", (None, "LL")),
        (["PA", None], ("PA", None)),
        ("", None),
        (None, None),
        ("[null, null]", None),
    ],
)
def test_views_may_be_blank(tmp_path: Path, view: Any, views: object) -> None:
    path = write(tmp_path / "t.jsonl", GOOD | {"image": "a.png;b.png", "view": view})
    assert studies(path)[0].views == views


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"image": ""}, '"image" names no image'),
        ({"image": None}, '"image" names no image'),
        ({"image": " ; "}, '"image" names no image'),
        ({"image": 7}, '"image" must hold a text or a list'),
        ({"image": [1, 2]}, '"image" must hold a text or a list'),
        ({"image": {"text": "a.png"}}, '"image" must hold a text or a list'),
        (
            {"image": "https://host/a.png"},
            "is an address (https://), and images are not downloaded",
        ),
        ({"image": ["a.png", "s3://bucket/b.png"]}, "is an address (s3://)"),
        ({"image": "[a.png"}, '"image" begins like a list'),
        ({"image": "a\0.png"}, "NUL"),
        ({"reference": ""}, '"reference" is empty'),
        ({"reference": "  \n"}, '"reference" is empty'),
        ({"reference": float("nan")}, '"reference" is empty'),
        ({"candidate": 3.5}, '"candidate" holds a number'),
        ({"candidate": ["x"]}, '"candidate" holds a list'),
        ({"view": "PA;LL;AP"}, "3 views for 1 images"),
    ],
)
def test_one_bad_row_is_named_and_the_others_are_read(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    last_row = GOOD | {"id": "s3"}
    path = write(tmp_path / "t.jsonl", GOOD, GOOD | {"id": "bad"} | change, last_row)
    first, bad, last = open_studies(path)
    assert isinstance(first, Study)
    assert isinstance(last, Study)
    assert last.row == 3
    assert isinstance(bad, Failure)
    assert (bad.row, bad.id) == (2, "bad")
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"report": "A.", "text": "B."}, "A."),
        ({"text": "B."}, "B."),
        ({"findings": "F.", "impression": "I.", "indication": "Pain."}, "F. I."),
        ({"findings": "F.", "impression": None}, "F."),
        ({"impression": " I. "}, "I."),
    ],
)
def test_which_columns_make_a_report(tmp_path: Path, record: dict[str, Any], text: str) -> None:
    (report,) = open_reports(write(tmp_path / "t.jsonl", {"id": "r"} | record))
    assert (report.id, report.text, report.row) == ("r", text, 1)


def test_real_studies_and_reports(shared: Path) -> None:
    found = studies(shared / "data" / "studies.jsonl")
    assert len(found) == 9
    assert all(image.is_file() for study in found for image in study.images)
    assert found[0].views == ("PA",)

    reports = list(open_reports(shared / "data" / "iu_reports.jsonl"))
    assert len(reports) == 2708
    bad = [report for report in reports if isinstance(report, Failure)]
    assert all(report.reason == "no text in findings or impression" for report in bad)
    assert len(bad) < 30


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/two%20words.png"
    row = {"id": "a", "image": address, "reference": "r", "candidate": "c"}
    (study,) = open_studies(write(tmp_path / "t.jsonl", row))
    assert isinstance(study, Study)
    assert study.images == (tmp_path / "two words.png",)


def test_pictures_of_hugging_face_datasets(tmp_path: Path) -> None:
    """Their parquet files hold {bytes, path} in a column; one of the two may be missing."""
    cells = [{"bytes": b"\x89PNG", "path": "a.png"}, {"bytes": None, "path": "b.png"}]
    columns = {"id": ["a", "b"], "image": cells, "reference": ["r"] * 2, "candidate": ["c"] * 2}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    bad, study = open_studies(tmp_path / "t.parquet")
    assert isinstance(bad, Failure)
    assert isinstance(study, Study)
    assert "holds the pictures themselves, as Hugging Face datasets" in bad.reason
    assert "PNG" not in bad.reason
    assert study.images == (tmp_path / "b.png",)
