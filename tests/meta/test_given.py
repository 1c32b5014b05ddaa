"""Values of metrics that were computed elsewhere, in the benchmark of sensitivity."""

import csv

import pytest

from tests.conftest import REPOSITORY
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import read_pairs, run_sensitivity
from vlscore.evaluation.sensitivities.pair_values import read_pair_values

PERTURBATIONS = REPOSITORY / "perturbations" / "phantom"
HEADER = "study_id,kind,mine.original,mine.perturbed"


def write(tmp_path, lines):
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_values_that_the_command_wrote_come_in_as_they_are(tmp_path):
    """The layout is that of its own values.csv: the numbers of the tables must be equal."""
    quick = {"resamples": 20, "metrics": ["rouge-l"]}
    run = run_sensitivity(PERTURBATIONS, tmp_path / "first", **quick)
    with (tmp_path / "first" / "values.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    head = [name.replace("rouge-l", "mine") for name in rows[0]]
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([head, *rows[1:]])
    again = run_sensitivity(PERTURBATIONS, tmp_path / "second", values=path, **quick)
    computed, given = again.content["metrics"]
    assert (computed["name"], given["name"]) == ("rouge-l", "mine")
    assert given["kinds"] == computed["kinds"]
    assert run.content["metrics"][0]["kinds"] == computed["kinds"]
    assert given["signature"].startswith("mine|file:mine.csv|sha256:")
    turned = read_pair_values(path, read_pairs(PERTURBATIONS), lower_is_better=["mine"])
    assert (turned[0].drops <= 0).all()


def test_a_frame_of_kinds(tmp_path):
    pytest.importorskip("pandas")
    run = run_sensitivity(PERTURBATIONS, tmp_path / "o", metrics=["rouge-l"], resamples=20)
    frame = run.to_pandas()
    assert set(frame.columns) >= {"metric", "kind", "drop", "drop.low", "drop.high", "pairs"}
    assert len(frame) == len(run.content["metrics"][0]["kinds"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["study_id,mine"], "needs the columns study_id, kind"),
        ([HEADER, "nobody,paraphrase,1,1"], "row 1: the perturbations have 0 changes"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, lines, message):
    with pytest.raises(InvalidTable, match=message):
        read_pair_values(write(tmp_path, lines), read_pairs(PERTURBATIONS))


def test_slips(tmp_path):
    pairs = read_pairs(PERTURBATIONS)
    first = f"{pairs[0].study_id},{pairs[0].kind}"
    path = write(tmp_path, [HEADER, f"{first},1,much"])
    with pytest.raises(InvalidTable, match=r"row 1, mine\.perturbed: 'much' is no number"):
        read_pair_values(path, pairs)
    path = write(tmp_path, [HEADER, f"{first},1,"])
    with pytest.raises(InvalidSetting, match="no metric other; found: mine"):
        read_pair_values(path, pairs, lower_is_better=["other"])
    (values,) = read_pair_values(path, pairs)
    assert "has no value" in str(values.failures[0])
    with pytest.raises(InvalidSetting, match="give it"):
        run_sensitivity(
            PERTURBATIONS, tmp_path / "o", metrics=["rouge-l"], lower_is_better=["mine"]
        )
