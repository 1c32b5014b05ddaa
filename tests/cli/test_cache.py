"""`vlscore cache` says what is there, shrinks it, and finds what is damaged."""

import sqlite3

import pytest

from vlscore.core import Entry, open_cache

FACTS = {"holds": "images", "encoder": "phantom", "checksum": "ab" * 32, "precision": "fp32"}


@pytest.fixture
def filled(cache_folder):
    cache = open_cache()
    cache.embeddings.space(FACTS).put({bytes([n]) * 32: Entry(b"abcd", (1,)) for n in range(3)})
    pixels = {"holds": "pixels", "pipeline": "PadCropPipeline()"}
    cache.pixels.space(pixels).put({b"p" * 32: Entry(b"x" * 2_000_000, (1, 2000, 1000))})
    yield cache
    for store in cache.stores:
        store.close()


def test_info_names_folder_size_and_encoders(command, filled):
    shown = command("cache", "info")
    assert shown.exit_code == 0
    assert str(filled.folder) in shown.stdout
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["images", "phantom@abababababab", "fp32", "3", "0.0"] in lines
    assert ["pixels", "PadCropPipeline()", "1", "1.9"] in lines


def test_an_empty_cache_has_info_too(command, cache_folder):
    shown = command("cache", "info")
    assert (shown.exit_code, "0.0 MiB" in shown.stdout) == (0, True)
    assert not cache_folder.exists()


def test_verify_ends_with_1_where_something_is_damaged(command, filled):
    assert command("cache", "verify").exit_code == 0
    with sqlite3.connect(filled.embeddings.path) as db:
        db.execute("UPDATE entries SET value = x'00' WHERE id = 1")
    db.close()
    shown = command("cache", "verify")
    assert shown.exit_code == 1
    assert "3 entries, 1 damaged" in shown.stdout
    assert command("cache", "verify").exit_code == 0


def test_verify_of_a_file_that_is_no_database_says_what_to_do(command, filled):
    filled.pixels.close()
    filled.pixels.path.write_bytes(b"no database" * 1000)
    shown = command("cache", "verify")
    assert shown.exit_code == 1
    assert "vlscore cache prune --all" in shown.stderr
    assert command("cache", "prune", "--all").exit_code == 0
    assert not filled.pixels.path.exists()
    assert command("cache", "verify").exit_code == 0


def test_prune_shrinks(command, filled):
    shown = command("cache", "prune", "--to", "0.001")
    assert shown.exit_code == 0
    assert "1.9 MiB thrown away" in shown.stdout
    assert filled.pixels.path.stat().st_size < 100_000
    assert filled.embeddings.info()[0].entries == 3


def test_contradictions_are_refused(command, filled, monkeypatch):
    assert command("cache", "prune", "--all", "--to", "1").exit_code != 0
    monkeypatch.setenv("VLSCORE_CACHE", "off")
    assert command("cache", "prune").exit_code != 0
    assert "is off" in command("cache", "info").stdout
