"""Threads beside the work, and the end of the program."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from vlscore.core import BackgroundThread

# Children share what one process has imported; each ends at another moment of the thread's work.
DIGESTS = """
import os, sys, time
import torch
torch.set_num_threads(1)
from vlscore.core.threads import assure
from vlscore.encoders import checkpoints as known_digests
from vlscore.encoders.checkpoints import tensors_digest

# A transposed tensor is copied first: most of the time is spent inside of PyTorch.
tensors = {str(k): torch.full((600, 600), float(k)).T for k in range(60)}
def compute(threads, stopped):
    return tensors_digest(tensors, threads=threads, stopped=stopped)

before = time.perf_counter()
known_digests.digest_of([CHECKPOINT], "x", compute)
seconds = time.perf_counter() - before
statuses = []
for k in range(MOMENTS):
    child = os.fork()
    if child == 0:
        digest, wait = known_digests.digest_of([CHECKPOINT], "x", compute)
        assert wait is not None
        time.sleep(seconds * k / MOMENTS)
        sys.exit(0)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(statuses)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_program_that_ends_while_a_digest_is_verified_ends_well(tmp_path):
    checkpoint = tmp_path / "model.safetensors"
    checkpoint.write_bytes(b"0")
    moments = 4
    program = f"CHECKPOINT, MOMENTS = __import__('pathlib').Path({str(checkpoint)!r}), {moments}\n"
    done = subprocess.run(
        [sys.executable, "-c", program + DIGESTS],
        env={**os.environ, "VLSCORE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str([0] * moments)
    assert done.stderr == ""


def test_the_work_is_told_to_stop_and_waited_for():
    ended = threading.Event()

    def work(stopped):
        while not stopped():
            time.sleep(0.001)
        time.sleep(0.05)
        ended.set()

    thread = BackgroundThread(work, "test")
    thread.stop()
    assert ended.is_set()
    thread.wait()


def test_a_thread_that_nobody_holds_is_stopped_when_python_ends():
    program = """
import gc, time
from vlscore.core.threads import BackgroundThread
def work(stopped):
    while not stopped():
        time.sleep(0.001)
    print("stopped", flush=True)
BackgroundThread(work, "test")
gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_ctrl_c_while_python_ends_leaves_no_thread_behind():
    program = """
import time
from vlscore.core.threads import BackgroundThread
def work(stopped):
    while not stopped():
        time.sleep(0.001)
    print("stopping", flush=True)
    time.sleep(0.3)
    print("stopped", flush=True)
BackgroundThread(work, "test")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=30)
    assert (process.returncode, rest, said) == (0, "stopped\n", "")
