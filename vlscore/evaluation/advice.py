"""What would make an evaluation faster, as far as measurements of its stages show it."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from vlscore.embedding import PendingPixels, StudyEmbedder
from vlscore.encoders import why_slow
from vlscore.errors import VLScoreError
from vlscore.images import read_image

if TYPE_CHECKING:
    from vlscore.evaluation.stages import Stages

T = TypeVar("T")

# Of so many images and texts bf16 is tried, and so many files are copied: enough for a ratio.
_TRIED, _COPIED = 16, 4
_ROUNDS = 3
# Shares of a study's time from which something is worth saying.
_MUCH, _SOME = 0.3, 0.1


def advice_on(
    measured: "Stages",
    embedder: StudyEmbedder,
    stored: Mapping[str, Any],
    texts: Sequence[str],
    convertible: bool,
) -> tuple[str, ...]:
    """What would help, one sentence each.

    Args:
        measured: the stages.
        embedder: without a cache.
        stored: path -> what decoding ended with.
        texts: reports that were embedded.
        convertible: whether the weights are a checkpoint that `vlscore weights convert` converts.
    """
    found: list[str] = []
    decoding, encoding = measured.part("decoding"), measured.part("encoding")
    if decoding > _SOME:
        found.append(_of_workers(str(embedder.encoder.device.type), decoding, encoding))
        found += _of_copies(list(stored), embedder, decoding)
    if embedder.engine.precision == "fp32" and encoding > _MUCH:
        found.append(_of_half_precision(embedder, stored, texts))
    repeated = 1 - len(set(texts)) / max(len(texts), 1)
    if repeated > _SOME:
        found.append(
            f"{repeated:.0%} of the reports repeat another one: with the cache each text is "
            "embedded once, and never again"
        )
    loading = sum(stage.seconds for stage in measured.startup)
    if loading > 5 * measured.seconds / measured.studies and loading > 3:
        convert = (
            ", and give the checkpoint as safetensors (`vlscore weights convert`), which is used "
            "where it lies"
        )
        found.append(
            f"What is done once a run takes {loading:.1f} s: score several tables in one command "
            f"(`vlscore compare`){convert if convertible else ''}"
        )
    if os.environ.get("VLSCORE_CACHE", "").strip().lower() == "off":
        found.append("The cache is off (VLSCORE_CACHE=off): with it a second run embeds nothing")
    if measured.failed:
        found.append(f"{measured.failed} of the first rows could not be used and were left out")
    return tuple(found)


def _of_workers(device: str, decoding: float, encoding: float) -> str:
    """What processes that decode can gain, where decoding and encoding take these shares."""
    cores = os.cpu_count() or 1
    said = f"Decoding is {decoding:.0%} of a study"
    if device == "cpu":
        said += (
            f", done in --workers processes (default: one a core; here {cores}), which share the "
            "cores with the encoder"
        )
    else:
        rest = max(1 - decoding, 0.01)
        needed = math.ceil(decoding / rest)
        said += f": it keeps up with the encoder from {needed} --workers processes on"
        if needed > cores:
            said += f", and here are {cores} cores: decoding is the limit of a first run"
    return f"{said}. From the second run on nothing of it is done: the cache has the embeddings"


def _of_copies(files: Sequence[str], embedder: StudyEmbedder, decoding: float) -> list[str]:
    """What smaller copies of the images would gain, tried on some of those that are larger."""
    pipeline, policy = embedder.encoder.image_pipeline, embedder.image_policy
    side = 2 * embedder.encoder.card.image_size
    before = after = 0.0
    count = 0
    with tempfile.TemporaryDirectory() as place:
        for path in files[:: max(len(files) // _COPIED, 1)][:_COPIED]:
            copy = Path(place) / f"{count}.png"
            try:
                if not _write_copy(path, copy, side, embedder):
                    continue
                took = _seconds(partial(pipeline.load_stored, path, policy))
                after += _seconds(partial(pipeline.load_stored, copy, policy))
            except (VLScoreError, OSError):
                continue
            before += took
            count += 1
    if not count or decoding * (1 - after / before) < _SOME:
        return []
    return [
        f"Copies of the images as PNG with a shorter side of {side} pixels decode "
        f"{before / after:.0f} times as fast (tried on {count}). They change the numbers a little: "
        "use the same copies for all that is compared"
    ]


def _write_copy(path: str, copy: Path, side: int, embedder: StudyEmbedder) -> bool:
    """Write a smaller copy; False where the image itself is not much larger."""
    from PIL import Image

    pixels = read_image(path, embedder.image_policy).pixels
    height, width = pixels.shape
    if min(height, width) < 1.5 * side:
        return False
    scale = side / min(height, width)
    picture = Image.fromarray(np.rint(pixels * 255).astype(np.uint8))
    picture.resize((round(width * scale), round(height * scale)), Image.Resampling.BOX).save(copy)
    return True


def _of_half_precision(
    embedder: StudyEmbedder, stored: Mapping[str, Any], texts: Sequence[str]
) -> str:
    """What bf16 would gain, tried where the hardware has units for it."""
    slow = why_slow("bf16", embedder.encoder.device)
    if slow is not None:
        return f"bf16 is no help: {slow}"
    both = (embedder, embedder.like_this(precision="bf16", cache=False))
    some = dict(islice(stored.items(), _TRIED))
    distinct = list(dict.fromkeys(texts))[:_TRIED]

    def embed(each: StudyEmbedder) -> None:
        each.engine.forget()
        each.engine.embed_pending(pending_of(some, each))
        each.engine.embed_reports(distinct)

    for each in both:  # to warm up
        embed(each)
    # In turn, and the best of each: what else the machine does is not what is compared.
    rounds = [[_seconds(partial(embed, each)) for each in both] for _ in range(_ROUNDS)]
    full, half = (min(times) for times in zip(*rounds, strict=True))
    ratio = full / half if half > 0 else 1.0
    if ratio < 1 + _SOME:
        return f"bf16 is no help here: it takes {1 / ratio:.1f} times as long as fp32"
    return (
        f"The encoder is {ratio:.1f} times as fast in bf16 (--precision bf16); --check-precision "
        "measures on your studies what that changes"
    )


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def pending_of(stored: Mapping[str, Any], embedder: StudyEmbedder) -> list[PendingPixels]:
    """Images that are decoded already, by their paths."""
    pipeline = embedder.encoder.image_pipeline
    return [
        PendingPixels(path, partial(_same, pixels), from_stored=pipeline.from_stored)
        for path, pixels in stored.items()
    ]


def _same(value: T) -> T:
    return value
