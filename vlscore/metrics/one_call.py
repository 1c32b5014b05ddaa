"""Scores in one call: the encoder stays loaded for the next call."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from vlscore.core import Signature
from vlscore.metrics.memo import digests_of
from vlscore.metrics.scorer import OnError, Scorer
from vlscore.metrics.scores import Score, ScoreTable

# Number of scorers that stay loaded; small, because each may hold an encoder.
_KEPT = 4
# Environment variables that set defaults: if one changes, a new scorer is loaded.
_VARIABLES = ("VLSCORE_ENCODER", "VLSCORE_CACHE", "VLSCORE_CACHE_GIB", "VLSCORE_WEIGHTS")


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
    scorer = shared_scorer(options)
    found: Score | ScoreTable = scorer.score(image, candidate, reference, on_error=on_error)
    return found


def shared_scorer(options: Mapping[str, Any]) -> Scorer:
    """Return the scorer for these options; it stays loaded for the next call with them.

    A checkpoint that was replaced on disk is loaded again.
    """
    frozen = {n: tuple(v) if isinstance(v, list) else v for n, v in sorted(options.items())}
    named = [options.get("weights"), options.get("tokenizer"), os.environ.get("VLSCORE_WEIGHTS")]
    files = [digests_of(Path(each)) for each in named if isinstance(each, str | Path) and each]
    return _shared_scorer((*map(os.environ.get, _VARIABLES), *files), **frozen)


@lru_cache(maxsize=_KEPT)
def _shared_scorer(loaded_from: tuple[Any, ...], **options: Any) -> Scorer:
    return Scorer(**options)


def number_signature(signature: str, metric: str, name: str) -> str:
    """Return the signature of one number of a metric, which a table prints.

    Numbers of one metric share what they are computed from, and are not comparable: a corpus value
    is no mean over reports.

    Args: name: of the number, as tables have it.

    >>> number_signature("bleu-4|case:lower", "bleu-4", "bleu-4 corpus")
    'bleu-4|case:lower|level:corpus'
    >>> number_signature("findings-f1|v:1", "findings-f1", "findings-f1 micro-13 (corpus)")
    'findings-f1|v:1|level:corpus|number:micro-13'
    >>> number_signature("findings-f1|v:1", "findings-f1", "findings-f1.recall")
    'findings-f1|v:1|level:report|number:recall'
    """
    number = name.removeprefix(metric).removesuffix("(corpus)").strip(" .")
    of_corpus = name.removeprefix(metric).startswith(" ")
    level = {"level": "corpus" if of_corpus else "report"}
    number = "" if number == "corpus" else number
    return str(Signature.parse(signature).plus(level).plus(number=number or None))
