"""A run that was stopped ends with the same bytes as one that was not."""

import csv
import json
import shutil
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests import forked
from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.core import file_digest
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.training import TrainingSettings

# What the same data, settings and machine always give; run.json has times.
FILES = ("model.safetensors", "log.csv", "validation.csv", "failures.csv", "training.toml")


SHUFFLED = {"augmentation": "light", "sentences": "shuffled"}


class Stopped(Exception):
    pass


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in FILES}


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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
    assert [path.name for path in (out / ".state").glob("step-*")] == ["step-00000012.safetensors"]
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

def run(out, number, keep_seconds):
    def act(shown):
        if shown.step == 7:
            os.kill(os.getpid(), int(number))

    settings = TrainingSettings(LOCAL, epochs=4, batch_size=6, learning_rate=0.05,
        validation_share=0.2, augmentation="light", sentences="shuffled")
    train(opened(Path(sys.argv[1])), out, settings,
        Start(ToyEncoder(dropout=0.2, norm=True)), device="cpu", on_step=act,
        keep_seconds=float(keep_seconds))

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
    done = forked.run("-c", PROGRAM, table, *jobs)
    assert done.stdout.split() == ["True", "True"], done.stderr
    return folders


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


@pytest.fixture(scope="module")
def continued(run_toy, tmp_path_factory):
    """A run of two epochs (six steps), continued for two more, and its folder after the first."""
    out = tmp_path_factory.mktemp("long")
    run_toy(out, encoder=_toy(), epochs=2, **SHUFFLED)
    first = shutil.copytree(out, tmp_path_factory.mktemp("first") / "out")
    steps = []
    run = run_toy(out, encoder=_toy(), on_step=lambda s: steps.append(s.step), **SHUFFLED)
    return first, run, steps


def _column(folder: Path, name: str, log: str = "log.csv") -> list[str]:
    with (folder / log).open(newline="") as stream:
        return [row[name] for row in csv.DictReader(stream)]


def test_more_epochs_continue_a_finished_run(continued, expected):
    first, run, steps = continued
    assert steps == [7, 8, 9, 10, 11, 12]
    assert (run.resumed_from, run.facts["epochs_in_parts"]) == (6, [2, 2])
    # Logs, pairs and optimiser go on; what was logged before is there unchanged.
    assert _column(run.folder, "step") == [str(step) for step in range(1, 13)]
    assert _column(run.folder, "loss")[:6] == _column(first, "loss")
    assert _column(run.folder, "step", "validation.csv") == ["3", "6", "9", "12"]
    # The rate of two epochs, twice.
    settings = TrainingSettings(learning_rate=0.05, epochs=2)
    rates = [settings.rate_at(step, 6) for step in range(6)]
    assert [float(rate) for rate in _column(run.folder, "learning_rate")] == [*rates, *rates]
    assert _digests(run.folder) != expected
    # AdamW counts its own steps.
    state = load_file(run.folder / ".state" / "step-00000012.safetensors")
    assert float(state["optimizer.0.step"]) == 12


def test_a_continued_run_says_that_it_is_not_one_from_the_beginning(continued, run_toy, tmp_path):
    _, run, _ = continued
    assert "trained for 2 + 2 epochs: each part has its own" in run.notes[-1]
    assert (run.folder / "training.toml").read_text().startswith("# trained for 2 + 2 epochs")
    card = json.loads((run.folder / "card.json").read_text())
    assert card["training"]["epochs_in_parts"] == [2, 2]
    again = run_toy(run.folder, encoder=_toy(), **SHUFFLED)
    assert again.unchanged
    out = shutil.copytree(run.folder, tmp_path / "out")
    longer = run_toy(out, encoder=_toy(), epochs=5, **SHUFFLED)
    assert longer.facts["epochs_in_parts"] == [2, 2, 1]
    notes = run_toy(out, encoder=_toy(), overwrite=True, **SHUFFLED).notes
    assert not any("trained for" in note for note in notes)


@pytest.mark.parametrize("keep_seconds", [0.0, 600.0])
def test_a_stop_of_a_continued_run_changes_nothing(
    continued, run_toy, tmp_path, expected, keep_seconds
):
    first, _, _ = continued
    out = shutil.copytree(first, tmp_path / "out")
    before = _digests(out)
    for last in (7, 8, 10, 12):

        def stop(shown, last=last):
            if shown.step == last:
                raise Stopped

        with pytest.raises(Stopped):
            run_toy(out, encoder=_toy(), on_step=stop, keep_seconds=keep_seconds, **SHUFFLED)
        # Until the end, the folder holds the first run, which may be asked for.
        assert _digests(out) == before
        assert run_toy(out, encoder=_toy(), epochs=2, **SHUFFLED).unchanged
    run_toy(out, encoder=_toy(), **SHUFFLED)
    undisturbed = shutil.copytree(first, tmp_path / "undisturbed")
    run_toy(undisturbed, encoder=_toy(), **SHUFFLED)
    assert _digests(out) == _digests(undisturbed)
    assert _files(out / ".state") == _files(undisturbed / ".state")
    assert not (out / ".parts").exists()


def test_what_cannot_be_continued_says_how_to_train_on(continued, run_toy, tmp_path):
    first, _, _ = continued
    out = shutil.copytree(first, tmp_path / "out")
    # Another difference is another run.
    with pytest.raises(InvalidSetting, match=r"settings epochs: .*; settings seed: 0 there, 1 now"):
        run_toy(out, encoder=_toy(), seed=1, **SHUFFLED)
    shutil.rmtree(out / ".state")
    assert run_toy(out, encoder=_toy(), epochs=2, **SHUFFLED).unchanged
    with pytest.raises(InvalidSetting, match=f"--weights {out} --epochs 2 --out ANOTHER-FOLDER"):
        run_toy(out, encoder=_toy(), **SHUFFLED)
    early = tmp_path / "early"
    options = {"learning_rate": 1e-9, "patience": 1}
    ended = run_toy(early, encoder=_toy(), epochs=8, **options)
    assert ended.facts["steps"] < 24
    with pytest.raises(InvalidSetting, match="training ended early, after 1 validations"):
        run_toy(early, encoder=_toy(), epochs=9, **options)


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
