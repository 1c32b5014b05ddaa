"""Explanations of a score: how much each sentence of candidate and reference costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.data import select, split_sentences
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, EmbeddingTriples, items_of
from vlscore.metrics.metric import Metric
from vlscore.metrics.one_call import shared_scorer
from vlscore.metrics.scorer import Scorer

Values = NDArray[np.float64]

# A report vector counts as the sum of its sentences if the difference is below this share of it.
_ADDITIVE = 1e-4
# Points of Gauss and Legendre on the way from the reference to the candidate, and the step of the
# derivatives as a share of its length: exact for scores that are quadratic in the candidate.
_POINTS = 8
_STEP = 1e-4


@dataclass(frozen=True)
class SentenceShare:
    """Contribution of one sentence to a score.

    Attributes:
        text: the sentence.
        start, end: its character positions in the text that was scored.
        share: what the sentence costs, in the units of the metric, positive where it makes the
            score worse. With the method "additive" all shares of a study add up to the difference
            between the score of the reference, taken as a candidate, and that of the candidate.
        deletion: of a candidate's sentence, how much better the score is without it; of a
            reference's sentence, how much better the score is if the candidate states it too.
    """

    text: str
    start: int
    end: int
    share: float
    deletion: float


@dataclass(frozen=True)
class Explanation:
    """Explanation of one study's score, sentence by sentence.

    Attributes:
        metric: name of the metric.
        score: score of the candidate.
        best: the score of a candidate that is the reference, word for word.
        candidate: sentences of the candidate in order; a large share marks an error.
        reference: sentences of the reference in order; a large share marks a sentence to which
            nothing in the candidate corresponds.
        method: "additive" where both reports are the sums of their sentences; else "deletion",
            and each share is what deletion gives.
        signature: what the score depends on.
    """

    metric: str
    score: float
    best: float
    candidate: tuple[SentenceShare, ...]
    reference: tuple[SentenceShare, ...]
    method: str
    signature: str

    def __str__(self) -> str:
        lines = [f"{self.metric} {self.score:.4f}, of the reference {self.best:.4f}"]
        for title, sentences in (("candidate", self.candidate), ("reference", self.reference)):
            lines.append(f"{title:<12}share  deletion")
            lines += [f"  {s.share:+14.4f} {s.deletion:+9.4f}  {s.text}" for s in sentences]
        return "\n".join([*lines, f"shares by {self.method}", self.signature])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        sides = {"candidate": self.candidate, "reference": self.reference}
        return {
            **{name: getattr(self, name) for name in ("metric", "score", "best", "method")},
            **{name: [vars(each) for each in of] for name, of in sides.items()},
            "signature": self.signature,
        }


def explain(image: Any, candidate: str, reference: str, **options: Any) -> Explanation:
    """Explain the score of one study by its sentences.

    Where report vectors are the sums of their sentences' (encoders of the style "judging", "gloria"
    or "limitr"), a sentence's share is its part of the way from the reference to the candidate:
    integrated gradients (Sundararajan, Taly and Yan, ICML 2017) along the line between both, so
    that the shares of the candidate's and the reference's sentences add up to what the candidate
    loses. For other encoders, and for metrics of texts, the share is measured by deletion: the
    score without the sentence, or with the reference's sentence added, minus the score.

    Args:
        image: as in `score`; None for metrics that look at no image.
        candidate, reference: one report each.
        options: as in `score`; of several metrics the first is explained.

    Raises: InvalidSetting for a metric without a reference, or lists; those of `score`.
    """
    scorer = shared_scorer(options)
    return explain_with(scorer, image, candidate, reference)


def explain_with(scorer: Scorer, image: Any, candidate: str, reference: str) -> Explanation:
    """Explain as `explain` does, with a scorer that is already loaded."""
    metric = scorer.metrics[0]
    if not metric.uses_reference:
        raise InvalidSetting(
            f"{metric} does not use the reference, so its sentences cannot be compared; "
            "choose another metric"
        )
    rows, is_batch = items_of(image, candidate, reference, scorer.plan.needs)
    if is_batch:
        raise InvalidSetting(
            "explain needs exactly one study: one candidate and one reference, each a text"
        )
    score = scorer.score(image, candidate, reference)
    _ = float(score)
    texts = (
        select(candidate, scorer.text_policy, "candidate"),
        select(reference, scorer.text_policy, "reference"),
    )
    if scorer.embedder is not None and metric.uses_embeddings:
        shown = None if rows[0][0] is None else StudyViews(rows[0][0])
        parts: _SentenceCosts = _EmbeddedCosts(scorer, scorer.embedder, metric, texts, shown)
    else:
        parts = _TextCosts(scorer, metric, texts)
    return parts.explanation(str(scorer.signatures[str(metric)]))


class _SentenceCosts:
    """Sentences of two reports, and how much worse other candidates are than the reference.

    Args: texts: those of the candidate and of the reference.
    """

    method = "deletion"

    def __init__(self, scorer: Scorer, metric: Metric, texts: tuple[str, str]) -> None:
        self.scorer, self.metric, self.texts = scorer, metric, texts
        self.sentences = [split_sentences(text) for text in texts]

    def losses(self, candidates: Sequence[str]) -> Values:
        """Return (n,) scores of candidates against the reference; the sign makes more worse."""
        raise NotImplementedError

    def shares(self) -> tuple[Values, Values] | None:
        """Return the cost of each sentence of both reports; None if only deletion works."""
        return None

    def explanation(self, signature: str) -> Explanation:
        candidate, reference = self.texts
        mine, theirs = self.sentences
        without = [candidate[: s.start] + candidate[s.end :] for s in mine]
        with_each = [f"{candidate.rstrip()} {s.text}".strip() for s in theirs]
        losses = self.losses([candidate, reference, *without, *with_each])
        gains = losses[0] - losses[2:]
        split = len(mine)
        shares = self.shares() or (gains[:split], gains[split:])
        numbers = (gains[:split], gains[split:])
        both = [
            tuple(
                SentenceShare(s.text, s.start, s.end, float(share), float(gain))
                for s, share, gain in zip(of, share_of, gain_of, strict=True)
            )
            for of, share_of, gain_of in zip(self.sentences, shares, numbers, strict=True)
        ]
        score, best = (float(-self.metric.sign * x) for x in losses[:2])
        return Explanation(str(self.metric), score, best, both[0], both[1], self.method, signature)


class _TextCosts(_SentenceCosts):
    """Sentence costs of a metric that looks at texts alone."""

    def losses(self, candidates: Sequence[str]) -> Values:
        batch = Batch(list(candidates), [self.texts[1]] * len(candidates), None)
        values = self.scorer.plan.values(batch)[self.metric]
        losses: Values = -self.metric.sign * values.headline
        return losses


class _EmbeddedCosts(_SentenceCosts):
    """Sentence costs of a metric that looks at embeddings."""

    def __init__(
        self,
        scorer: Scorer,
        embedder: StudyEmbedder,
        metric: Metric,
        texts: tuple[str, str],
        shown: StudyViews | None,
    ) -> None:
        super().__init__(scorer, metric, texts)
        self._embedder = embedder
        self._image: Tensor | None = None
        if metric.uses_image:
            found = embedder.embed_studies([shown or StudyViews(())])
            self._image = _vectors(found)[0]
        self._whole = _vectors(embedder.embed_texts(list(texts)))
        self._of = [self._embedded([s.text for s in of]) for of in self.sentences]
        if all(map(_adds_up, self._of, self._whole)):
            self.method = "additive"

    def losses(self, candidates: Sequence[str]) -> Values:
        return self._losses(self._embedded(candidates))

    def shares(self) -> tuple[Values, Values] | None:
        if self.method != "additive":
            return None
        g, r = self._whole
        mine, theirs = self._of
        found = self._integrated(r, g, torch.cat([mine, -theirs]))
        return found[: len(mine)], found[len(mine) :]

    def _embedded(self, texts: Sequence[str]) -> Tensor:
        if not texts:
            return self._whole.new_zeros(0, self._whole.shape[1])
        return _vectors(self._embedder.embed_texts(list(texts)))

    def _losses(self, vectors: Tensor) -> Values:
        many = len(vectors)
        triples = EmbeddingTriples(
            None if self._image is None else self._image.expand(many, -1),
            vectors,
            self._whole[1].expand(many, -1),
            self._embedder.signature,
            self._embedder.C,
        )
        texts = [""] * many
        values = self.scorer.plan.values(Batch(texts, texts, triples))[self.metric]
        losses: Values = -self.metric.sign * values.headline
        return losses

    def _integrated(self, start: Tensor, end: Tensor, parts: Tensor) -> Values:
        """Return (k,): what each of k vectors, whose sum is end - start, adds to the loss."""
        way = float(torch.linalg.vector_norm(end - start))
        lengths = torch.linalg.vector_norm(parts, dim=1, keepdim=True)
        if way == 0 or not len(parts):
            return np.zeros(len(parts))
        places, weights = np.polynomial.legendre.leggauss(_POINTS)
        steps = torch.where(lengths > 0, _STEP * way / lengths.clamp(min=1e-300), 0)
        moves = steps * parts
        total = np.zeros(len(parts))
        for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
            point = start + place * (end - start)
            ahead, behind = self._losses(point + moves), self._losses(point - moves)
            total += weight * (ahead - behind)
        there = steps[:, 0].numpy() > 0
        slopes: Values = np.divide(
            total, 2 * steps[:, 0].numpy(), out=np.zeros(len(parts)), where=there
        )
        return slopes


def _adds_up(sentences: Tensor, whole: Tensor) -> bool:
    """Return whether a report's vector is the sum of its sentences' vectors."""
    apart = torch.linalg.vector_norm(sentences.sum(0) - whole)
    return bool(apart <= _ADDITIVE * torch.linalg.vector_norm(whole))


def _vectors(embedded: Any) -> Tensor:
    """Return (n, d) float64; raise the error of the first text that could not be embedded."""
    failures: Mapping[int, Exception] = embedded.failures
    for error in failures.values():
        raise error
    found: Tensor = embedded.vectors.double()
    return found
