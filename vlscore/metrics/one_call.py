"""Scores in one call, and scores of a validation loop.

`score` scores one study or a batch, and leaves the encoder loaded for the next call.
`RunningScores` gathers the scores of a loop, batch by batch.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import MetricValues
from vlscore.metrics.metric import Metric
from vlscore.metrics.networks.model_files import stamps_of
from vlscore.metrics.plan import corpus_of_sums
from vlscore.metrics.scorer import OnError, Scorer
from vlscore.metrics.scores import Score, ScoreTable

# Number of scorers that stay loaded; small, because each may hold an encoder.
_KEPT = 4
# Environment variables that set defaults: if one changes, a new scorer is loaded.
_VARIABLES = ("VLSCORE_ENCODER", "VLSCORE_CACHE", "VLSCORE_CACHE_GIB", "VLSCORE_WEIGHTS")
# Options that name files.
_FILES = ("weights", "tokenizer")


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
    """Return the scorer for these options; it stays loaded for the next call with them."""
    frozen = {n: tuple(v) if isinstance(v, list) else v for n, v in sorted(options.items())}
    return _shared_scorer((*map(os.environ.get, _VARIABLES), *_stamps_of(options)), **frozen)


def _stamps_of(options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return path, time and size of each file that the options name for a scorer.

    So a checkpoint that was replaced on disk is loaded again.
    """
    named = [options.get(name) for name in _FILES] + [os.environ.get("VLSCORE_WEIGHTS")]
    return tuple(stamps_of(Path(each)) for each in named if isinstance(each, str | Path) and each)


@lru_cache(maxsize=_KEPT)
def _shared_scorer(loaded_from: tuple[Any, ...], **options: Any) -> Scorer:
    return Scorer(**options)


def corpus_name(metric: Metric | str, name: str) -> str:
    """Return the name that tables use for a value of the whole corpus."""
    return f"{metric} {name}" if name == "corpus" else f"{metric} {name} (corpus)"


def means_and_corpus(table: ScoreTable) -> dict[str, float]:
    """Return column -> mean over the studies that have a value, and values of the corpus.

    Corpus values are named as by `corpus_name`; they are absent where no study has a value.
    """
    found: dict[str, float] = {}
    for metric, values in table.values.items():
        for name, column in values.columns.items():
            valid = column[np.isfinite(column)]
            found[name] = float(valid.mean()) if len(valid) else float("nan")
        if values.statistics is not None and len(values.failures) < len(values):
            corpus = corpus_of_sums(metric, values.statistics.sum(axis=0)[None])
            found |= {corpus_name(metric, name): float(v[0]) for name, v in corpus.items()}
    return found


class RunningScores:
    """Scores of a loop, gathered batch by batch; results so far can be read at any time.

    Use it like the metrics of torchmetrics: `update` with each batch, `compute` at the end of
    the loop, `reset` before the next. Only the numbers of a study are stored.

    Args: scorer: scorer of the metrics; default: `Scorer()`. For a metric that weighs words by the
        number of references that contain them (CIDEr-D), pass `scorer.fit(references)` with all
        references, because values fitted to single batches cannot be combined.

    Raises: InvalidSetting for such a metric that is not fitted.
    """

    def __init__(self, scorer: Scorer | None = None) -> None:
        self.scorer = scorer if scorer is not None else Scorer()
        if self.scorer.plan.needs_fit:
            raise InvalidSetting(
                "one of these metrics must be fitted to all references of a run: call "
                "RunningScores(scorer.fit(references))"
            )
        self._tables: list[ScoreTable] = []

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def update(
        self, image: Any, candidate: Any, reference: Any = None, *, on_error: OnError = "raise"
    ) -> ScoreTable:
        """Score a batch, or one study, and store its numbers; arguments as in `Scorer.score`.

        If a batch raises an error, none of its numbers are stored.
        """
        if isinstance(candidate, str) and not isinstance(image, list):
            image, candidate = None if image is None else [image], [candidate]
            reference = [reference] if isinstance(reference, str) else reference
        table: ScoreTable = self.scorer.score(image, candidate, reference, on_error=on_error)
        self._tables.append(table)
        return table

    def compute(self) -> dict[str, float]:
        """Return column -> mean over the studies that have a value, and values of the corpus.

        Corpus values are named as in tables: "bleu-4 corpus", "findings-f1 micro (corpus)".
        Empty before the first batch; nan where no study has a value, and for the F1 of an
        observation that neither candidates nor references mention.
        """
        return means_and_corpus(self.table()) if self._tables else {}

    def table(self) -> ScoreTable:
        """Return a table of all studies so far, in order: for intervals, frames, single scores.

        Raises: InvalidSetting before the first batch.
        """
        if not self._tables:
            raise InvalidSetting("there are no scores yet: call update before table")
        first = self._tables[0]
        starts = np.cumsum([0, *map(len, self._tables)]).tolist()
        values = {}
        for metric, own in first.values.items():
            parts = [table.values[metric] for table in self._tables]
            sums = [part.statistics for part in parts if part.statistics is not None]
            values[metric] = MetricValues(
                metric,
                {name: np.concatenate([p.columns[name] for p in parts]) for name in own.columns},
                np.concatenate(sums) if sums else None,
                {
                    start + row: error
                    for start, part in zip(starts, parts, strict=False)
                    for row, error in part.failures.items()
                },
                own.signature,
            )
        geometry = {
            name: np.concatenate([table.geometry[name] for table in self._tables])
            for name in first.geometry
        }
        return ScoreTable(values, geometry)

    def reset(self) -> None:
        """Discard all scores; the encoder stays loaded."""
        self._tables.clear()
