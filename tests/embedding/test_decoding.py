"""Worker processes decode what this process would decode, and survive what would kill one."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.doubles import BrightnessPipeline
from tests.embedding.pipelines import (
    CrashingPipeline,
    EndlessPipeline,
    LightPipeline,
    QuotingPipeline,
    UnsendablePipeline,
    UnstartablePipeline,
)
from vlscore.data import ImagePolicy
from vlscore.embedding import ImageDecoder, decoding
from vlscore.errors import InvalidSetting, UnreadableImage

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def images(tmp_path):
    return [_image(tmp_path / f"{k}.png", k) for k in range(6)]


@pytest.fixture
def always_workers(monkeypatch):
    """Treat each file as one that could crash a decoder."""
    monkeypatch.setattr(decoding, "is_plain_file", lambda path: False)


def _image(path: Path, seed: int = 0) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (20, 30), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def _outcomes(decoder, paths):
    """Pixels, or the error, of every image; all are in flight at once."""
    pending = [decoder.submit(path) for path in paths]
    outcomes = []
    for item in pending:
        try:
            outcomes.append(item.result())
        except UnreadableImage as error:
            outcomes.append(error)
    return outcomes


@pytest.mark.usefixtures("always_workers")
def test_workers_return_what_this_process_returns(images):
    with ImageDecoder(BrightnessPipeline(), ImagePolicy(), workers=2) as decoder:
        pending = [decoder.submit(path) for path in [*images, str(images[0]), "missing.png"]]
        decoded = [item.result() for item in pending[:-1]]
        with pytest.raises(UnreadableImage, match=r"missing\.png: no such file"):
            pending[-1].result()
        assert decoder.processes_started >= 1
    here = ImageDecoder(BrightnessPipeline(), ImagePolicy())
    for path, pixels in zip([*images, images[0]], decoded, strict=True):
        assert torch.equal(pixels, here.submit(path).result())
        assert pixels.dtype == torch.float32


def test_many_plain_files_start_workers(images):
    with ImageDecoder(LightPipeline(), ImagePolicy(), workers=2) as decoder:
        outcomes = _outcomes(decoder, [*images] * 20)
        assert decoder.processes_started >= 1
    # This process decodes as well until the first worker is ready.
    assert isinstance(outcomes[0].numpy(), np.ndarray)
    assert all(outcome.numpy()[1] > 0 for outcome in outcomes)


def test_files_that_kill_a_worker_cost_only_themselves(images, tmp_path):
    crash, once = _image(tmp_path / "crash.tiff"), _image(tmp_path / "once.tiff")
    table = [crash, *images, once, *images, *images]
    with ImageDecoder(CrashingPipeline(), ImagePolicy(), workers=1) as decoder:
        outcomes = _outcomes(decoder, table)
        # The first, another for a second try, one after that, and one after "once".
        assert decoder.processes_started <= 4
    assert isinstance(outcomes[0], UnreadableImage)
    assert str(outcomes[0]).startswith(f"{crash}: the decoder crashed on this file")
    assert "SIGSEGV" in str(outcomes[0])
    means = [outcome.numpy()[0] for outcome in outcomes[1:]]
    np.testing.assert_allclose(means[:6], means[7:13])
    assert means[6] == means[0]


@pytest.mark.usefixtures("always_workers")
def test_a_file_that_keeps_a_decoder_busy_is_refused_in_time(images, tmp_path):
    endless = _image(tmp_path / "endless.png")
    with ImageDecoder(
        EndlessPipeline(), ImagePolicy(), workers=1, seconds_per_image=1.5
    ) as decoder:
        outcomes = _outcomes(decoder, [images[0], endless, images[1]])
    assert str(outcomes[1]).startswith(f"{endless}: not decoded within 1.5 s")
    assert len(outcomes[0]) == len(outcomes[2]) == 2


def test_leaving_the_decoder_ends_its_workers(tmp_path):
    endless = _image(tmp_path / "endless.tiff")
    began = time.monotonic()
    with ImageDecoder(EndlessPipeline(), ImagePolicy(), workers=1) as decoder:
        pending = [decoder.submit(endless) for _ in range(3)]
        worker = _pid_in(endless.with_suffix(".pid"))
    _wait_until_gone([worker])
    assert time.monotonic() - began < 60
    for item in pending:
        with pytest.raises(InvalidSetting, match="decoder was closed"):
            item.result()


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.usefixtures("always_workers")
def test_unexpected_errors_name_the_file_and_quote_nothing(images, workers):
    with ImageDecoder(QuotingPipeline(), ImagePolicy(), workers) as decoder:
        (error,) = _outcomes(decoder, images[:1])
    assert str(error).startswith(f"{images[0]}: TypeError while decoding")
    assert "Doe" not in str(error)


@pytest.mark.parametrize("pipeline", [UnsendablePipeline, UnstartablePipeline])
@pytest.mark.usefixtures("always_workers")
def test_without_workers_images_are_decoded_here_and_one_warning_says_why(images, pipeline):
    with (
        ImageDecoder(pipeline(), ImagePolicy(), workers=2) as decoder,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        outcomes = _outcomes(decoder, images * 8)
    assert {outcome.numpy()[1] for outcome in outcomes} == {os.getpid()}
    assert len([w for w in caught if "no worker process can be started" in str(w.message)]) == 1


SCRIPT = """
import sys
from vlscore.embedding import ImageDecoder, decoding
from vlscore.data import ImagePolicy
from tests.embedding.pipelines import LightPipeline
decoding.is_plain_file = lambda path: False
class MainPipeline(LightPipeline):
    pass
pipeline = LightPipeline() if sys.argv[1] == "module" else MainPipeline()
print("started")
with ImageDecoder(pipeline, ImagePolicy(), workers=2) as decoder:
    pending = [decoder.submit(path) for path in sys.argv[2:]]
    pixels = [item.result() for item in pending]
    print(len(pixels), decoder.processes_started)
"""


@pytest.mark.parametrize("how", ["script", pytest.param("standard input", marks=pytest.mark.slow)])
def test_a_script_needs_no_main_guard(images, tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script) if how == "script" else "-", "module", *images]
    done = _run(command, SCRIPT if how == "standard input" else None)
    assert done.stdout.split() == ["started", "6", "1"]
    assert done.stderr == ""


@pytest.mark.slow
def test_a_pipeline_of_the_script_itself_is_used_here(images):
    done = _run([sys.executable, "-", "main", *images], SCRIPT)
    assert done.stdout.split()[:2] == ["started", "6"]
    assert done.stderr.count("MainPipeline is defined in the script that runs") == 1
    assert "Traceback" not in done.stderr


BUSY = """
import sys
from vlscore.embedding import ImageDecoder
from vlscore.data import ImagePolicy
from tests.embedding import pipelines

pipeline = getattr(pipelines, sys.argv[1])()
with ImageDecoder(pipeline, ImagePolicy(), workers=2) as decoder:
    [decoder.submit(path) for path in sys.argv[2:] * 10][0].result()
"""


@pytest.mark.parametrize(
    ("pipeline", "how"),
    [
        ("EndlessPipeline", signal.SIGINT),
        pytest.param("SlowPipeline", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_no_worker_outlives_its_parent(tmp_path, pipeline, how):
    """After SIGKILL a worker ends with its image: in time, even if that has no end."""
    busy = [_image(tmp_path / f"endless{k}.tiff") for k in range(2)]
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, pipeline, *busy], cwd=REPOSITORY, stderr=subprocess.DEVNULL
    )
    workers = [_pid_in(busy[0].with_suffix(".pid"))]
    process.send_signal(how)
    assert process.wait(10) != 0
    _wait_until_gone(workers)


def _run(command, given):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, timeout=120
    )


def _pid_in(path: Path) -> int:
    for _ in range(1200):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"no worker has written {path}")


def _wait_until_gone(processes: list[int]) -> None:
    for _ in range(200):
        if not any(_is_alive(process) for process in processes):
            return
        time.sleep(0.05)
    raise AssertionError(f"still alive after 10 s: {processes}")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"  # a zombie has ended, and waits for whoever inherited it
