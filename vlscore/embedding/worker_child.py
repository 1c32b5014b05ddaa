"""Decodes images in a process of its own; run by `worker`, never imported.

It imports nothing of the project but what the image pipeline itself needs, and nothing of the
script that the user runs. Standard input brings a line of json with the module search path and the
length of what follows, then the pickled pipeline and policy, then one line of json with a path for
every image. Standard output takes one line of json for every answer, and pixels behind it.
"""

import contextlib
import ctypes
import faulthandler
import json
import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answer standard input on standard output until it ends."""
    # Ctrl-C is the parent's business: it ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent=int(sys.argv[1]))
    requests, replies, nowhere = _own_streams()
    # Ends the process from a thread of its own, whatever the others are busy with.
    faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True, file=nowhere)
    start = json.loads(requests.readline())
    sys.path[:] = start["path"]
    try:
        pipeline, policy = pickle.loads(requests.read(start["bytes"]))
    except BaseException as error:  # the pipeline's modules may raise anything at import
        _send(replies, {"cannot_start": f"{type(error).__name__}: {error}"})
        return
    # What C libraries print about damaged files belongs on nobody's screen.
    os.dup2(nowhere.fileno(), 2)
    faulthandler.cancel_dump_traceback_later()
    _send(replies, {"ready": True})
    for line in requests:
        faulthandler.dump_traceback_later(start["seconds"], exit=True, file=nowhere)
        answer, pixels = _answer(pipeline, policy, json.loads(line))
        faulthandler.cancel_dump_traceback_later()
        _send(replies, answer, pixels)


def _answer(pipeline: Any, policy: Any, image: str) -> tuple[dict[str, Any], bytes]:
    from vlscore.errors import VLScoreError

    try:
        pixels = pipeline.load_stored(image, policy)
        content = pixels.tobytes()
        stated = {"dtype": str(pixels.dtype), "shape": list(pixels.shape), "bytes": len(content)}
        return stated, content
    except VLScoreError as error:
        return {"error": type(error).__name__, "message": str(error)}, b""
    except BaseException as error:  # panics of decoders written in Rust are no Exceptions
        # Its own words stay here: decoders may quote the header of a DICOM file.
        return {"fault": type(error).__name__}, b""


def _end_with(parent: int) -> None:
    """Let the system end this process when its parent ends, however that comes about.

    Elsewhere than on Linux the end of standard input does it, after the image at hand.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _own_streams() -> tuple[BinaryIO, BinaryIO, BinaryIO]:
    """Standard input and output for the parent alone: libraries that print write to nowhere."""
    nowhere = open(os.devnull, "r+b", buffering=0)  # noqa: SIM115  open as long as the process
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(nowhere.fileno(), 0)
    os.dup2(nowhere.fileno(), 1)
    return requests, replies, nowhere


def _send(replies: BinaryIO, answer: dict[str, Any], pixels: bytes = b"") -> None:
    replies.write(json.dumps(answer).encode("ascii") + b"\n" + pixels)
    replies.flush()


if __name__ == "__main__":
    # The parent has gone where nobody reads: nothing is left to do, and nobody to tell.
    with contextlib.suppress(BrokenPipeError):
        main()
