"""RadPref and RadJudge as they are published, where the folder `shared` has them."""

import numpy as np
import pytest
from radjudge import by_category, check_orders, read_cases

from tests.conftest import REPOSITORY
from vlscore.evaluation import read_ratings

RADPREF = REPOSITORY.parent / "shared" / "data" / "radpref"
pytestmark = pytest.mark.skipif(
    not RADPREF.is_dir(), reason=f"{RADPREF} has no real ratings; it is not public"
)


def test_every_rating_of_the_published_files_is_read():
    pairs = read_ratings(RADPREF)
    assert (len(pairs), len(set(pairs.studies)), len(pairs.raters)) == (100, 50, 3)
    assert not pairs.bad
    assert not any(np.isnan(values).any() for values in pairs.ratings.values())
    # Counted in the files by hand: 270 false findings, 343 missed ones, 67 attributes.
    sums = {name: values.sum() for name, values in pairs.ratings.items()}
    assert sums["false finding"] == 270
    assert sums["missed finding"] == 343
    assert sums["wrong attribute"] == 67
    assert sums["significant errors"] == 150 + 1 + 146 + 4 + 6 + (23 + 4 + 3 + 2 + 1)
    means = {name: pairs.only([name]).means["rating"].mean() for name in ("gpt", "medgemma")}
    assert means["gpt"] > means["medgemma"] + 1


def test_the_thirty_orders_are_read_and_checked():
    cases = read_cases(RADPREF / "radjudge.json")
    blind = [
        case["id"] for case in cases if any("context" in c for c in case["candidates"].values())
    ]
    assert blind == ["2a", "2b", "2c", "10a", "10c"]
    assert sum(len(case["relations"]) for case in cases) == 36
    orders = check_orders(cases, "bleu-4,rouge-l")
    assert orders.shape == (30, 5)
    assert by_category(orders)["passed"].str.endswith("of 30").all()
