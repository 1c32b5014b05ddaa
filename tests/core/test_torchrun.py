"""Which of torchrun's processes this is, and which device it takes."""

import pytest
import torch

from vlscore.core import Place, TrainingProcesses
from vlscore.errors import InvalidSetting


def environment(monkeypatch, **numbers):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, number in numbers.items():
        monkeypatch.setenv(name, str(number))


def test_without_torchrun_a_process_is_alone(monkeypatch):
    environment(monkeypatch)
    assert Place.launched() == Place(0, 1, 0, 1)
    # One process that torchrun started joins nobody, either.
    environment(monkeypatch, WORLD_SIZE=1, RANK=0, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1)
    alone = Place.launched()
    assert alone.leads
    for device in (None, "cpu", "cuda:3"):
        assert alone.own_device(device) == device
    alone.join("cpu")
    assert not torch.distributed.is_initialized()
    alone.leave()


def test_the_environment_says_which_process_this_is(monkeypatch):
    environment(monkeypatch, WORLD_SIZE=8, RANK=5, LOCAL_RANK=1, LOCAL_WORLD_SIZE=4)
    place = Place.launched()
    assert (place.rank, place.count, place.local_rank, place.on_this_machine) == (5, 8, 1, 4)
    assert not place.leads
    training = TrainingProcesses.launched()
    assert isinstance(training, TrainingProcesses)
    assert (training.rank, training.count, training.local_rank) == (5, 8, 1)


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    place = Place(5, 8, local_rank=1, on_this_machine=4)
    assert place.own_device("cuda") == "cuda:1"
    assert place.own_device("cpu") == "cpu"
    for there, device in ((False, None), (True, "cuda:1")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert place.own_device(None) == device


def test_one_gpu_is_not_shared_by_name():
    with pytest.raises(InvalidSetting, match=r"cuda:1 was given to 2 processes.*leave the device"):
        Place(1, 2).own_device("cuda:1")


@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK"])
def test_what_is_no_number_is_named(monkeypatch, name):
    environment(monkeypatch, **{"WORLD_SIZE": 2, "RANK": 1, name: "two"})
    with pytest.raises(InvalidSetting, match=f"{name} in the environment.*'two'; unset it"):
        Place.launched()
