"""`vlscore cache` shows what is there, and deletes it."""

import pytest

from vlscore.core import open_cache


@pytest.fixture
def filled(cache_folder):
    cache = open_cache()
    cache.namespace({"holds": "images"}).put({f"text {n}": [n] * 100 for n in range(3)})
    yield cache
    cache.close()


def test_info_names_folder_number_and_size(command, filled):
    shown = command("cache", "info")
    assert shown.exit_code == 0
    assert str(filled.folder) in shown.stdout
    assert "3 values, 0.0 MiB of " in shown.stdout


def test_an_empty_cache_has_info_too(command, cache_folder):
    shown = command("cache", "info")
    assert (shown.exit_code, "0 values" in shown.stdout) == (0, True)
    assert not cache_folder.exists()


def test_a_damaged_cache_is_named_and_can_be_cleared(command, filled):
    filled.close()
    filled.path.write_bytes(b"no database" * 1000)
    shown = command("cache", "info")
    assert shown.exit_code == 1
    assert "vlscore cache clear" in shown.stderr
    assert command("cache", "clear").exit_code == 0
    assert not filled.path.exists()
    assert command("cache", "info").exit_code == 0


def test_off_is_said(command, monkeypatch):
    monkeypatch.setenv("VLSCORE_CACHE", "off")
    assert "is off" in command("cache", "info").stdout
    assert command("cache", "clear").exit_code != 0
