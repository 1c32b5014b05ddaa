"""Significant and insignificant errors together are all errors, category by category."""

import numpy as np
import pytest
from significant_errors import split_errors

from vlscore.data import PhantomFinding, corrupt, count_errors
from vlscore.data.phantom.phantom_pairs import scene_at


def test_the_two_parts_sum_up_to_all_errors():
    seen = set()
    for position in range(200):
        reference = scene_at(3, position).findings
        rng = np.random.default_rng(position)
        candidate = corrupt(rng, reference, position % 6)
        found = split_errors(candidate, reference)
        total = count_errors(candidate, reference).to_dict()
        for category, count in total.items():
            parts = {key: errors.to_dict()[category] for key, errors in found.items()}
            assert sum(parts.values()) == count
            seen |= {(category, key) for key, part in parts.items() if part}
    # Every category has errors of both kinds, so that significance says more than the category.
    assert len(seen) == 12


@pytest.mark.parametrize(
    ("candidate", "reference", "is_significant"),
    [
        ([PhantomFinding("effusion", "left", None, 2)], [], True),
        ([PhantomFinding("effusion", "left", None, 1)], [], False),
        ([], [PhantomFinding("fracture", "left", "upper")], True),
        (
            [PhantomFinding("nodule", "left", "upper", 2)],
            [PhantomFinding("nodule", "left", "lower", 2)],
            False,
        ),
        (
            [PhantomFinding("nodule", "left", "upper", 2)],
            [PhantomFinding("nodule", "right", "upper", 2)],
            True,
        ),
        ([PhantomFinding("edema", severity=2)], [PhantomFinding("edema", severity=3)], False),
        (
            [PhantomFinding("edema", severity=2)],
            [PhantomFinding("edema", severity=2, change="new")],
            True,
        ),
        (
            [PhantomFinding("edema", severity=2, change="unchanged")],
            [PhantomFinding("edema", severity=2)],
            False,
        ),
    ],
)
def test_the_rule(candidate, reference, is_significant):
    found = split_errors(candidate, reference)
    assert found[is_significant].total == 1
    assert found[not is_significant].total == 0
