"""Two processes that share each batch train what one process trains."""

import os
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from tests.conftest import REPOSITORY
from tests.training.toys import ToyEncoder
from vlscore.errors import InvalidSetting
from vlscore.training.processes import TrainingProcesses

PROGRAM = """
import sys
from pathlib import Path
from tests.training.conftest import LOCAL, opened
from tests.training.toys import ToyEncoder
from vlscore.training.training_run import train
from vlscore.training.settings import Execution, Start, TrainingSettings

settings = TrainingSettings(LOCAL, epochs=3, batch_size=8, learning_rate=0.05,
    validation_share=0.2, augmentation="light")
preparation = opened(Path(sys.argv[1]), views="frontal+lateral")
train(preparation, sys.argv[2], settings, Start(ToyEncoder().double()),
    execution=Execution(device="cpu", micro_batch=int(sys.argv[3])))
"""


def as_torchrun_sets() -> list[dict[str, str]]:
    """The variables that torchrun sets for each of two processes on this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    shared |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    return [{**shared, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"]


def _run_two(table, out, micro_batch):
    said = [(out.parent / f"errors{rank}").open("w+") for rank in range(2)]
    two = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(table), str(out), str(micro_batch)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **each},
            stderr=errors,
        )
        for errors, each in zip(said, as_torchrun_sets(), strict=True)
    ]
    try:
        ends = [process.wait(300) for process in two]
    finally:
        for process in two:
            process.kill()
    for stream in said:
        stream.seek(0)
    assert ends == [0, 0], [stream.read() for stream in said]


def _column(path, name):
    header, *rows = [line.split(",") for line in path.read_text().splitlines()]
    return [float(row[header.index(name)]) for row in rows]


@pytest.mark.slow
def test_two_processes_give_the_loss_and_the_weights_of_one(lateral_table, tmp_path, monkeypatch):
    """In float64, with local features, lateral views that one may lack, and micro-batches."""
    monkeypatch.setattr(sys, "argv", ["", str(lateral_table), str(tmp_path / "one"), "0"])
    exec(PROGRAM, {})
    _run_two(lateral_table, tmp_path / "two", 3)
    for name in ("loss", "loss_local", "gradient"):
        one, two = (_column(tmp_path / each / "log.csv", name) for each in ("one", "two"))
        assert len(one) == 6
        assert two == pytest.approx(one, rel=1e-10)
    one, two = (load_file(tmp_path / each / "model.safetensors") for each in ("one", "two"))
    start = ToyEncoder().double().state_dict()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-8, atol=1e-10)
        assert not torch.equal(tensor, start[name]), name
    one, two = ((tmp_path / each / "validation.csv").read_text() for each in ("one", "two"))
    assert one.split() != []
    assert _column(tmp_path / "one" / "validation.csv", "mean recall") == pytest.approx(
        _column(tmp_path / "two" / "validation.csv", "mean recall")
    )


def test_a_batch_that_processes_cannot_share_is_refused(run_toy, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(InvalidSetting, match="cannot be shared equally by 4 processes"):
        run_toy(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_torchrun_says_which_process_this_is(monkeypatch):
    for name, number in {"WORLD_SIZE": 8, "RANK": 5, "LOCAL_RANK": 1}.items():
        monkeypatch.setenv(name, str(number))
    found = TrainingProcesses.launched()
    assert (found.rank, found.count, found.local_rank, found.leads) == (5, 8, 1, False)
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(InvalidSetting, match=r"RANK in the environment.*'two'; unset it"):
        TrainingProcesses.launched()
