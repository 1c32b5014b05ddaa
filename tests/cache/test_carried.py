"""What travels with a task is found there, and what the task adds comes back."""

from vlscore.core import CarriedCache, Entry
from vlscore.core.store_folder import CarriedStore

FACTS = {"holds": "reports"}
OLD, NEW, OTHER = (Entry(bytes([k]), (1,)) for k in range(3))


def test_only_what_is_new_comes_back_and_the_first_value_stays():
    store = CarriedStore()
    space, elsewhere = store.space(FACTS), store.space({"holds": "images"})
    store.load({space.facts: {b"a": OLD}})
    assert space.put({b"a": NEW, b"b": NEW}) == {b"a": OLD, b"b": NEW}
    assert space.put({b"b": OTHER}) == {b"b": NEW}
    assert space.get([b"a", b"b", b"c"]) == {b"a": OLD, b"b": NEW}
    assert elsewhere.get([b"a"]) == {}
    assert store.new == {space.facts: {b"b": NEW}}


def test_the_next_task_finds_nothing_of_the_one_before():
    store = CarriedStore()
    space = store.space(FACTS)
    given = {space.facts: {b"a": OLD}}
    store.load(given)
    space.put({b"b": NEW})
    store.load({})
    assert space.get([b"a", b"b"]) == {}
    assert store.new == {}
    assert given == {space.facts: {b"a": OLD}}


def test_nothing_is_written():
    cache = CarriedCache()
    assert cache.pixels.get(cache.pixels.space(FACTS)._facts, [b"a"]) == {}
    assert [store.used_bytes() for store in cache.stores] == [0, 0]
