"""The cache lies where the settings say, or nowhere."""

from pathlib import Path

import pytest

from vlscore.core import Cache, cache_folder, open_cache
from vlscore.core import store_folder as place
from vlscore.errors import InvalidSetting


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "set"))
    monkeypatch.delenv("VLSCORE_CACHE_GIB", raising=False)


def test_the_variable_names_the_folder(tmp_path):
    assert cache_folder() == tmp_path / "set"
    assert open_cache().folder == tmp_path / "set"
    assert not (tmp_path / "set").exists()


def test_without_it_the_systems_folder_for_caches_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("VLSCORE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "vlscore"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "vlscore"


def test_off_is_off(monkeypatch, tmp_path):
    assert open_cache(False) is None
    monkeypatch.setenv("VLSCORE_CACHE", " Off ")
    assert open_cache() is None
    assert open_cache(tmp_path / "named").folder == tmp_path / "named"


def test_one_folder_is_opened_once(tmp_path):
    one = open_cache(tmp_path / "a")
    assert isinstance(one, Cache)
    assert open_cache(str(tmp_path / "a")) is one
    assert open_cache(one) is one
    assert open_cache(tmp_path / "b") is not one


def test_the_size_is_shared_by_both_stores(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_CACHE_GIB", "0.5")
    cache = open_cache(tmp_path / "sized")
    assert sum(store.most_bytes for store in cache.stores) <= 1 << 29
    assert cache.embeddings.most_bytes < cache.pixels.most_bytes


@pytest.mark.parametrize("size", ["much", "0", "-1", "nan", "inf"])
def test_a_size_that_is_none_is_refused(monkeypatch, tmp_path, size):
    monkeypatch.setenv("VLSCORE_CACHE_GIB", size)
    with pytest.raises(InvalidSetting, match="number of GiB"):
        open_cache(tmp_path / size)


def test_machines_that_share_a_disk_have_files_of_their_own(monkeypatch, tmp_path):
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(place, "_MOUNTS", mounts)
    monkeypatch.setattr("platform.node", lambda: "node 7")
    shared, own = tmp_path / "with space" / "home", tmp_path / "own"
    lines = ["disk / ext4 rw 0 0", f"server:/x {tmp_path}/with\\040space nfs4 rw 0 0"]
    mounts.write_text("\n".join(lines) + "\n")
    assert Cache(shared, 1 << 30).pixels.path == shared / "pixels-1-node_7.sqlite"
    assert Cache(own, 1 << 30).pixels.path == own / "pixels-1.sqlite"
    mounts.unlink()
    assert Cache(shared, 1 << 30).pixels.path == shared / "pixels-1.sqlite"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("VLSCORE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert open_cache() is None


def test_tests_do_not_write_to_the_users_cache():
    assert Path.home() / ".cache" not in cache_folder().parents
