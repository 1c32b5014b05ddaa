"""Search by text metrics: it re-ranks candidates, or scores the whole corpus."""

from collections.abc import Mapping, Sequence

import numpy as np

from vlscore.data import check_texts
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics import Batch, Metric, Plan, find_metric
from vlscore.retrieval.exact import Excluded, Hits

# Texts scored in one call. A plan caches the annotations of more texts than this, so that those of
# a part of the corpus are made once for all references that are compared with it.
_AT_ONCE = 5_000


class TextSearch:
    """Search for the best texts of a corpus under a text metric.

    Annotations of a text (labels, for example) are made once for the references of one call, and
    once for a text of the corpus that is compared with several references. A metric that is
    fitted to references, such as CIDEr-D, is fitted to the corpus.

    Args:
        metric: name, or Metric, of a metric that uses texts alone.
        texts: the whole corpus.

    Raises: UnknownName; InvalidSetting for a metric that looks at images or embeddings;
        MissingDependency; InvalidReport for a dict, a set or a table in place of a list.
    """

    def __init__(self, metric: str | Metric, texts: Sequence[str]) -> None:
        check_texts("texts", texts)
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
        excluded: Excluded | None = None,
    ) -> list[list[tuple[int, float]] | VLScoreError]:
        """Return for each of q references the k best rows as (row, score), best first.

        Args:
            rows: q lists of candidates, found by another search; default: the whole corpus, which
                is exact.
            excluded: reference -> rows that must not be found.

        Returns: one entry for each reference; an error if the metric has no value for it. Rows of
            equal score are in the order of the corpus; a text without a value is not found.

        >>> texts = ["clear lungs", "no effusion", "effusion"]
        >>> TextSearch("bleu-1", texts).search(["no effusion"], k=1)
        [[(1, 1.0)]]
        """
        check_texts("references", references)
        hits = Hits.none(len(references), k)
        errors: dict[int, VLScoreError] = {}
        barred = {q: set(numbers) for q, numbers in (excluded or {}).items()}
        whole = range(len(self._texts))
        # One part of the corpus for all references, then the next part.
        offered = [whole] * len(references) if rows is None else [sorted(set(r)) for r in rows]
        for start in range(0, max(map(len, offered), default=0), _AT_ONCE):
            texts: Mapping[int, str] = {}
            for q, reference in enumerate(references):
                part = offered[q][start : start + _AT_ONCE]
                if rows is not None or not texts:
                    texts = {row: self._texts[row] for row in part}
                some = [row for row in part if row not in barred.get(q, ())]
                if not some:
                    continue
                batch = Batch([texts[row] for row in some], [reference] * len(some))
                (values,) = self._plan.values(batch).values()
                for error in values.failures.values():
                    errors.setdefault(q, error)
                hits.add(q, np.array(some, np.int64), -self._metric.sign * values.columns[0])
        found: list[list[tuple[int, float]] | VLScoreError] = []
        scores = -self._metric.sign * hits.costs
        for q, both in enumerate(zip(hits.rows.tolist(), scores.tolist(), strict=True)):
            pairs = [(row, score) for row, score in zip(*both, strict=True) if row >= 0]
            found.append(errors[q] if q in errors and not pairs else pairs)
        return found
