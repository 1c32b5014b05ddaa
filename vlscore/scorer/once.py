"""One call: reports in, scores out, the encoder kept for the next call."""

import os
from functools import lru_cache
from typing import Any, overload

from vlscore.scorer.result import Score, ScoreTable
from vlscore.scorer.scorer import OnError, Scorer

# Options whose scorers stay loaded; each may hold an encoder.
_KEPT = 4


@overload
def score(
    image: list[Any],
    candidate: Any,
    reference: Any = None,
    *,
    on_error: OnError = "raise",
    **options: Any,
) -> ScoreTable: ...
@overload
def score(
    image: Any,
    candidate: str,
    reference: str | None = None,
    *,
    on_error: OnError = "raise",
    **options: Any,
) -> Score: ...
@overload
def score(
    image: Any,
    candidate: Any,
    reference: Any = None,
    *,
    on_error: OnError = "raise",
    **options: Any,
) -> ScoreTable: ...
def score(
    image: Any,
    candidate: Any,
    reference: Any = None,
    *,
    on_error: OnError = "raise",
    **options: Any,
) -> Score | ScoreTable:
    """Score generated reports against image and reference.

    Args:
        image: path (DICOM, PNG, JPEG, TIFF), PIL image, array or tensor; a tuple of them is one
            study of several views; a list is a batch. None for metrics of texts alone.
        candidate: generated report, or several.
        reference: reference report, or several.
        on_error: as in `Scorer.score`.
        options: as in `Scorer` (encoder, metrics, device, precision, ...). The scorers of the
            latest four combinations of options stay loaded.

    Returns: a Score, or a ScoreTable for a batch.
    Raises: UnreadableImage, InvalidReport, InvalidStudy and those of `Scorer`.
    """
    # A changed environment variable is another default.
    default = os.environ.get("VLSCORE_ENCODER"), os.environ.get("VLSCORE_CACHE")
    frozen = {n: tuple(v) if isinstance(v, list) else v for n, v in sorted(options.items())}
    scorer = _shared_scorer(default, **frozen)
    found: Score | ScoreTable = scorer.score(image, candidate, reference, on_error=on_error)
    return found


@lru_cache(maxsize=_KEPT)
def _shared_scorer(defaults: tuple[str | None, ...], **options: Any) -> Scorer:
    return Scorer(**options)
