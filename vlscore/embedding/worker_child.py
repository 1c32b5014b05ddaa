"""Worker process that decodes images; run by `decoding`, never imported.

It imports only those modules of the project that the image pipeline needs, and nothing of the
user's script. Standard input holds pickles: the module search path with the seconds of an image,
the pipeline with its policy, then one path after another. Standard output holds one pickle for each
answer: its kind ("ready", "pixels", "error", "fault" or "cannot start") and its content; that of
"pixels" is the pixels and what was noted of the image.
"""

import contextlib
import faulthandler
import os
import pickle
import sys
from typing import Any, BinaryIO

# Importing torch from a cold disk on a busy machine takes a minute.
_SECONDS_TO_START = 300


def main() -> None:
    """Answer standard input on standard output until it ends."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        # What libraries print is discarded.
        os.dup2(nowhere.fileno(), 0)
        os.dup2(nowhere.fileno(), 1)
        _answer_all(requests, replies, nowhere)


def _answer_all(requests: BinaryIO, replies: BinaryIO, nowhere: Any) -> None:
    # The time limit has a thread of C, which works while a decoder hangs.
    faulthandler.dump_traceback_later(_SECONDS_TO_START, exit=True, file=nowhere)
    sys.path[:], seconds = pickle.load(requests)
    try:
        pipeline, policy = pickle.load(requests)
        from vlscore.core import keep_freed_memory
    except BaseException as error:  # the pipeline's modules may raise anything at import
        _send(replies, ("cannot start", f"{type(error).__name__}: {error}"))
        return
    keep_freed_memory()
    faulthandler.cancel_dump_traceback_later()
    _send(replies, ("ready", None))
    while True:
        path = pickle.load(requests)
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        answer = _answer(pipeline, policy, path)
        faulthandler.cancel_dump_traceback_later()
        _send(replies, answer)


def _answer(pipeline: Any, policy: Any, image: str) -> tuple[str, Any]:
    import warnings

    from vlscore.errors import ImageNoteWarning, VLScoreError

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ImageNoteWarning)
            pixels = pipeline.load_stored(image, policy)
        return "pixels", (pixels, [str(each.message) for each in caught])
    except VLScoreError as error:
        return "error", (type(error).__name__, str(error))
    except BaseException as error:  # panics of decoders in Rust are not Exceptions
        # The message stays in this process: decoders may quote the header of a DICOM file.
        return "fault", type(error).__name__


def _send(replies: BinaryIO, answer: tuple[str, Any]) -> None:
    pickle.dump(answer, replies, protocol=5)
    replies.flush()


if __name__ == "__main__":
    # The parent has ended if nobody asks or reads: nothing is left to do.
    with contextlib.suppress(EOFError, BrokenPipeError):
        main()
