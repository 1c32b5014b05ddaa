"""Values of metrics that were computed elsewhere, beside those computed here."""

import json
import sys

import pyarrow.parquet as pq
import pytest

from vlscore.errors import InvalidSetting, InvalidTable, MissingDependency
from vlscore.evaluation import compare
from vlscore.metrics import Scorer

QUICK = {"resamples": 50, "permutations": 99}
GREEN = {"ours": [0.9, 0.8, 0.7, 0.9], "theirs": [0.1, 0.3, 0.2, None]}


@pytest.fixture
def tables(tmp_path):
    paths = []
    for name in GREEN:
        rows = [
            {"id": f"s{k}", "reference": f"Edema {k}.", "candidate": f"{name} edema {k}."}
            for k in range(4)
        ]
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


def write(tmp_path, rows, header="system,id,green,radcliq-v1"):
    path = tmp_path / "elsewhere.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def values(tmp_path):
    rows = [
        f"{system},s{k},{'' if value is None else value},{k}"
        for system, column in GREEN.items()
        for k, value in enumerate(column)
    ]
    return write(tmp_path, [*rows, "other,s0,1,1"])


def test_they_stand_beside_the_metrics_computed_here(tables, values, tmp_path):
    run = compare(tables, tmp_path / "o", Scorer(metrics="rouge-l"), values=values, **QUICK)
    measured = {each["name"]: each for each in run.content["measured"]}
    assert list(measured) == ["rouge-l", "green", "radcliq-v1"]
    assert (measured["green"]["count"], measured["rouge-l"]["count"]) == (3, 4)
    assert measured["green"]["values"]["ours"]["estimate"] == pytest.approx(0.8)
    assert not measured["radcliq-v1"]["higher_is_better"]
    (test,) = [each for each in run.content["tested"] if each["name"] == "green"]
    assert test["difference"]["estimate"] == pytest.approx(0.6)
    assert run.content["signatures"]["green"].startswith("values|file:elsewhere.csv|sha256:")
    assert "1 row belongs to no system and study compared" in " ".join(run.notes)
    assert "elsewhere.csv" in (tmp_path / "o" / "tables.md").read_text()
    again = compare(tables, tmp_path / "o", Scorer(metrics="rouge-l"), values=values, **QUICK)
    assert again.unchanged
    lower = compare(
        tables,
        tmp_path / "l",
        Scorer(metrics="rouge-l"),
        values=values,
        lower_is_better=["green"],
        **QUICK,
    )
    assert not next(e for e in lower.content["measured"] if e["name"] == "green")[
        "higher_is_better"
    ]


def test_baselines_and_systems_without_values_spoil_nothing(tables, values, tmp_path):
    rows = values.read_text().splitlines()
    values.write_text("\n".join(row for row in rows if not row.startswith("theirs")) + "\n")
    scorer = Scorer(metrics="rouge-l")
    run = compare(tables, tmp_path / "o", scorer, values=values, baselines=True, **QUICK)
    green = next(each for each in run.content["measured"] if each["name"] == "green")
    assert green["count"] == 4
    assert green["values"]["theirs"]["estimate"] is None
    assert green["values"]["baseline:constant"]["estimate"] is None
    assert not [each for each in run.content["tested"] if each["name"] == "green"]
    assert len([each for each in run.content["tested"] if each["name"] == "rouge-l"]) > 1


def test_given_values_stand_beside_the_computed_ones(tables, values, tmp_path):
    scorer = Scorer(metrics="rouge-l")
    run = compare(tables, tmp_path / "o", scorer, values=values, baselines=True, **QUICK)
    written = pq.read_table(run.folder / "values.parquet")
    rows = {
        name: [row["green"] for row in written.to_pylist() if row["system"] == name]
        for name in (*GREEN, "baseline:constant")
    }
    assert rows == {**GREEN, "baseline:constant": [None] * 4}
    assert None not in written["rouge-l"].to_pylist()
    signature = written.schema.metadata[b"vlscore.signature.green"].decode()
    assert signature == run.content["signatures"]["green"]


@pytest.mark.parametrize(
    ("header", "rows", "error", "message"),
    [
        ("system,green", ["ours,1"], InvalidTable, "no column id"),
        ("system,id", ["ours,s0"], InvalidTable, "has no column of values"),
        ("system,id,green", ["x,s0,1"], InvalidTable, "none of its rows is of a system"),
        ("system,id,green", ["ours,s0,1", "ours,s0,2"], InvalidTable, "row 2: .*earlier row"),
        ("system,id,rouge-l", ["ours,s0,1"], InvalidSetting, "rename the column"),
    ],
)
def test_what_cannot_be_used_is_told(tables, tmp_path, header, rows, error, message):
    values = write(tmp_path, rows, header)
    with pytest.raises(error, match=message):
        compare(tables, tmp_path / "o", Scorer(metrics="rouge-l"), values=values, **QUICK)


def test_a_cell_that_is_no_number_costs_its_own_value_and_a_guessed_direction_is_noted(
    tables, tmp_path
):
    rows = [f"{system},s{k},{k},{k}" for system in GREEN for k in range(4)]
    rows[1] = "ours,s1,good,inf"
    values = write(tmp_path, rows)
    run = compare(tables, tmp_path / "o", Scorer(metrics="rouge-l"), values=values, **QUICK)
    counts = {each["name"]: each["count"] for each in run.content["measured"]}
    assert counts == {"rouge-l": 4, "green": 3, "radcliq-v1": 3}
    notes = " ".join(run.notes)
    assert "2 cells are not numbers, the first in row 2: column \"green\" holds 'good'" in notes
    assert "are assumed to be better" not in notes
    other = write(tmp_path, rows, "system,id,mine,radcliq-v1")
    run = compare(tables, tmp_path / "p", Scorer(metrics="rouge-l"), values=other, **QUICK)
    assert "larger values of mine are assumed to be better" in " ".join(run.notes)


def test_directions_need_a_table(tables, tmp_path):
    with pytest.raises(InvalidSetting, match="give it"):
        compare(tables, tmp_path / "o", Scorer(metrics="rouge-l"), lower_is_better=["x"], **QUICK)


def test_figures_and_frames(tables, values, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    scorer = Scorer(metrics="rouge-l")
    for suffix, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        run = compare(tables, tmp_path / suffix, scorer, values=values, figure=suffix, **QUICK)
        drawn = (tmp_path / suffix / f"systems.{suffix}").read_bytes()
        assert drawn.startswith(begins)
    frame = run.to_pandas()
    assert frame[["system", "metric"]].iloc[0].tolist() == ["ours", "rouge-l"]
    assert set(frame.columns) >= {"value", "value.low", "value.high", "n"}
    assert frame["n"].tolist() == [4, 4, 3, 3, 4, 4]
    with pytest.raises(InvalidSetting, match="figure must be one of"):
        compare(tables, tmp_path / "x", scorer, figure="gif", **QUICK)


def test_a_figure_without_matplotlib_is_refused_before_anything_is_computed(
    tables, tmp_path, monkeypatch
):
    scorer = Scorer(metrics="rouge-l")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match="pip install matplotlib"):
        compare(tables, tmp_path / "o", scorer, figure="png", **QUICK)
    assert not (tmp_path / "o").exists()
    compare(tables, tmp_path / "o", scorer, **QUICK)
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    # Installed meanwhile, or asked for later: drawn from the finished numbers.
    before = (tmp_path / "o" / "comparison.json").read_bytes()
    for suffix in ("png", "svg"):
        assert compare(tables, tmp_path / "o", scorer, figure=suffix, **QUICK).unchanged
    compare(tables, tmp_path / "fresh", scorer, figure="svg", **QUICK)
    drawn = (tmp_path / "o" / "systems.svg").read_bytes()
    assert drawn == (tmp_path / "fresh" / "systems.svg").read_bytes()
    assert (tmp_path / "o" / "systems.png").is_file()
    assert (tmp_path / "o" / "comparison.json").read_bytes() == before
    # Figures of other numbers do not stay beside new ones.
    compare(tables, tmp_path / "o", scorer, overwrite=True, **(QUICK | {"seed": 1}))
    assert not (tmp_path / "o" / "systems.svg").exists()
