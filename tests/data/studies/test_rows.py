"""The formats of tables, each with its own ways to be broken."""

import gzip
import json
import re
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlscore.data import columns_of, count_rows, open_studies, read_rows
from vlscore.errors import InvalidTable

RECORDS = [
    {"id": "a", "text": "No effusion, no pneumothorax."},
    {"id": "b", "text": 'She said "clear".\nTwo lines; 2.5 cm.'},
    {"id": "ü", "text": "Überblähung — 气胸"},
]


def as_jsonl(records: list[dict[str, str]], end: str = "\n") -> bytes:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return "".join(line + end for line in lines).encode()


def as_csv(records: list[dict[str, str]], end: str = "\n") -> bytes:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    rows = [["id", "text"], *([record["id"], record["text"]] for record in records)]
    return "".join(",".join(map(cell, row)) + end for row in rows).encode()


WRITERS = {".jsonl": as_jsonl, ".csv": as_csv}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_line_ends_byte_order_mark_and_gzip(
    tmp_path: Path, suffix: str, end: str, mark: bytes, packed: str
) -> None:
    path = write(tmp_path / f"t{suffix}{packed}", mark + WRITERS[suffix](RECORDS, end))
    assert list(read_rows(path)) == list(enumerate(RECORDS, start=1))
    assert count_rows(path) == (None if packed else 3)


def test_parquet_of_any_text_type(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {
        "id": pa.array([record["id"] for record in RECORDS]).dictionary_encode(),
        "text": pa.array([record["text"] for record in RECORDS], pa.large_string()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    assert list(read_rows(path)) == list(enumerate(RECORDS, start=1))
    assert count_rows(path) == 3


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
             "text": st.text(st.characters(exclude_categories=["Cs"]))}
        ),
        min_size=1, max_size=5,
    ),
    st.sampled_from([".jsonl", ".csv"]),
)  # fmt: skip
def test_any_text_survives(tmp_path: Path, records: list[dict[str, str]], suffix: str) -> None:
    path = write(tmp_path / f"t{suffix}", WRITERS[suffix](records))
    assert [record for _, record in read_rows(path)] == records


def test_bad_jsonl_lines_are_named_by_line_and_spoil_no_other(tmp_path: Path) -> None:
    good = b'{"id": "x"}\n'
    path = write(
        tmp_path / "t.jsonl",
        good + b"\n" + b"{broken\n" + b'{"id": "\xff"}\n' + b"[1]\n" + b"NaN\n" + good,
    )
    rows = dict(read_rows(path))
    assert list(rows) == [1, 3, 4, 5, 6, 7]
    assert rows[1] == rows[7] == {"id": "x"}
    assert "not valid json" in rows[3]
    assert "UTF-8" in rows[4]
    assert "a list, not an object" in rows[5]
    assert "a number, not an object" in rows[6]


def test_bad_csv_rows_are_named_by_row_and_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", b'id,text\na,"two\nlines"\n\nb\nc,\xff\nd,fine\ne,"open\nf,x\n'
    )
    rows = dict(read_rows(path))
    assert rows[1] == {"id": "a", "text": "two\nlines"}
    assert rows[2] == "the row (line 5) has 1 fields, the header 2"
    assert "UTF-8" in rows[3]
    assert rows[4] == {"id": "d", "text": "fine"}
    assert len(rows) == 5


def test_parquet_text_that_is_no_utf8_spoils_its_row_only(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"\xff\xfe", b"also fine"])
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:])
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": text}), path)
    rows = dict(read_rows(path))
    assert (rows[1], rows[3]) == ({"id": "fine"}, {"id": "also fine"})
    assert rows[2] == 'column "id" cannot be read: string (UnicodeDecodeError)'


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.xlsx", b"PK", "is a workbook; save the sheet as"),
        ("t.csv", b"", "is empty"),
        ("t.csv", "id,text\n".encode("utf-16"), "UTF-8"),
        ("t.csv", b"id,text,id\n", 'column "id" occurs twice'),
        ("t.parquet", b"PAR1 and then nothing", "no parquet file"),
        ("t.jsonl.gz", None, "cannot be read on"),
    ],
)
def test_tables_that_cannot_be_read_at_all(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(as_jsonl(RECORDS * 50))[:-20] if content is None else content)
    with pytest.raises(InvalidTable, match=rf"{name}.*{reason}"):
        list(read_rows(path))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, suffix: str) -> None:
    def peak(rows: int) -> int:
        records = [{"id": str(row), "text": "No effusion. " * 20} for row in range(rows)]
        path = write(tmp_path / f"t{suffix}", WRITERS[suffix](records))
        del records
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_rows(path)) == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4000) < peak(400) + 100_000


@pytest.mark.parametrize(
    ("name", "delimiter"), [("t.csv", ";"), ("t.csv", "\t"), ("t.tsv", "\t"), ("t.csv", ",")]
)
def test_other_delimiters(tmp_path: Path, name: str, delimiter: str) -> None:
    content = as_csv(RECORDS).decode().replace('","', f'"{delimiter}"')
    path = write(tmp_path / name, content.encode())
    assert columns_of(path) == ["id", "text"]
    assert list(read_rows(path)) == list(enumerate(RECORDS, start=1))


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b'{"a": 1}', "holds an object; .* a list of objects"), (b"[1,", "is not valid json")],
)
def test_json_that_is_no_list_of_objects(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidTable, match=reason):
        list(read_rows(write(tmp_path / "t.json", content)))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_only_the_columns_asked_for_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(RECORDS), path)
    else:
        write(path, WRITERS[suffix](RECORDS))
    expected = [(k, {"id": record["id"]}) for k, record in enumerate(RECORDS, start=1)]
    assert list(read_rows(path, {"id", "absent"})) == expected
    assert list(read_rows(path, ())) == [(1, {}), (2, {}), (3, {})]


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;", "sep=|", "sep=\t", "sep=,"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_a_first_line_that_names_the_separator_is_no_header(
    tmp_path: Path, line: str, end: str, name: str
) -> None:
    sign = line.strip('"')[-1]
    lines = [line, sign.join(["id", "report"]), sign.join(["a", '"x, y; z"']), "broken"]
    path = write(tmp_path / name, ("\ufeff" + end.join(lines)).encode())
    assert columns_of(path) == ["id", "report"]
    rows = dict(read_rows(path))
    assert rows[1] == {"id": "a", "report": "x, y; z"}
    assert "(line 4)" in rows[2]


def test_a_packed_table_is_read_under_any_name(tmp_path: Path) -> None:
    content = b"id,report\na,x\n"
    (tmp_path / "t.csv").write_bytes(gzip.compress(content))
    (tmp_path / "u.csv.gz").write_bytes(content)
    for name in ("t.csv", "u.csv.gz"):
        assert list(read_rows(tmp_path / name)) == [(1, {"id": "a", "report": "x"})]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", b"PK\x03\x04" + b"\0" * 50, 'save it as "CSV UTF-8'),
        ("t.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 'save it as "CSV UTF-8'),
        ("t.tsv", "id\treport\n".encode("utf-16"), "text in UTF-16"),
        ("t.jsonl", b"PAR1" + b"\0" * 50, "give it the suffix .parquet"),
        ("t.csv", b'{"id": "a", "report": "x"}\n', "give it the suffix .jsonl"),
        ("t.csv", b'\n { "id" : "a"}\n', "give it the suffix .jsonl"),
        ("t.csv", b'[{"id": "a"}]', "give it the suffix .json"),
        ("t.jsonl", b'[\n  {"id": "a"}\n]', "give it the suffix .json"),
        ("t.json", b'{"id": "a"}\n{"id": "b"}\n', "one object a line is .jsonl"),
        ("t.csv", b"<!DOCTYPE html><html></html>", "HTML or XML page"),
        ("t.csv", b"BZh91AY", "packed by bzip2"),
        ("t.xlsx", b"PK", 'save the sheet as "CSV UTF-8'),
        ("t.ods", b"PK", 'save the sheet as "CSV UTF-8'),
        ("t.xls", b"PK", 'save the sheet as "CSV UTF-8'),
    ],
)
def test_a_file_that_is_something_else_says_what(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidTable, match=reason):
        list(read_rows(tmp_path / name))
    with pytest.raises(InvalidTable, match=reason):
        columns_of(tmp_path / name)


def test_messages_hold_no_names_of_classes(tmp_path: Path) -> None:
    rows = [7, 7.5, True, None, "text", [1], {"id": {"a": 1}}, {"id": 1, "reference": {"a": 1}}]
    rows += [{"id": 2, "reference": value} for value in (7, True, [1], [{"a": 1}])]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [row.reason for row in open_studies(path, needs={"reference"})]
    assert len(found) == len(rows)
    for reason in found:
        assert not re.search(r"_Json|\ba (int|float|bool|str|dict|NoneType)\b|\ba object", reason)


@pytest.mark.parametrize("text", ["['Clear.']", '["Clear."]', "['Clear.', 'No edema.']", "[]"])
def test_a_list_that_is_written_as_a_text_is_counted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": 1, "reference": "[Clear.]", "candidate": text}) + "\n")
    (study,) = open_studies(path, needs={"reference", "candidate"})
    assert study.suspicious == ("candidate",)
    assert study.candidate == text
