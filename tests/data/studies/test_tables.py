"""Rows as studies and reports."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlscore.data import BadRow, Study, open_reports, open_studies

GOOD = {"id": "s1", "image": "a.png", "reference": "No effusion.", "candidate": "Clear."}


def jsonl(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def studies(path: Path, **options: Any) -> list[Study]:
    found = list(open_studies(path, **options))
    assert all(isinstance(row, Study) for row in found), found
    return found


def test_a_study(tmp_path: Path) -> None:
    (study,) = studies(jsonl(tmp_path / "t.jsonl", GOOD))
    assert study == Study(
        "s1", (tmp_path / "a.png",), reference="No effusion.", candidate="Clear.", row=1
    )


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
    path = jsonl(tmp_path / "t.jsonl", GOOD | {"image": cell})
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
    path = jsonl(tmp_path / "t.jsonl", GOOD | {"image": "a.png;b.png", "view": view})
    assert studies(path)[0].views == views


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"image": ""}, '"image" names no image'),
        ({"image": None}, '"image" names no image'),
        ({"image": " ; "}, '"image" names no image'),
        ({"image": 7}, '"image" must hold a text or a list'),
        ({"image": [1, 2]}, '"image" must hold a text or a list'),
        ({"image": "[a.png"}, '"image" begins like a list'),
        ({"image": "a\0.png"}, "NUL"),
        ({"reference": ""}, '"reference" is empty'),
        ({"reference": "  \n"}, '"reference" is empty'),
        ({"reference": float("nan")}, '"reference" is empty'),
        ({"candidate": 3.5}, '"candidate" holds a float'),
        ({"candidate": ["x"]}, '"candidate" holds a list'),
        ({"view": "PA;LL;AP"}, "3 views for 1 images"),
    ],
)
def test_one_bad_row_is_named_and_the_others_are_read(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    last_row = GOOD | {"id": "s3"}
    path = jsonl(tmp_path / "t.jsonl", GOOD, GOOD | {"id": "bad"} | change, last_row)
    first, bad, last = open_studies(path)
    assert isinstance(first, Study)
    assert isinstance(last, Study)
    assert last.row == 3
    assert isinstance(bad, BadRow)
    assert (bad.row, bad.id) == (2, "bad")
    assert reason in bad.reason


def test_an_id_may_be_a_number_or_absent_but_no_list(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", GOOD | {"id": 12}, GOOD | {"id": None}, GOOD | {"id": [1]})
    first, second, third = open_studies(path)
    assert (first.id, second.id) == ("12", "2")
    assert isinstance(third, BadRow)
    assert "holds a list" in third.reason


def test_the_three_formats_agree(tmp_path: Path) -> None:
    rows = [
        GOOD | {"id": str(i), "reference": f'Line "{i}",\nnext; line', "view": "PA"}
        for i in range(7)
    ]
    jsonl(tmp_path / "t.jsonl", *rows)
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    expected = studies(tmp_path / "t.jsonl")
    assert studies(tmp_path / "t.csv") == expected
    assert studies(tmp_path / "t.parquet") == expected


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
    (report,) = open_reports(jsonl(tmp_path / "t.jsonl", {"id": "r"} | record))
    assert (report.id, report.text, report.row) == ("r", text, 1)


def test_real_studies_and_reports(shared: Path) -> None:
    found = studies(shared / "data" / "studies.jsonl")
    assert len(found) == 9
    assert all(image.is_file() for study in found for image in study.images)
    assert found[0].views == ("PA",)

    reports = list(open_reports(shared / "data" / "iu_reports.jsonl"))
    assert len(reports) == 2708
    bad = [report for report in reports if isinstance(report, BadRow)]
    assert all(report.reason == "no text in findings or impression" for report in bad)
    assert len(bad) < 30
