"""Values computed elsewhere are joined by key columns; what is wrong with the table is named."""

import numpy as np
import pytest

from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import read_precomputed

KEYS = {"system": ["a", "a", "b"], "id": ["1", "2", "1"]}


def write(tmp_path, *lines):
    path = tmp_path / "values.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_values_are_joined_by_keys_in_any_order(tmp_path):
    path = write(
        tmp_path,
        "system,id,radcliq-v1,green,own",
        "b,1,3,0.3,x",
        "a,1,1,0.1,7",
        "c,1,1,0.1,7",
        "a,2,,0.2,8",
    )
    found = read_precomputed(path, KEYS, lower_is_better=["own"], row_name="system and study")
    assert found.higher_is_better == {"radcliq-v1": False, "green": True, "own": False}
    assert np.array_equal(found.rows["radcliq-v1"], [1, np.nan, 3], equal_nan=True)
    assert found.rows["green"].tolist() == [0.1, 0.2, 0.3]
    assert found.failures == {
        (1, "radcliq-v1"): f"{path} has no value of radcliq-v1",
        (2, "own"): f"""{path}, row 1: column "own" holds 'x', not a number""",
    }
    assert str(found.signatures["green"]).startswith("green|file:values.csv|sha256:")
    assert found.notes == (
        f"{path}: 1 row of no system and study",
        f"{path}: 1 cell without a number, the first in row 1: "
        """column "own" holds 'x', not a number""",
    )


def test_repeated_keys_are_joined_in_their_order(tmp_path):
    path = write(
        tmp_path,
        "study_id,kind,m.original,m.perturbed",
        "s,k,1,2",
        "s,other,5,6",
        "s,k,3,4",
    )
    keys = {"study_id": ["s", "s", "s"], "kind": ["k", "k", "other"]}
    suffixes = (".original", ".perturbed")
    found = read_precomputed(path, keys, suffixes=suffixes, is_repeated=True)
    assert found.rows["m.original"].tolist() == [1, 3, 5]
    assert found.rows["m.perturbed"].tolist() == [2, 4, 6]
    assert not found.failures
    assert "larger values of m are assumed to be better" in found.notes[0]
    keys = {name: column[1:] for name, column in keys.items()}
    with pytest.raises(InvalidTable, match=r"row 3: 's', 'k' has an earlier row already"):
        read_precomputed(path, keys, suffixes=suffixes, is_repeated=True)


@pytest.mark.parametrize(
    ("lines", "options", "error", "message"),
    [
        (
            ["id,green", "1,1"],
            {},
            InvalidTable,
            "has the columns system, id and",
        ),
        (["system,id", "a,1"], {}, InvalidTable, "no column of values"),
        (["system,id,m", "a,1,1", "a,1,2"], {}, InvalidTable, "row 2: 'a', '1' has an earlier row"),
        (["system,id,m", "z,1,1"], {}, InvalidTable, "none of its rows is a row of this run"),
        (["system,id,m", "a,,1"], {}, InvalidTable, "row 1"),
        (["system,id,m", "a,1,1"], {"lower_is_better": ["x"]}, InvalidSetting, "no column x"),
        (["system,id,m", "a,1,1"], {"computed": ["m"]}, InvalidSetting, "both computed and read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, lines, options, error, message):
    with pytest.raises(error, match=message):
        read_precomputed(write(tmp_path, *lines), KEYS, **options)
