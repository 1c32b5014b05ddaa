"""A run that was stopped ends with the same bytes as one that was not."""

import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from tests.conftest import run_python
from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.core import file_digest
from vlscore.errors import ChecksumMismatch, InvalidSetting

# What the same data, settings and machine always give; run.json has times.
FILES = ("model.safetensors", "log.csv", "validation.csv", "result.json", "training.toml")


class Stopped(Exception):
    pass


def _stop_at_4(shown):
    if shown.step == 4:
        raise Stopped


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in FILES}


def _toy() -> ToyEncoder:
    return ToyEncoder(dropout=0.2, norm=True)


@pytest.fixture(scope="module")
def expected(run_toy, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    run_toy(out, encoder=_toy(), augmentation="light", sentences="shuffled")
    rows = pd.read_csv(out / "log.csv")
    assert rows["step"].tolist() == list(range(1, 13))
    assert rows["epoch"].tolist() == [epoch for epoch in range(1, 5) for _ in range(3)]
    return _digests(out)


@pytest.mark.parametrize("keep_seconds", [0.0, 600.0])
def test_a_stop_after_any_step_changes_nothing(run_toy, tmp_path, expected, keep_seconds):
    """Four epochs of three steps, stopped after each in turn: kept at every step, or at none."""
    options = {"augmentation": "light", "sentences": "shuffled", "keep_seconds": keep_seconds}
    out = tmp_path / "stopped"
    resumed = []
    for last in (1, 2, 5, 8, 12):

        def stop(shown, last=last):
            resumed.append(shown.step)
            if shown.step == last:
                raise Stopped

        with pytest.raises(Stopped):
            run_toy(out, encoder=_toy(), on_step=stop, **options)
    run_toy(out, encoder=_toy(), **options)
    assert _digests(out) == expected
    assert not (out / ".state").exists()
    if keep_seconds:
        # Nothing had been kept, so every call began anew.
        assert resumed == [1, 1, 2, *range(1, 6), *range(1, 9), *range(1, 13)]
    else:
        # What was kept last is the step before the one that stopped.
        assert resumed == [1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 12]


PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.training.conftest import LOCAL, opened
from tests.training.toys import ToyEncoder
from vlscore.training.training_run import train
from vlscore.training.settings import Execution, Start, TrainingSettings

def run(out, number, keep_seconds):
    def act(shown):
        if shown.step == 7:
            os.kill(os.getpid(), int(number))

    settings = TrainingSettings(LOCAL, epochs=4, batch_size=6, learning_rate=0.05,
        validation_share=0.2, augmentation="light", sentences="shuffled")
    train(opened(Path(sys.argv[1])), out, settings,
        Start(ToyEncoder(dropout=0.2, norm=True)),
        execution=Execution(device="cpu", on_step=act, keep_seconds=float(keep_seconds)))

for job in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        run(*job.split(":"))
        os._exit(0)
    print(os.waitpid(child, 0)[1] != 0, flush=True)
"""
KILLS = [(signal.SIGKILL, 0.0), (signal.SIGTERM, 600.0)]


@pytest.fixture(scope="module")
def killed(table, tmp_path_factory):
    """Signal -> the folder of a run that it ended; both are forks of one process."""
    folder = tmp_path_factory.mktemp("killed")
    folders = {number: folder / str(int(number)) for number, _ in KILLS}
    jobs = [f"{folders[number]}:{int(number)}:{seconds}" for number, seconds in KILLS]
    done = run_python("-c", PROGRAM, table, *jobs)
    assert done.stdout.split() == ["True", "True"], done.stderr
    return folders


@pytest.mark.slow
@pytest.mark.parametrize(("number", "keep_seconds"), KILLS)
def test_a_killed_process_leaves_a_run_that_goes_on(
    run_toy, killed, expected, number, keep_seconds
):
    """Killed without warning; and asked to end, which keeps the step at hand first."""
    out = killed[number]
    steps = []
    run_toy(
        out,
        encoder=_toy(),
        augmentation="light",
        sentences="shuffled",
        on_step=lambda shown: steps.append(shown.step),
    )
    assert steps[0] == (7 if number == signal.SIGKILL else 8)
    assert _digests(out) == expected


def test_a_finished_run_is_left_alone(run_toy, tmp_path):
    one = run_toy(tmp_path / "out")
    before = _digests(tmp_path / "out")
    steps = []
    again = run_toy(tmp_path / "out", on_step=steps.append)
    assert again.unchanged
    assert not steps
    assert again.record == one.record
    assert _digests(tmp_path / "out") == before
    steps = again.to_pandas()["step"].tolist()
    assert steps[-1] == one.record["steps"]
    assert steps == sorted(steps)


def test_other_settings_are_refused_and_can_replace(run_toy, tmp_path):
    run_toy(tmp_path / "out")
    with pytest.raises(InvalidSetting, match=r"differs: settings seed: 0 there, 1 now\."):
        run_toy(tmp_path / "out", seed=1)
    before = _digests(tmp_path / "out")
    with pytest.raises(Stopped):
        run_toy(tmp_path / "out", seed=1, overwrite=True, keep_seconds=0.0, on_step=_stop_at_4)
    # The earlier result stays until the new one is complete.
    assert _digests(tmp_path / "out") == before
    assert not run_toy(tmp_path / "out", seed=1, overwrite=True).unchanged
    assert not (tmp_path / "out" / ".state").exists()


def test_a_stopped_run_of_other_settings_is_refused(run_toy, tmp_path):
    with pytest.raises(Stopped):
        run_toy(tmp_path / "out", keep_seconds=0.0, on_step=_stop_at_4)
    with pytest.raises(InvalidSetting, match="stopped training, which differs: settings seed"):
        run_toy(tmp_path / "out", seed=1)
    steps = []
    run_toy(tmp_path / "out", seed=1, overwrite=True, on_step=lambda s: steps.append(s.step))
    assert steps[0] == 1


def test_a_damaged_state_is_refused(run_toy, tmp_path):
    out = tmp_path / "out"

    with pytest.raises(Stopped):
        run_toy(out, on_step=_stop_at_4, keep_seconds=0.0)
    (state,) = out.glob(".state/step-*")
    state.write_bytes(state.read_bytes()[:-1] + b"x")
    with pytest.raises(ChecksumMismatch, match=f"{state.name} is damaged"):
        run_toy(out)
    steps = []
    run_toy(out, overwrite=True, on_step=lambda shown: steps.append(shown.step))
    assert steps[0] == 1


def test_a_state_on_other_images_is_refused(run_toy, table, tmp_path):
    """The table is the same, and an image was replaced: the pairs were prepared anew elsewhere."""
    import cv2
    import numpy as np

    folder = shutil.copytree(table.parent, tmp_path / "studies")

    made = opened(folder / table.name)
    with pytest.raises(Stopped):
        run_toy(
            tmp_path / "out",
            preparation=made,
            pairs=tmp_path / "a",
            on_step=_stop_at_4,
            keep_seconds=0.0,
        )
    cv2.imwrite(str(folder / "s3.png"), np.eye(16, dtype=np.uint8) * 200)
    with pytest.raises(ChecksumMismatch, match="not those that the training began with"):
        run_toy(tmp_path / "out", preparation=made, pairs=tmp_path / "b")


class Repeating(ToyEncoder):
    """A toy whose report vectors read each of three numbers thousands of times."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = torch.nn.Parameter(torch.ones(3))

    def report_features(self, tokens):
        found = super().report_features(tokens)
        which = torch.arange(60_000) % 3
        read = self.numbers[which] * torch.linspace(0.5, 1.5, 60_000)
        return replace(found, vectors=found.vectors * read.mean())


def test_threads_do_not_change_the_weights(run_toy, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        runs = []
        for number in range(4):
            run_toy(tmp_path / str(number), encoder=Repeating(), epochs=2)
            runs.append(_digests(tmp_path / str(number)))
    finally:
        torch.set_num_threads(threads)
    assert runs == [runs[0]] * 4
    assert not torch.are_deterministic_algorithms_enabled()
