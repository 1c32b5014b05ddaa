"""Worker process that decodes images; run by `workers`, never imported.

It imports only those modules of the project that the image pipeline needs, and nothing of the
user's script. Standard input receives a line of json with the module search path, the
length of what follows and the shared memory, then the pickled pipeline and policy, then one line of
json for every image: its path, and the slot of shared memory for its pixels. Standard output sends
one line of json for every answer, followed by the pixels if they did not fit into the slot.
"""

import contextlib
import ctypes
import faulthandler
import json
import mmap
import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answer standard input on standard output until it ends."""
    # The parent handles Ctrl-C and ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent=int(sys.argv[1]))
    requests, replies, nowhere = _own_streams()
    # A time limit in a separate thread, which works while a decoder hangs.
    faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True, file=nowhere)
    start = json.loads(requests.readline())
    sys.path[:] = start["path"]
    try:
        pipeline, policy = pickle.loads(requests.read(start["bytes"]))
    except BaseException as error:  # the pipeline's modules may raise anything at import
        _send(replies, {"cannot_start": f"{type(error).__name__}: {error}"})
        return
    from vlscore.core import keep_freed_memory

    keep_freed_memory()
    shared = _shared_memory(start["shared"])
    # Hide messages of C libraries about damaged files.
    os.dup2(nowhere.fileno(), 2)
    faulthandler.cancel_dump_traceback_later()
    _send(replies, {"ready": True})
    for line in requests:
        faulthandler.dump_traceback_later(start["seconds"], exit=True, file=nowhere)
        asked = json.loads(line)
        answer, pixels = _answer(pipeline, policy, asked["image"])
        if pixels is not None:
            answer["in_slot"] = _write(pixels, shared, asked["slot"])
        faulthandler.cancel_dump_traceback_later()
        _send(replies, answer, b"" if pixels is None or answer["in_slot"] else pixels.tobytes())


def _answer(pipeline: Any, policy: Any, image: str) -> tuple[dict[str, Any], Any]:
    """Build the reply for one image: a JSON header, and pixels or None."""
    from vlscore.errors import VLScoreError

    try:
        pixels = pipeline.load_stored(image, policy)
        return {"dtype": str(pixels.dtype), "shape": list(pixels.shape)}, pixels
    except VLScoreError as error:
        return {"error": type(error).__name__, "message": str(error)}, None
    except BaseException as error:  # panics of decoders in Rust are not Exceptions
        # The message stays in this process: decoders may quote the header of a DICOM file.
        return {"fault": type(error).__name__}, None


def _shared_memory(given: list[int] | None) -> mmap.mmap | None:
    """Map the parent's memory for pixels; None if pixels go through the pipe."""
    if given is None:
        return None
    descriptor, size = given
    try:
        return mmap.mmap(descriptor, size)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _write(pixels: Any, shared: mmap.mmap | None, slot: list[int] | None) -> bool:
    """Write an array into its slot; return False if it does not fit."""
    if shared is None or slot is None or pixels.nbytes > slot[1]:
        return False
    import numpy as np  # the pipeline has imported it

    np.ndarray(pixels.shape, pixels.dtype, shared, slot[0])[...] = pixels
    return True


def _end_with(parent: int) -> None:
    """Let the system end this process when its parent ends for any reason.

    On other systems than Linux the end of standard input does it, after the current image.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _own_streams() -> tuple[BinaryIO, BinaryIO, BinaryIO]:
    """Reserve standard input and output for the parent; what libraries print is discarded."""
    nowhere = open(os.devnull, "r+b", buffering=0)  # noqa: SIM115  open as long as the process
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(nowhere.fileno(), 0)
    os.dup2(nowhere.fileno(), 1)
    return requests, replies, nowhere


def _send(replies: BinaryIO, answer: dict[str, Any], pixels: bytes = b"") -> None:
    replies.write(json.dumps(answer).encode("ascii") + b"\n" + pixels)
    replies.flush()


if __name__ == "__main__":
    # The parent has ended if nobody reads: nothing is left to do.
    with contextlib.suppress(BrokenPipeError):
        main()
