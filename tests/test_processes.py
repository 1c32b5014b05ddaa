"""Messages between processes, in threads of this one and under torchrun."""

import json

import pytest

from vlscore._processes import Processes
from vlscore.errors import InvalidSetting


def test_without_torchrun_a_process_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    alone = Processes.from_torchrun("cpu")
    assert (alone.rank, alone.count, alone.device, alone.leads) == (0, 1, "cpu", True)
    assert Processes.from_torchrun().device is None
    assert alone.on_this_machine == 1
    alone.close()


def test_one_gpu_is_not_shared_by_name(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidSetting, match=r"cuda:1 was given to 2 processes.*leave the device"):
        Processes.from_torchrun("cuda:1")


def test_plain_data_travels_as_json(monkeypatch):
    sent = []
    monkeypatch.setattr(Processes, "send", lambda self, *a, **k: sent.append((a, k)))
    Processes(0, 3).tell_all({"a": [1, None]}, last=True)
    assert [(json.loads(a[0]), a[1], k) for a, k in sent] == [
        ({"a": [1, None]}, 1, {"last": True}),
        ({"a": [1, None]}, 2, {"last": True}),
    ]
