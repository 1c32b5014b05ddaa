"""Ids that stood above, against a dict."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from vlscore.data.study import SeenIds


@given(st.lists(st.text(max_size=3), max_size=60))
def test_the_first_row_of_every_id(ids):
    seen, expected = SeenIds(), {}
    for row, id in enumerate(ids, start=1):
        assert seen.first_row(id, row) == expected.setdefault(id, row)


def test_more_ids_than_there_was_room_for():
    seen = SeenIds()
    for row in range(1, 5001):
        assert seen.first_row(f"study-{row}", row) == row
    assert [seen.first_row(f"study-{row}", 9999) for row in (1, 2500, 5000)] == [1, 2500, 5000]


def test_memory_is_that_of_plain_numbers():
    tracemalloc.start()
    try:
        seen = SeenIds()
        for row in range(1, 30_001):
            seen.first_row("x" * 200 + str(row), row)
        assert tracemalloc.get_traced_memory()[0] < 30_000 * 60
    finally:
        tracemalloc.stop()
