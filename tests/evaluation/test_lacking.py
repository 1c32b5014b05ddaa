"""A row without a reference, or without an image, has the values of the metrics that do without.

What is right is what each metric gives alone, on the rows that have what it looks at.
"""

import json

import numpy as np
import pytest

from tests.command import run_command
from tests.doubles import HashEncoder
from tests.evaluation.samples import BATCH, make_table
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

METRICS = ["rouge-l", "clipscore", "vlscore", "dale-chall"]
LOOKS_AT = {
    "rouge-l": {"reference"},
    "clipscore": {"image"},
    "vlscore": {"image", "reference"},
    "dale-chall": set(),
}


def table_with_gaps(folder, count=9):
    """Rows 3, 6, ... have no reference, rows 2, 6, ... no image; the last has a wrong one."""
    table, records = make_table(folder, count, ".jsonl")
    for k, record in enumerate(records, start=1):
        if k % 3 == 0:
            record["reference"] = [None, "  "][k // 3 % 2]
        if k % 4 == 2:
            record["image"] = None
    records[-2]["reference"] = 7
    table.write_text("".join(json.dumps(record) + "\n" for record in records))
    lacks = [
        {role for role in ("image", "reference") if not _is_there(record[role])}
        for record in records
    ]
    return table, records, lacks


def _is_there(value):
    return isinstance(value, str) and bool(value.strip())


@pytest.mark.parametrize("batch", [2, BATCH])
def test_each_metric_has_the_rows_that_have_what_it_looks_at(tmp_path, batch):
    table, records, lacks = table_with_gaps(tmp_path)
    scorer = Scorer(HashEncoder(), metrics=METRICS, batch_size=batch)
    result = evaluate(table, tmp_path / "out", scorer)
    rows = result.rows("scores.parquet")
    for metric, needed in LOOKS_AT.items():
        able = [k for k, lacking in enumerate(lacks) if not needed & lacking]
        assert np.flatnonzero(rows[metric].notna()).tolist() == able
        alone = Scorer(HashEncoder(), metrics=metric, batch_size=batch).score(
            [tmp_path / records[k]["image"] for k in able] if "image" in needed else None,
            [records[k]["candidate"] for k in able],
            [records[k]["reference"] for k in able] if "reference" in needed else None,
        )
        np.testing.assert_allclose(rows[metric][able], alone.scores, rtol=1e-6)
        summary = result.frame("summary").set_index("metric")
        assert summary.loc[metric, "n"] == len(able)
    assert {int(each.row) for each in result.failures} == {
        k + 1 for k, lacking in enumerate(lacks) if lacking
    }
    reasons = {each.row: each.reason for each in result.failures}
    assert 'column "reference" is empty' in reasons[3]
    assert 'column "image" names no image' in reasons[2]
    assert "not a text" in reasons[8]


def test_a_section_that_a_reference_lacks_costs_the_reference_alone(tmp_path):
    table = tmp_path / "t.jsonl"
    rows = [("FINDINGS: Clear.", "FINDINGS: Clear."), ("Clear.", "FINDINGS: Edema.")]
    table.write_text(
        "".join(
            json.dumps({"id": k, "reference": r, "candidate": c}) + "\n"
            for k, (r, c) in enumerate(rows)
        )
    )
    scorer = Scorer(metrics="rouge-l,dale-chall", text_policy="findings")
    found = evaluate(table, tmp_path / "out", scorer).rows("scores.parquet")
    assert found["rouge-l"].notna().tolist() == [True, False]
    assert found["dale-chall"].notna().all()


def test_rows_that_lack_alone_what_every_metric_looks_at_fail_as_before(tmp_path):
    table, _, lacks = table_with_gaps(tmp_path)
    result = evaluate(table, tmp_path / "out", Scorer(metrics="rouge-l,bleu-1"))
    bad = [k + 1 for k, lacking in enumerate(lacks) if "reference" in lacking]
    assert [each.row for each in result.failures] == bad


def test_the_newest_hundred_without_references_do_not_end_a_run(tmp_path):
    table = tmp_path / "t.csv"
    lines = [f"s{k},{'' if k < 150 else 'Clear lungs.'},No edema.\n" for k in range(160)]
    table.write_text("id,reference,candidate\n" + "".join(lines))
    done = run_command("evaluate", table, "-m", "rouge-l,dale-chall", "-o", tmp_path / "out")
    assert done.exit_code == 1, done.output
    assert "160" in done.stdout
    # A table without the column is a slip, not a table of rows that lack it.
    table.write_text("id,candidate\na,Clear.\n")
    done = run_command("evaluate", table, "-m", "rouge-l,dale-chall", "-o", tmp_path / "o2")
    assert done.exit_code == 2
    assert "no column reference" in done.stderr
