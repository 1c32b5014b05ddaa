"""Small tables that unpack to gigabytes: they end at a stated limit."""

import gzip
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlscore.data import open_studies, read_rows
from vlscore.errors import Failure


def packed(path, head, tail):
    """A packed line of 24 MB in 24 kB."""
    with gzip.open(path, "wb", 9) as stream:
        stream.write(head)
        for _ in range(24):
            stream.write(b"a" * (1 << 20))
        stream.write(tail)
    return path


def peak_of(work):
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_line_that_is_too_long_costs_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("vlscore.data.rows._LONGEST_LINE", 1 << 20)
    after = b'", "candidate": "x"}\n{"id": "2", "reference": "Clear.", "candidate": "x"}\n'
    path = packed(tmp_path / "t.jsonl.gz", b'{"id": "1", "reference": "', after)
    found, peak = peak_of(lambda: list(read_rows(path)))
    assert found[0] == (1, f"the line has more than {1 << 20} characters")
    assert found[1][1]["id"] == "2"
    assert peak < 12 << 20


def test_a_cell_that_is_too_long_ends_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("vlscore.data.rows._LONGEST_LINE", 18 << 20)
    path = packed(tmp_path / "t.csv.gz", b'id,reference,candidate\n1,"', b'",x\n')
    found, peak = peak_of(lambda: list(read_rows(path)))
    assert "not valid csv (field larger than field limit" in found[0][1]
    assert peak < 150 << 20


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_text_in_many_rows_of_a_parquet_file_is_read_once(dictionary, tmp_path):
    """600 rows that share one text of 4 MB: 2.4 GB if each had its own."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 600, pa.int32()), ["a" * (4 << 20)])
    column = column if dictionary else pa.array(["a" * 1000] * 600)
    table = pa.table({"id": [str(k) for k in range(600)], "reference": column})
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd")
    path = tmp_path / "t.parquet"
    read, peak = peak_of(lambda: [record["reference"] for _, record in read_rows(path)])
    assert read == table["reference"].to_pylist()
    assert len({id(each) for each in read}) == 1
    assert peak < 32 << 20


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_report_of_a_million_characters_is_refused_with_the_limit(format, tmp_path):
    texts = ["a" * (1 << 20), "a" * ((1 << 20) + 1)]
    table = pa.table({"id": ["1", "2"], "reference": texts})
    path = tmp_path / f"t.{format}"
    if format == "parquet":
        pq.write_table(table, path)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    good, bad = open_studies(path, needs={"reference"})
    assert good.reference == texts[0]
    assert isinstance(bad, Failure)
    assert "1048577 characters; a report has at most 1048576" in bad.reason
