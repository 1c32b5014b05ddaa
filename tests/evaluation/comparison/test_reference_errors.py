"""Rankings without errors of the references: closed forms, and the truth where it is known."""

import json

import numpy as np
import pytest

from tests.evaluation.samples import compare, write_table
from vlscore.errors import InvalidSetting
from vlscore.evaluation import ComparisonSettings
from vlscore.metrics import Scorer

QUICK = {"resamples": 200, "permutations": 99}
MICRO = "findings-f1 micro-13 (corpus)"
NAMES = ["pleural effusion", "pneumothorax", "cardiomegaly", "consolidation", "atelectasis"]


def _report(states):
    """A report that states or denies each of some findings."""
    return " ".join(
        f"There is {name}." if stated else f"There is no {name}."
        for name, stated in zip(NAMES, states, strict=False)
    )


@pytest.fixture
def write(tmp_path):
    def write(name, candidates, references, **more):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": f"s{k}", "reference": _report(r), "candidate": _report(c)}
            | {column: values[k] for column, values in more.items()}
            for k, (c, r) in enumerate(zip(candidates, references, strict=True))
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def _of_one(hits, extra, missed, films=200):
    """Candidates and references about one finding, with these counts."""
    parts = [(1, 1)] * hits + [(1, 0)] * extra + [(0, 1)] * missed
    pairs = np.array(parts + [(0, 0)] * (films - len(parts)))
    return pairs[:, :1], pairs[:, 1:]


@pytest.fixture
def two(write):
    """A system that states much and one that states little, about the same references."""
    _, references = _of_one(50, 0, 0)
    much = np.zeros_like(references)
    much[20:80] = 1  # 30 of 50 stated, 60 said
    little = np.zeros_like(references)
    little[28:56] = 1  # 22 of 50 stated, 28 said
    return [write("much", much, references), write("little", little, references)]


def _rates(tmp_path, text, suffix="toml"):
    path = tmp_path / f"rates.{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


def _numbers(run):
    return {
        row["system"]: row
        for row in run.frame("reference_errors").to_dict("records")
        if row["metric"] == MICRO
    }


def _pair(run):
    frame = run.frame("reference_errors_pairs")
    return frame[frame["metric"] == MICRO].iloc[0]


def test_missed_findings_have_a_closed_form_and_a_place(two, tmp_path):
    rates = _rates(tmp_path, "[default]\nmissed = 0.1\nfalse_discovery = 0\n")
    run = compare(
        two, tmp_path / "out", Scorer(metrics="findings-f1"), reference_errors=rates, **QUICK
    )
    found = _numbers(run)
    # True positives and present findings are 1 / 0.9 of the counts.
    for name, hits, said in (("much", 30, 60), ("little", 22, 28)):
        assert found[name]["scored"] == pytest.approx(2 * hits / (said + 50))
        assert found[name]["corrected"] == pytest.approx(2 * hits / (0.9 * said + 50))
        assert (
            found[name]["corrected.low"] < found[name]["corrected"] < found[name]["corrected.high"]
        )
    # 60 / (60 k + 50) = 44 / (28 k + 50), k = 1 - missed: 1/6 of 60 is missed, in 10 of 200 films.
    pair = _pair(run)
    assert pair["scored"] < 0
    assert pair["place"] == pytest.approx(1 - np.exp(-10 / 200), abs=2e-3)
    assert 0 < pair["first_better"] < 1


def test_references_without_errors_change_no_number(two, tmp_path):
    rates = _rates(tmp_path, "[default]\nmissed = 0\ninvented = 0\n")
    run = compare(
        two, tmp_path / "out", Scorer(metrics="findings-f1"), reference_errors=rates, **QUICK
    )
    for row in run.frame("reference_errors").to_dict("records"):
        assert row["corrected"] == pytest.approx(row["scored"], nan_ok=True)
    systems = run.frame("systems")
    of = systems[systems["metric"] == MICRO].set_index("system")["value"]
    assert {name: row["scored"] for name, row in _numbers(run).items()} == pytest.approx(dict(of))
    assert np.isnan(_pair(run)["place"])


@pytest.fixture
def truth_known(write):
    """Two systems, references with errors, and the truth: 600 films of five findings."""
    rng = np.random.default_rng(4)
    shape = (600, 5)
    truth = rng.random(shape) < [0.3, 0.2, 0.25, 0.15, 0.1]
    reference = truth ^ (rng.random(shape) < np.where(truth, 0.2, 0.03))
    much = rng.random(shape) < np.where(truth, 0.8, 0.15)
    little = rng.random(shape) < np.where(truth, 0.5, 0.02)
    second = [_report(row) for row in truth]
    wrong = rng.random(shape) < np.where(truth, 0.2, 0.03)
    equal = [_report(row) for row in truth ^ wrong]
    half = [text if k % 2 else "" for k, text in enumerate(second)]
    paths = [
        write(name, said, reference, truth=second, half=half, equal=equal)
        for name, said in (("much", much), ("little", little))
    ]
    f1 = {
        name: 2 * (said & truth).sum() / (said.sum() + truth.sum())
        for name, said in (("much", much), ("little", little))
    }
    return paths, f1


@pytest.mark.parametrize("column", ["truth", "half"])
def test_a_second_report_that_is_the_truth_recovers_it(truth_known, tmp_path, column):
    paths, f1 = truth_known
    run = compare(
        paths,
        tmp_path / "out",
        Scorer(metrics="findings-f1"),
        reference_errors=f"truth:{column}",
        **QUICK,
    )
    for name, row in _numbers(run).items():
        assert row["corrected.low"] < f1[name] < row["corrected.high"]
        assert abs(row["corrected"] - f1[name]) < abs(row["scored"] - f1[name]) / 2
    rates = run.frame("reference_errors_rates").set_index("finding")
    assert rates.loc["Pleural Effusion", "missed"] == pytest.approx(0.2, abs=0.06)
    assert "Fracture" in rates.index
    assert rates.loc["Fracture", "rates"] == "all findings"


def test_two_equal_reports_leave_open_who_is_right(truth_known, tmp_path):
    paths, f1 = truth_known
    run = compare(
        paths,
        tmp_path / "out",
        Scorer(metrics="findings-f1"),
        reference_errors="second:equal",
        **QUICK,
    )
    for name, row in _numbers(run).items():
        assert row["corrected.low"] < f1[name] < row["corrected.high"]
    rates = run.frame("reference_errors_rates").set_index("finding").loc["Pleural Effusion"]
    assert rates["missed.low"] < 0.02 < 0.2 < rates["missed.high"]
    false = 0.7 * 0.03 / (0.7 * 0.03 + 0.3 * 0.8)
    assert rates["false_discovery.low"] < 0.02 < false < rates["false_discovery.high"]


def test_references_without_findings_have_no_rates_and_a_note_says_so(tmp_path):
    """13.9 % of wrong reports, where no reference states anything, are no share of statements."""
    text = "The lungs are clear. No pleural effusion."
    rows = [{"id": str(k), "reference": text, "candidate": text} for k in range(20)]
    path = write_table(tmp_path / "mine.jsonl", rows)
    run = compare(
        [path],
        tmp_path / "out",
        Scorer(metrics="findings-f1"),
        reference_errors="emergency-2026",
        **QUICK,
    )
    (note,) = [each for each in run.notes if "micro-13" in each]
    assert note.endswith("the references state too few findings for rates of errors")
    assert "edema" in note


def test_published_rates_have_their_source_and_assumptions(two, tmp_path):
    run = compare(
        two,
        tmp_path / "out",
        Scorer(metrics="findings-f1,bleu-4"),
        reference_errors="emergency-2026",
        **QUICK,
    )
    said = "\n".join(run.notes)
    assert "10.1007/s00330-026-12648-8" in said
    assert "nor of bleu-4" in said
    table = next(each for each in run.tables if "errors of the references" in each.title)
    assert "assumed:" in next(t.caption for t in run.tables if "assumed:" in t.caption)
    assert table.rows
    rates = run.frame("reference_errors_rates").set_index("finding").loc["Pleural Effusion"]
    # 13.9 % of reports wrong, .25 findings stated a report, 3 of 4 errors missed ones.
    errors = -np.log1p(-66.5 / 478)
    assert rates["false_discovery"] == pytest.approx(0.25 * errors / 0.25)
    stated, missed = 0.25, rates["missed"]
    true = stated * (1 - rates["false_discovery"])
    assert true / (1 - missed) * missed == pytest.approx(0.75 * errors)
    assert "No Finding" not in run.frame("reference_errors_rates")["finding"].tolist()
    assert any("micro-14" in note and "No Finding has no rates" in note for note in run.notes)


def test_a_csv_says_the_same_as_a_toml(two, tmp_path):
    toml = """
        [default]
        missed = "12/100"
        false_discovery = 0.1
        [findings."Pleural Effusion"]
        missed = 0.2
        false_discovery = "0.05 [0.03, 0.08]"
    """
    table = 'finding,missed,false_discovery\ndefault,12/100,0.1\nEffusion,.2,"0.05 [0.03, 0.08]"\n'
    found = [
        _numbers(
            compare(
                two,
                tmp_path / suffix,
                Scorer(metrics="findings-f1"),
                reference_errors=_rates(tmp_path, text, suffix),
                **QUICK,
            )
        )
        for suffix, text in (("toml", toml), ("csv", table))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[default]\nmissed = 0.1\n", "state missed, and one of invented"),
        ("[default]\nmissed = 1.5\ninvented = 0\n", "default: missed is '1.5'"),
        ("[default]\nmissed = '12 of 100'\ninvented = 0\n", "'12 of 100'"),
        ("[default]\nmissed = '0 [0, 0.1]'\ninvented = 0\n", "write counts"),
        ("[findings.rash]\nmissed = 0.1\ninvented = 0\n", "no finding is called rash"),
        (
            "[findings.mass]\nmissed = 0.1\ninvented = 0\n[findings.nodule]\nmissed = 0.1\n",
            "second",
        ),
        ("[defaults]\nmissed = 0.1\ninvented = 0\n", "no entry defaults"),
        ("default = 3\n", "is no table of error rates"),
        ("missed", "is no table of error rates"),
        ("source = 'x'\n", "states no rate"),
        ("[reports]\nwrong = 0.1\nmissed_share = [0.9, 0.1]\n", "missed_share"),
    ],
)
def test_faults_of_a_table_of_rates_are_named(two, tmp_path, text, said):
    with pytest.raises(InvalidSetting) as raised:
        compare(
            two,
            tmp_path / "out",
            Scorer(metrics="findings-f1"),
            reference_errors=_rates(tmp_path, text),
            **QUICK,
        )
    assert said in str(raised.value)
    assert "rates.toml" in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_rates_that_contradict_the_references_are_refused_for_the_number_alone(two, tmp_path):
    rates = _rates(tmp_path, "[default]\nmissed = 0.1\ninvented = 0.5\n")
    run = compare(
        two, tmp_path / "out", Scorer(metrics="findings-f1"), reference_errors=rates, **QUICK
    )
    assert not len(run.frame("reference_errors"))
    (said,) = (note for note in run.notes if "micro-13" in note)
    assert "the references state it in 0 of 200 films" in said
    assert "false_discovery" in said
    assert len(run.frame("systems"))


def test_agreement_beyond_what_independent_errors_allow_is_named(write, tmp_path):
    said, references = _of_one(50, 0, 0)
    rates = _rates(tmp_path, "[default]\nmissed = 0.3\nfalse_discovery = 0.1\n")
    paths = [write("copy", said, references), write("other", 1 - said, references)]
    run = compare(
        paths, tmp_path / "out", Scorer(metrics="findings-f1"), reference_errors=rates, **QUICK
    )
    assert any("copy agrees with the references more often" in note for note in run.notes)


def test_a_metric_of_labels_is_needed_before_anything_is_scored(two, tmp_path):
    with pytest.raises(InvalidSetting, match="add findings-f1"):
        compare(
            two,
            tmp_path / "out",
            Scorer(metrics="bleu-4,findings-f1(unmentioned=ignored)"),
            reference_errors="emergency-2026",
            **QUICK,
        )
    with pytest.raises(InvalidSetting, match="emergency-2026"):
        compare(
            two,
            tmp_path / "out",
            Scorer(metrics="findings-f1"),
            reference_errors=str(tmp_path / "nowhere.toml"),
            **QUICK,
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"shared_errors": 0.2},
        {"shared_errors": 1.0, "reference_errors": "a"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong):
    with pytest.raises(InvalidSetting):
        ComparisonSettings(**wrong)
