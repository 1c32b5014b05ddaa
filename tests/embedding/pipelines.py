"""Image pipelines for workers, of which each one misbehaves in its own way.

They import no torch, so that a worker starts in a moment, and are in a module of their own, because
workers do not read the script that runs.
"""

import ctypes
import os
import signal
import time
from pathlib import Path

import numpy as np

from vlscore.data import read_image


class LightPipeline:
    """The mean of an image, and the process that made it."""

    def load_stored(self, image, policy) -> np.ndarray:
        self.misbehave(Path(image))
        mean = read_image(image, policy).pixels.mean()
        return np.array([mean, os.getpid()], np.float64)

    def from_stored(self, stored):
        return stored

    def misbehave(self, path: Path) -> None:
        pass


class CrashingPipeline(LightPipeline):
    """Dies, as a C library does, at files called crash*; at files called once* the first time."""

    def misbehave(self, path: Path) -> None:
        seen = path.with_suffix(".seen")
        if path.name.startswith("crash") or (path.name.startswith("once") and not seen.exists()):
            seen.touch()
            os.kill(os.getpid(), signal.SIGSEGV)


class EndlessPipeline(LightPipeline):
    """Never returns from files called endless*, and lets no other thread run meanwhile."""

    def misbehave(self, path: Path) -> None:
        if path.name.startswith("endless"):
            path.with_suffix(".pid").write_text(str(os.getpid()))
            if hasattr(ctypes, "PyDLL"):
                ctypes.PyDLL(None).sleep(600)
            time.sleep(600)


class SlowPipeline(LightPipeline):
    """Takes a second for each file."""

    def misbehave(self, path: Path) -> None:
        path.with_suffix(".pid").write_text(str(os.getpid()))
        time.sleep(1)


class QuotingPipeline(LightPipeline):
    """Fails with a message that quotes a header."""

    def misbehave(self, path: Path) -> None:
        raise TypeError("the header of Doe^Jane")


class UnsendablePipeline(LightPipeline):
    """Cannot be sent to another process."""

    def __init__(self) -> None:
        self.transform = lambda pixels: pixels


class UnstartablePipeline(LightPipeline):
    """Breaks in the process that receives it."""

    def __setstate__(self, state: dict) -> None:
        raise RuntimeError("no such library")

    def __getstate__(self) -> dict:
        return {"something": 1}
