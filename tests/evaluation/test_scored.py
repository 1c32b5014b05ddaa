"""Values of rows: parts, files and values from elsewhere keep every row's numbers together."""

import numpy as np
import pytest

from tests.evaluation.samples import write_table
from vlscore.errors import Failure, InvalidReport
from vlscore.evaluation import evaluate, read_precomputed, score_table
from vlscore.evaluation.scored import Scored
from vlscore.metrics import Item, Scorer

TEXTS = [("clear lungs", "clear lungs"), ("edema", "no edema seen"), ("", "x"), ("a b", "a c")]


@pytest.fixture
def scored():
    """Four rows, of which the last one could not be read."""
    items = [Item(*texts) for texts in TEXTS]
    items[3] = InvalidReport("not read")
    table = score_table(items, Scorer(metrics="bleu-1,rouge-l"))
    return Scored.of(table, {"row": [1, 2, 3, 4], "id": list("abcd")})


def rows_of(scored):
    """Each row with its numbers, its reason and its sums, in the order of the ids."""
    sums = [each.sum(axis=1).tolist() for each in scored.sums.values()]
    rows = zip(scored.rows.itertuples(index=False), scored.errors, *sums, strict=True)
    return sorted(str(row) for row in rows)


def test_rows_in_another_order_and_in_parts_are_the_same_rows(scored):
    assert rows_of(scored.at([3, 1, 0, 2])) == rows_of(scored)
    parts = [scored.at([2, 3]), scored.at([0]), scored.at([1])]
    assert rows_of(Scored.joined(parts)) == rows_of(scored)
    assert scored.at([3, 3]).errors == ["not read", "not read"]


def test_a_reason_that_all_metrics_share_is_given_once(scored):
    assert scored.errors == [None, None, None, "not read"]
    assert scored.failed("row", "id") == [Failure(4, "d", "not read")]
    assert scored.with_errors()["error"].tolist() == scored.errors


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_what_an_evaluation_wrote_is_read_as_it_was(tmp_path, format):
    rows = [{"id": f"s{k}", "candidate": g, "reference": r} for k, (g, r) in enumerate(TEXTS)]
    rows[3]["reference"] = ""
    table = write_table(tmp_path / "studies.jsonl", rows)
    run = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1,rouge-l"), format=format)
    found = Scored.read(run)
    expected = score_table([Item(*texts) for texts in TEXTS[:3]], Scorer(metrics="bleu-1,rouge-l"))
    for name, values in expected.columns.items():
        assert np.array_equal(found.rows[name][:3], values)
    assert found.errors == [None, None, None, 'column "reference" is empty']
    assert {str(m): str(s) for m, s in found.signatures.items()} == {
        name: str(each) for name, each in expected.signatures.items()
    }


def test_values_from_elsewhere_are_columns_of_their_rows(scored, tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("id,other\nd,4\na,1\nc,3\n")
    filled = scored.filled(read_precomputed(path, {"id": list("abcd")}))
    assert np.array_equal(filled.rows["other"], [1, np.nan, 3, 4], equal_nan=True)
    assert filled.errors == [None, f"{path} has no value of other", None, "not read"]
    assert filled.counts().set_index("name")["n"].to_dict() == {
        "bleu-1": 3,
        "rouge-l": 3,
        "other": 3,
    }
