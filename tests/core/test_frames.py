"""Frames of results: flat columns, one row a record, texts as they were."""

import csv
import json

import pandas

from vlscore.core import cells, frame, read_frame
from vlscore.stats import Interval

ROWS = [
    {"id": "007", "text": "=1+1", "bleu-1": 0.5},
    {"id": "NA", "text": "- Edema.", "bleu-1": None},
]


def test_intervals_become_columns():
    made = frame([{"name": "a", "tau": Interval(0.5, 0.25, 0.75)}])
    assert made.to_dict("records") == [{"name": "a", "tau": 0.5, "tau.low": 0.25, "tau.high": 0.75}]


def test_files_of_every_format_give_the_same_frame(tmp_path):
    with (tmp_path / "x.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(ROWS[0])
        writer.writerows(cells(row.values()) for row in ROWS)
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pandas.DataFrame(ROWS).to_parquet(tmp_path / "x.parquet")
    signatures = {"bleu-1": "bleu-1|v:1"}
    frames = [
        read_frame(tmp_path / f"x{suffix}", texts=["id", "absent"], signatures=signatures)
        for suffix in (".csv", ".jsonl", ".parquet")
    ]
    for made in frames:
        assert made["id"].tolist() == ["007", "NA"]
        assert made["text"].tolist() == ["=1+1", "- Edema."]
        assert made["bleu-1"].isna().tolist() == [False, True]
        assert made.attrs == {"signatures": signatures}
