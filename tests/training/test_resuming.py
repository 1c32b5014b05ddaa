"""A run that was stopped ends with the same bytes as one that was not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.core import file_digest
from vlscore.errors import ChecksumMismatch, InvalidSetting

# What the same data, settings and machine always give; run.json has times.
FILES = ("model.safetensors", "log.csv", "validation.csv", "failures.csv", "training.toml")


class Stopped(Exception):
    pass


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in FILES}


def _toy() -> ToyEncoder:
    return ToyEncoder(dropout=0.2, norm=True)


@pytest.fixture(scope="module")
def expected(run_toy, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    run_toy(out, encoder=_toy(), augmentation="light", sentences="shuffled")
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
    result = run_toy(out, encoder=_toy(), **options)
    assert _digests(out) == expected
    assert not (out / ".state").exists()
    assert not (out / ".parts").exists()
    if keep_seconds:
        # Nothing had been kept, so every call began anew.
        assert resumed == [1, 1, 2, *range(1, 6), *range(1, 9), *range(1, 13)]
    else:
        # What was kept last is the step before the one that stopped.
        assert result.resumed_from == 11
        assert resumed == [1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 12]


PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.training.conftest import LOCAL, opened
from tests.training.toys import ToyEncoder
from vlscore.training.run import train
from vlscore.training.settings import TrainingSettings
from vlscore.training.start import Start

def act(shown):
    if shown.step == int(sys.argv[3]):
        os.kill(os.getpid(), int(sys.argv[4]))

settings = TrainingSettings(LOCAL, epochs=4, batch_size=6, learning_rate=0.05,
    validation_share=0.2, augmentation="light", sentences="shuffled")
train(opened(Path(sys.argv[1])), sys.argv[2], settings,
    Start(ToyEncoder(dropout=0.2, norm=True)), device="cpu", on_step=act,
    keep_seconds=float(sys.argv[5]))
"""


@pytest.mark.parametrize(
    ("number", "keep_seconds"), [(signal.SIGKILL, 0.0), (signal.SIGTERM, 600.0)]
)
def test_a_killed_process_leaves_a_run_that_goes_on(
    run_toy, table, tmp_path, expected, number, keep_seconds
):
    """Killed without warning; and asked to end, which keeps the step at hand first."""
    out = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, table, out, "7", str(int(number)), str(keep_seconds)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, done.stderr
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
    assert again.facts == one.facts
    assert _digests(tmp_path / "out") == before
    steps = again.to_pandas()["step"].tolist()
    assert steps[-1] == one.facts["steps"]
    assert steps == sorted(steps)


def test_other_settings_are_refused_and_can_replace(run_toy, tmp_path):
    run_toy(tmp_path / "out")
    with pytest.raises(InvalidSetting, match=r"differs: settings seed: 0 there, 1 now\."):
        run_toy(tmp_path / "out", seed=1)
    assert not run_toy(tmp_path / "out", seed=1, overwrite=True).unchanged


def test_more_epochs_than_a_finished_run_had_say_how_to_train_on(run_toy, tmp_path):
    done = run_toy(tmp_path / "out")
    had = done.facts["key"]["settings"]["epochs"]
    with pytest.raises(InvalidSetting) as refused:
        run_toy(tmp_path / "out", epochs=had + 2)
    told = str(refused.value)
    assert f"was trained for {had} epochs, at whose end the learning rate had fallen to 0" in told
    assert f"--weights {tmp_path / 'out'} --epochs 2 --out ANOTHER-FOLDER" in told
    # Another difference beside it is another run.
    with pytest.raises(InvalidSetting, match=r"settings epochs: .*; settings seed: 0 there, 1 now"):
        run_toy(tmp_path / "out", epochs=had + 2, seed=1)


def test_a_damaged_state_is_refused(run_toy, tmp_path):
    out = tmp_path / "out"

    def stop(shown):
        if shown.step == 4:
            raise Stopped

    with pytest.raises(Stopped):
        run_toy(out, on_step=stop, keep_seconds=0.0)
    (state,) = out.glob(".state/step-*")
    state.write_bytes(state.read_bytes()[:-1] + b"x")
    with pytest.raises(ChecksumMismatch, match=f"{state.name} is damaged"):
        run_toy(out)
    assert run_toy(out, overwrite=True).resumed_from == 0


def test_a_state_on_other_images_is_refused(run_toy, table, tmp_path):
    """The table is the same, and an image was replaced: the pairs were prepared anew elsewhere."""
    import shutil

    import cv2
    import numpy as np

    folder = shutil.copytree(table.parent, tmp_path / "studies")

    def stop(shown):
        if shown.step == 4:
            raise Stopped

    made = opened(folder / table.name)
    with pytest.raises(Stopped):
        run_toy(
            tmp_path / "out",
            preparation=made,
            pairs=tmp_path / "a",
            on_step=stop,
            keep_seconds=0.0,
        )
    cv2.imwrite(str(folder / "s3.png"), np.eye(16, dtype=np.uint8) * 200)
    with pytest.raises(ChecksumMismatch, match="not those that the training began with"):
        run_toy(tmp_path / "out", preparation=made, pairs=tmp_path / "b")


@pytest.mark.parametrize("frozen", [False, True])
def test_towers_learn_in_training_mode_from_the_first_step(run_toy, tmp_path, frozen):
    """Dropout draws and batch norms move from step one on, unless these are frozen."""
    encoder = _toy()
    seen = []

    def look(shown):
        modules = (encoder, encoder.dropout, encoder.norm)
        seen.append([*(module.training for module in modules), encoder.norm.running_mean.sum()])

    run_toy(tmp_path / "out", encoder=encoder, frozen_norms=frozen, on_step=look, epochs=2)
    assert len(seen) == 6
    assert all(modes[:2] == [True, True] and modes[2] != frozen for modes in seen)
    means = [float(modes[3]) for modes in seen]
    assert len(set(means)) == (1 if frozen else 6)
    assert not encoder.training
