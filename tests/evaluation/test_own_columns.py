"""A user's own columns: carried along, tables of their values, intervals over patients."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import command  # noqa: F401
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import OwnColumns, evaluate
from vlscore.metrics import Scorer, compute
from vlscore.stats import (
    bootstrap_mean,
    bootstrap_sums,
    mean_of_sums,
    mean_statistics,
    sums_by_group,
)

REFERENCES = [f"There is an effusion of size {k % 5}. No edema." for k in range(30)]
CANDIDATES = [text if k % 3 else "The lungs are clear." for k, text in enumerate(REFERENCES)]
PATIENTS = [f"00{k // 6}" for k in range(30)]
VIEWS = ["AP" if k % 3 else "PA" for k in range(30)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "studies.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "reference", "candidate", "patient", "projection", "empty"])
        for k, row in enumerate(zip(REFERENCES, CANDIDATES, PATIENTS, VIEWS, strict=True)):
            writer.writerow([f"s{k}", *row, ""])
        writer.writerow(["s0", "double", "double", "9", "PA", ""])
    return path


def scorer(names="rouge-l,bleu-2"):
    return Scorer(metrics=names, cache=False)


OWN = OwnColumns(keep=("projection", "empty"), by=("projection",), patient="patient")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_columns_stand_in_the_scores_whatever_is_added_later(table, tmp_path, format):
    out = tmp_path / "out"
    evaluate(table, out, scorer("rouge-l"), own=OWN, format=format)
    evaluate(table, out, scorer(), format=format)
    evaluate(table, tmp_path / "at-once", scorer(), own=OWN, format=format)
    for name in ("subgroups.csv", f"scores.{format}", "summary.json"):
        assert (out / name).read_bytes() == (tmp_path / "at-once" / name).read_bytes()
    frame = evaluate(table, out, scorer(), format=format).to_pandas()
    assert list(frame.columns[:5]) == ["row", "id", "projection", "empty", "patient"]
    assert frame["patient"].tolist() == [*PATIENTS, "9"]
    assert frame["empty"].isna().all()


def test_columns_are_added_to_a_finished_run_without_computing_it_again(table, tmp_path):
    out = tmp_path / "out"
    evaluate(table, out, scorer())
    before = pq.read_table(out / "scores.parquet")
    chunks = []
    result = evaluate(table, out, scorer(), own=OWN, on_progress=lambda *now: chunks.append(now))
    assert chunks == []
    after = pq.read_table(out / "scores.parquet")
    assert after.drop_columns(["projection", "empty", "patient"]).equals(before)
    assert "intervals resample the 6 patients of the column patient" in " ".join(result.notes)


def test_intervals_resample_patients(table, tmp_path):
    found = evaluate(table, tmp_path / "out", scorer(), own=OWN).summary.metrics["rouge-l"]
    values = compute("rouge-l", CANDIDATES, REFERENCES)["rouge-l"]
    mean = found.values["rouge-l"].mean
    expected = bootstrap_sums(sums_by_group(mean_statistics(values), PATIENTS), mean_of_sums)
    assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high))
    assert mean.estimate == pytest.approx(values.mean())
    assert found.values["rouge-l"].median.estimate == pytest.approx(np.median(values))
    plain = evaluate(table, tmp_path / "plain", scorer()).summary.metrics["rouge-l"]
    assert plain.values["rouge-l"].mean == bootstrap_mean(values)
    assert plain.values["rouge-l"].mean != mean


def test_every_value_of_a_column_has_its_numbers(table, tmp_path):
    own = OwnColumns(by=("projection",))
    result = evaluate(table, tmp_path / "out", scorer(), own=own)
    values = compute(["rouge-l", "bleu-2"], CANDIDATES, REFERENCES)
    with (tmp_path / "out" / "subgroups.csv").open(encoding="utf-8") as stream:
        rows = {(row["value"], row["metric"]): row for row in csv.DictReader(stream)}
    for view in ("AP", "PA"):
        mine = [k for k, each in enumerate(VIEWS) if each == view]
        for name, column in values.items():
            row = rows[view, name]
            assert float(row["mean"]) == pytest.approx(column[mine].mean())
            assert int(row["n"]) == len(mine)
        expected = bootstrap_mean(values["rouge-l"][mine])
        assert float(rows[view, "rouge-l"]["low"]) == expected.low
    assert "bleu-2 corpus" in {name for _, name in rows}
    assert result.subgroups[0].title == "rouge-l by projection"


def test_columns_that_cannot_be_carried_are_refused(table, tmp_path):
    with pytest.raises(InvalidTable, match="no column sex; found: id, reference"):
        evaluate(table, tmp_path / "out", scorer(), own=OwnColumns(by=("sex",)))
    with pytest.raises(InvalidSetting, match="a column id already"):
        evaluate(table, tmp_path / "out", scorer(), own=OwnColumns(keep=("id",)))


def test_the_command_takes_names_with_commas_and_prints_the_groups(command, table, tmp_path):  # noqa: F811
    done = command(
        *("evaluate", table, "-m", "rouge-l", "-o", tmp_path / "o", "--keep-going"),
        *("--keep", "projection,empty", "--by", "projection", "--patient-column", "patient"),
    )
    assert done.exit_code == 0, done.output
    assert "rouge-l by projection" in done.stdout
    assert "resample the 6 patients" in done.stderr
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["patients"] == 6
