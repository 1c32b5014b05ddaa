"""Search by text metrics: it re-ranks candidates, or scores the whole corpus."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics import Batch, Metric, Plan, find_metric

# Texts scored in one call. A plan caches the artefacts of more texts than this, so that those of a
# part of the corpus are made once for all references that are compared with it.
_AT_ONCE = 5_000

Ranked = list[tuple[int, float]]


class TextSearch:
    """Search for the best texts of a corpus under a text metric.

    Artefacts of a text (labels, for example) are made once for the references of one call, and
    once for a text of the corpus that is compared with several references. A metric that is
    fitted to references, such as CIDEr-D, is fitted to the corpus.

    Args:
        metric: name, or Metric, of a metric that uses texts alone.
        texts: the whole corpus.

    Raises: UnknownName; InvalidSetting for a metric that looks at images or embeddings;
        MissingDependency.
    """

    def __init__(self, metric: str | Metric, texts: Sequence[str]) -> None:
        self._metric, self._texts = find_metric(metric), texts
        self._plan = Plan([self._metric])
        if self._plan.needs.embeddings or self._plan.needs.images:
            raise InvalidSetting(
                f"{self._metric} looks at embeddings; search the index with it instead"
            )
        self._plan.require()
        if self._plan.needs_fit:
            # References come one at a time, so the corpus must supply the document frequencies.
            self._plan = self._plan.fit(texts)

    def search(
        self,
        references: Sequence[str],
        *,
        k: int = 10,
        rows: Sequence[Sequence[int]] | None = None,
        excluded: Mapping[int, Collection[int]] | None = None,
    ) -> list[Ranked | VLScoreError]:
        """Return for each of q references the k best rows as (row, score), best first.

        Args:
            rows: q lists of candidates, found by another search; default: the whole corpus, which
                is exact.
            excluded: reference -> rows that must not be found.

        Returns: one entry for each reference; an error if the metric has no value for it. Rows of
            equal score are in the order of the corpus; a text without a value is not found.
        """
        barred = excluded or {}
        found = [_Best(k, self._metric.sign) for _ in references]
        if rows is not None:
            for number, (reference, offered) in enumerate(zip(references, rows, strict=True)):
                self._score(found[number], reference, sorted(set(offered)), barred.get(number, ()))
        else:
            for start in range(0, len(self._texts), _AT_ONCE):
                stretch = range(start, min(start + _AT_ONCE, len(self._texts)))
                texts = {row: self._texts[row] for row in stretch}
                for number, reference in enumerate(references):
                    self._score(found[number], reference, stretch, barred.get(number, ()), texts)
        return [best.result() for best in found]

    def _score(
        self,
        best: "_Best",
        reference: str,
        offered: Sequence[int],
        barred: Collection[int],
        texts: Mapping[int, str] | None = None,
    ) -> None:
        excluded = set(barred)
        source: Mapping[int, str] | Sequence[str] = self._texts if texts is None else texts
        candidates = [row for row in offered if row not in excluded]
        for start in range(0, len(candidates), _AT_ONCE):
            part = candidates[start : start + _AT_ONCE]
            batch = Batch([source[row] for row in part], [reference] * len(part))
            (values,) = self._plan.values(batch).values()
            best.take(np.array(part, np.int64), values.headline, values.failures)


class _Best:
    """Best rows so far for one reference."""

    def __init__(self, k: int, sign: int) -> None:
        self._k, self._sign = k, sign
        self._rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float64] = np.empty(0)
        self._error: VLScoreError | None = None

    def take(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.float64],
        failures: Mapping[int, VLScoreError],
    ) -> None:
        if self._error is None and failures:
            self._error = next(iter(failures.values()))
        finite = np.isfinite(scores)
        all_rows = np.concatenate([self._rows, rows[finite]])
        all_scores = np.concatenate([self._scores, scores[finite]])
        order = np.lexsort((all_rows, -self._sign * all_scores))[: self._k]
        self._rows, self._scores = all_rows[order], all_scores[order]

    def result(self) -> Ranked | VLScoreError:
        if self._error is not None and not len(self._rows):
            return self._error
        return list(zip(self._rows.tolist(), self._scores.tolist(), strict=True))


def best_texts(
    metric: str | Metric,
    reference: str,
    texts: Sequence[str],
    *,
    k: int = 10,
    rows: Sequence[int] | None = None,
    excluded: Collection[int] = (),
) -> Ranked:
    """Return the k texts that score best against one reference; see `TextSearch`.

    >>> best_texts("bleu-1", "no effusion", ["clear lungs", "no effusion", "effusion"], k=1)
    [(1, 1.0)]
    """
    (found,) = TextSearch(metric, texts).search(
        [reference], k=k, rows=None if rows is None else [rows], excluded={0: excluded}
    )
    if isinstance(found, VLScoreError):
        raise found
    return found
