"""GREEN's values: from a table of answers, from a stand-in for its model, and from noise."""

import csv
import json
import re

import numpy as np
import pytest

from tests.metrics.contract import check_metric, values_of
from tests.metrics.networks.constructed_green import NONE, READABLE, answer, errors, write_green
from vlscore.errors import InvalidSetting, InvalidTable, MissingDependency
from vlscore.metrics import Plan, compute, find_metric, signature
from vlscore.metrics.library.green import Green
from vlscore.metrics.networks import green_model as judges

CATEGORIES = ["false-finding", "missing-finding", "location", "severity"]


def write_answers(path, rows, names=("candidate", "reference", "answer")):
    if path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([names, *rows])
    else:
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
        path.write_text("\n".join(lines))
    return find_metric("green")(answers=str(path))


@pytest.mark.parametrize("file", ["answers.csv", "answers.jsonl"])
@pytest.mark.parametrize(
    "names",
    [("candidate", "reference", "answer"), ("predictions", "reference", "green_analysis")],
)
def test_answers_given_elsewhere_are_read(tmp_path, file, names):
    rows = [("small  effusion", "effusion", READABLE[2]), ("clear", "nodule", READABLE[5])]
    metric = write_answers(tmp_path / file, rows, names)
    # Rows are found by the words of both reports, in any order, however they are spaced.
    found = compute(metric, ["clear", "small effusion"], ["nodule", "effusion\n"])
    assert found[str(metric)].tolist() == [1.0, 2 / 6]
    assert found[f"{metric}.matched"].tolist() == [12.0, 2.0]
    assert found[f"{metric}.significant"].tolist() == [0.0, 4.0]
    assert found[f"{metric}.insignificant"].tolist() == [4.0, 0.0]
    counts = [found[f"{metric}.significant-{name}"][1] for name in CATEGORIES]
    assert counts == [0, 2, 1, 1]
    assert found[f"{metric}.insignificant-severity"].tolist() == [2.0, 0.0]


def test_rows_without_a_readable_answer_fail_alone(tmp_path):
    rows = [
        ("a", "b", answer(NONE, "many", "3. A; B; C.")),
        ("c", "d", answer("many", NONE, "3. A; B; C.")),
    ]
    metric = write_answers(tmp_path / "answers.csv", rows)
    found = values_of(metric, ["a", "c", "e"], ["b", "d", "f"])
    assert found.columns[0].tolist() == pytest.approx([1.0, np.nan, np.nan], nan_ok=True)
    position = find_metric(metric).columns.index(f"{metric}.insignificant")
    assert np.isnan(found.columns[position][0])
    assert "cannot be read: its section" in str(found.failures[1])
    assert "no answer for these two reports" in str(found.failures[2])
    assert sorted(found.failures) == [1, 2]


@pytest.mark.parametrize(
    ("rows", "names", "said"),
    [
        ([("a", "b", "x")], ("candidate", "reference", "said"), "no column answer or green_anal"),
        ([("a", "b", "x"), (" a", "b ", "y")], ("candidate", "reference", "answer"), "another ans"),
    ],
)
def test_a_table_that_is_none_of_answers_is_refused(tmp_path, rows, names, said):
    metric = write_answers(tmp_path / "answers.csv", rows, names)
    with pytest.raises(InvalidTable, match=said):
        compute(metric, ["a"], ["b"])


def _answers(memo, model, pairs):
    """In place of the model: words of both reports match, the candidate's others are wrong."""
    found = []
    for candidate, reference in pairs:
        words, others = ({*text.split()} for text in (candidate, reference))
        counts = errors(min(len(words - others), 8), 0, 0, 0, 0, 0)
        found.append(answer(counts, NONE, f"{len(words & others)}. words"))
    return found


@pytest.fixture
def stand(monkeypatch):
    monkeypatch.setattr("vlscore.metrics.networks.green_model.known_answers", _answers)
    monkeypatch.setattr(Green, "files", lambda *_: (None,))
    monkeypatch.setattr(Green, "facts", lambda *_: {"model": "stand"})


def test_it_keeps_the_contract_whatever_answers(stand):
    check_metric("green")


def test_values_are_those_of_the_models_answers(stand):
    found = compute("green", ["a b c d", "e"], ["a b c", "f"])
    assert found["green"].tolist() == [0.75, 0.0]
    assert found["green.significant-false-finding"].tolist() == [1.0, 1.0]


def test_noise_has_no_score(tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "LONGEST", 80)
    metric = find_metric("green")(model=str(write_green(tmp_path)))
    values = values_of(metric, ["the left effusion"], ["no effusion"])
    assert np.isnan(values.columns[0]).all()
    assert "GREEN's answer cannot be read: it has no section" in str(values.failures[0])
    stated = str(signature(metric))
    assert f"|model:{tmp_path.name}@" in stated
    assert re.search(r"\|prompt:[0-9a-f]{12}\|", stated)
    assert str(tmp_path.parent) not in stated


def test_what_is_missing_is_said_before_anything_is_computed(monkeypatch, tmp_path):
    monkeypatch.delenv("VLSCORE_GREEN", raising=False)
    with pytest.raises(MissingDependency, match=r"set VLSCORE_GREEN\. Or use .*answers=FILE"):
        Plan("green").require()
    with pytest.raises(MissingDependency, match=r"absent\.csv: there is no such table"):
        Plan("green(answers=absent.csv)").require()
    with pytest.raises(InvalidSetting, match="leave out one"):
        Plan("green(answers=a.csv,model=b)").require()
    monkeypatch.setenv("VLSCORE_GREEN", str(tmp_path))
    with pytest.raises(MissingDependency, match=r"no config\.json"):
        Plan("green").require()


def test_the_signature_of_answers_names_the_file_by_digest(tmp_path):
    metric = write_answers(tmp_path / "answers.csv", [("a", "b", "x")])
    stated = str(signature(metric))
    assert "|answers:answers.csv@" in stated
    assert str(tmp_path) not in stated
