"""What a precision changes is measured on the studies themselves, and noted."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.doubles import HashEncoder
from tests.evaluation.samples import make_table, write_table
from vlscore.core import resource_path
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting
from vlscore.evaluation import check_drift, evaluate
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"


@pytest.fixture(scope="module")
def demo():
    return open_studies(DEMO)


def scorer_of(precision, metrics="vlscore,cosine,bleu-1"):
    return Scorer("phantom", device="cpu", metrics=metrics, precision=precision)


@pytest.fixture(scope="module")
def check(demo):
    return check_drift(demo, scorer_of("bf16"), 11)


def test_the_drift_is_that_of_two_runs(demo, check):
    """Computed here from single scores, in other batches."""
    full, half = scorer_of("fp32"), scorer_of("bf16")
    rows = list(demo)[:11]
    scores = [
        [each.score(r.images[0], r.candidate, r.reference) for r in rows] for each in (full, half)
    ]
    assert (check.precision, check.device, check.studies) == ("bf16", "cpu", 11)
    assert [drift.number for drift in check.drifts] == ["area", "vlscore", "cosine"]
    area, vlscore, _ = check.drifts
    before, after = (np.array([score.area for score in part]) for part in scores)
    share = np.abs(after - before) / before
    assert area.relative
    assert area.largest == pytest.approx(share.max(), rel=0.3)
    assert 0 < area.median < area.largest < 0.1
    before, after = (np.array([score.score for score in part]) for part in scores)
    assert vlscore.largest == pytest.approx(np.abs(after - before).max(), rel=0.3)
    assert vlscore.mean == pytest.approx(after.mean() - before.mean(), abs=1e-4)
    assert vlscore.tau_b == pytest.approx(stats.kendalltau(before, after).statistic, abs=0.05)


def test_the_table_says_what_the_numbers_are(check):
    text = check.table().text(100)
    assert "bf16 against fp32 on 11 studies (cpu)" in text
    assert f"{100 * check.drifts[0].largest:.3f} %" in text


def test_it_is_noted_in_the_record_of_the_run(demo, check, tmp_path):
    evaluate(demo, tmp_path / "out", scorer_of("bf16"), checked=check)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["precision_check"] == json.loads(json.dumps(check.to_dict()))
    evaluate(demo, tmp_path / "without", scorer_of("bf16"))
    assert json.loads((tmp_path / "without" / "run.json").read_text())["precision_check"] is None


def test_there_must_be_something_to_compare(demo, tmp_path):
    with pytest.raises(InvalidSetting, match="the precision is fp32"):
        check_drift(demo, scorer_of("fp32"))
    with pytest.raises(InvalidSetting, match="no metric looks at embeddings"):
        check_drift(demo, Scorer(metrics="bleu-1"))
    table, records = make_table(tmp_path, 2)
    records[0]["image"] = "absent.png"
    write_table(table, records)
    with pytest.raises(InvalidSetting, match="fewer than two of the first 2 studies"):
        check_drift(open_studies(table), Scorer(HashEncoder(), precision="bf16"), 2)


def test_rows_that_cannot_be_read_are_left_out(tmp_path):
    table, records = make_table(tmp_path, 6)
    records[0]["reference"] = ""
    write_table(table, records)
    assert check_drift(open_studies(table), Scorer(HashEncoder(), precision="bf16"), 4).studies == 3
