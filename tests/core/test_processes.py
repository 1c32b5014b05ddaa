"""Messages between processes; tests/evaluation/test_sharing.py sends them under torchrun."""

import json

from vlscore.core import Processes


def test_without_torchrun_nothing_is_joined_or_left(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    alone = Processes.from_torchrun("cpu")
    assert (alone.rank, alone.count, alone.device, alone.leads) == (0, 1, "cpu", True)
    assert Processes.from_torchrun().device is None
    assert alone.on_this_machine == 1
    alone.close()


def test_plain_data_travels_as_json(monkeypatch):
    sent = []
    monkeypatch.setattr(Processes, "send", lambda self, *a, **k: sent.append((a, k)))
    Processes(0, 3).tell_all({"a": [1, None]}, last=True)
    assert [(json.loads(a[0]), a[1], k) for a, k in sent] == [
        ({"a": [1, None]}, 1, {"last": True}),
        ({"a": [1, None]}, 2, {"last": True}),
    ]
