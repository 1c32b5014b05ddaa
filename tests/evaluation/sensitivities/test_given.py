"""Values of metrics that were computed elsewhere, in the benchmark of sensitivity."""

import csv
from dataclasses import replace

import pytest

from tests.conftest import REPOSITORY
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import read_pairs, sensitivity
from vlscore.evaluation.sensitivities.pair_values import read_pair_values
from vlscore.metrics import find_metric

PERTURBATIONS = REPOSITORY / "perturbations" / "phantom"
HEADER = "study_id,kind,mine.original,mine.perturbed"


def write(tmp_path, lines):
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_values_that_the_command_wrote_come_in_as_they_are(tmp_path):
    """The layout is that of its own values.csv: the numbers of the tables must be equal."""
    quick = {"resamples": 20, "metrics": ["rouge-l"]}
    run = sensitivity(PERTURBATIONS, tmp_path / "first", **quick)
    with (tmp_path / "first" / "values.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    head = [name.replace("rouge-l", "mine") for name in rows[0]]
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([head, *rows[1:]])
    again = sensitivity(PERTURBATIONS, tmp_path / "second", values=path, **quick)
    computed, given = again.content["metrics"]
    assert (computed["name"], given["name"]) == ("rouge-l", "mine")
    assert given["kinds"] == computed["kinds"]
    assert run.content["metrics"][0]["kinds"] == computed["kinds"]
    assert given["signature"].startswith("mine|file:mine.csv|sha256:")
    turned, _ = read_pair_values(path, read_pairs(PERTURBATIONS), lower_is_better=["mine"])
    assert (turned[0].drops <= 0).all()


def test_a_frame_of_kinds(tmp_path):
    pytest.importorskip("pandas")
    run = sensitivity(PERTURBATIONS, tmp_path / "o", metrics=["rouge-l"], resamples=20)
    frame = run.to_pandas()
    assert set(frame.columns) >= {"metric", "kind", "drop", "drop.low", "drop.high", "pairs"}
    assert len(frame) == len(run.content["metrics"][0]["kinds"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["study_id,mine"], "needs the columns study_id, kind"),
        ([HEADER, "nobody,paraphrase,1,1"], "none of its rows is of a study"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, lines, message):
    with pytest.raises(InvalidTable, match=message):
        read_pair_values(write(tmp_path, lines), read_pairs(PERTURBATIONS))


def test_slips(tmp_path):
    pairs = read_pairs(PERTURBATIONS)
    first = f"{pairs[0].study_id},{pairs[0].kind}"
    again = [f"{first},1,1"] * (len(pairs) + 1)
    with pytest.raises(InvalidTable, match="and this is one more"):
        read_pair_values(write(tmp_path, [HEADER, *again]), pairs)
    path = write(tmp_path, [HEADER, f"{first},1,"])
    with pytest.raises(InvalidSetting, match="no column other; its metrics are mine"):
        read_pair_values(path, pairs, lower_is_better=["other"])
    (values,), _ = read_pair_values(path, pairs)
    assert "has no value" in str(values.failures[0])
    with pytest.raises(InvalidSetting, match="give it"):
        sensitivity(PERTURBATIONS, tmp_path / "o", metrics=["rouge-l"], lower_is_better=["mine"])


def test_a_metric_with_parameters_comes_in_by_the_name_that_the_command_writes(tmp_path):
    quick = {"resamples": 20}
    run = sensitivity(PERTURBATIONS, tmp_path / "first", metrics=["bleu-4(smoothing=exp)"], **quick)
    path = tmp_path / "first" / "values.csv"
    assert "bleu-4(smoothing=exp).original" in path.read_text().splitlines()[0]
    again = sensitivity(
        PERTURBATIONS, tmp_path / "second", metrics=["rouge-l"], values=path, **quick
    )
    assert again.content["metrics"][1]["name"] == "bleu-4(smoothing=exp)"
    assert again.content["metrics"][1]["kinds"] == run.content["metrics"][0]["kinds"]
    with pytest.raises(InvalidSetting, match="computed and read from"):
        sensitivity(PERTURBATIONS, tmp_path / "third", values=path, metrics="bleu-4(smoothing=exp)")


def test_a_name_with_parameters_has_the_direction_of_its_metric(tmp_path):
    pairs = read_pairs(PERTURBATIONS)
    name = "image-gain-distance(image=2)"
    assert not find_metric(name).higher_is_better
    head = f"study_id,kind,{name}.original,{name}.perturbed"
    path = write(tmp_path, [head, f"{pairs[0].study_id},{pairs[0].kind},1,3"])
    (values,), notes = read_pair_values(path, pairs)
    assert (str(values.metric), values.drops[0]) == (name, 2)
    assert notes == []


def test_cells_rows_and_directions_are_treated_as_by_the_other_commands(tmp_path):
    """A cell costs its value, a row of another study is counted, a guessed direction is noted."""
    pairs = read_pairs(PERTURBATIONS)
    first = f"{pairs[0].study_id},{pairs[0].kind}"
    path = write(tmp_path, [HEADER, f"{first},1,much", "nobody,paraphrase,1,1"])
    (values,), notes = read_pair_values(path, pairs)
    reason = "row 1: column \"mine.perturbed\" holds 'much', not a number"
    assert reason in str(values.failures[0])
    assert values.originals[0] == 1
    assert [note.removeprefix(f"{path}: ") for note in notes[:2]] == [
        "1 row belongs to no study and kind of the perturbations",
        f"1 cell is not a number, the first in {reason}",
    ]
    assert notes[2].endswith("names metrics for which smaller values are better")
    run = sensitivity(PERTURBATIONS, tmp_path / "o", metrics=["rouge-l"], values=path, resamples=20)
    assert set(notes) <= set(run.notes)


def test_an_id_may_be_a_whole_number_with_a_point(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pair = replace(read_pairs(PERTURBATIONS)[0], study_id="12")
    columns = {"study_id": [12.0], "kind": [pair.kind], "m.original": [1.0], "m.perturbed": [0.5]}
    pq.write_table(pa.table(columns), tmp_path / "values.parquet")
    (values,), _ = read_pair_values(tmp_path / "values.parquet", [pair])
    assert values.drops.tolist() == [0.5]
