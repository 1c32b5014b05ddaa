"""Explanations of a score: how much each sentence of candidate and reference costs."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from vlscore.data import TextPolicy, select
from vlscore.errors import InvalidSetting
from vlscore.metrics.arguments import Item, items_of
from vlscore.metrics.one_call import shared_scorer
from vlscore.metrics.scorer import Scorer
from vlscore.text import SentenceSpan, split_sentences


@dataclass(frozen=True)
class SentenceShare:
    """Contribution of one sentence to a score, measured by deletion.

    Attributes:
        text: the sentence.
        start, end: its character positions in the text that was scored.
        share: what the sentence costs, in the units of the metric, positive where it makes the
            score worse: of a candidate's sentence, how much better the score is without it; of a
            reference's sentence, how much better the score is if the candidate states it too.
    """

    text: str
    start: int
    end: int
    share: float


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
        signature: what the score depends on.
    """

    metric: str
    score: float
    best: float
    candidate: tuple[SentenceShare, ...]
    reference: tuple[SentenceShare, ...]
    signature: str

    def __str__(self) -> str:
        lines = [f"{self.metric} {self.score:.4f}, of the reference {self.best:.4f}"]
        for title, sentences in (("candidate", self.candidate), ("reference", self.reference)):
            lines.append(f"{title:<12}share")
            lines += [f"  {s.share:+z14.4f}  {s.text}" for s in sentences]
        return "\n".join([*lines, self.signature])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        sides = {"candidate": self.candidate, "reference": self.reference}
        return {
            **{name: getattr(self, name) for name in ("metric", "score", "best")},
            **{name: [vars(each) for each in of] for name, of in sides.items()},
            "signature": self.signature,
        }


def explain(image: Any, candidate: str, reference: str, **options: Any) -> Explanation:
    """Explain the score of one study by its sentences.

    A sentence's share is measured by deletion: the score without the candidate's sentence, or with
    the reference's sentence added to the candidate, minus the score.

    Args:
        image: as in `score`; None for metrics that look at no image.
        candidate, reference: one report each.
        options: as in `score`; of several metrics the first is explained.

    Raises: InvalidSetting for a metric without a reference, or lists; those of `score`.
    """
    return explain_with(shared_scorer(options), image, candidate, reference)


def explain_with(scorer: Scorer, image: Any, candidate: str, reference: str) -> Explanation:
    """Explain as `explain` does, with a scorer that is already loaded."""
    metric = scorer.metrics[0]
    if not metric.uses_reference:
        raise InvalidSetting(
            f"{metric} does not use the reference, so its sentences cannot be compared; "
            "choose another metric"
        )
    items, is_batch = items_of(image, candidate, reference, scorer.needs)
    if is_batch:
        raise InvalidSetting(
            "explain needs exactly one study: one candidate and one reference, each a text"
        )
    score = float(scorer.score(image, candidate, reference))
    texts = (
        select(candidate, scorer.text_policy, "candidate"),
        select(reference, scorer.text_policy, "reference"),
    )
    mine, theirs = map(split_sentences, texts)
    changed = [texts[0][: s.start] + texts[0][s.end :] for s in mine]
    changed += [f"{texts[0].rstrip()} {s.text}".strip() for s in theirs]
    shown = items[0].shown
    if scorer.embedder is not None and shown is not None:
        # The images are embedded once for all candidates.
        shown = replace(shown, vector=scorer.embedder.embed_studies([shown]).vectors[0])
    of_sections = copy(scorer)
    of_sections.text_policy = TextPolicy("all")
    table = of_sections.score_items([Item(g, texts[1], shown) for g in (texts[1], *changed)])
    for error in table.first.failures.values():
        raise error
    best, *others = table.scores.tolist()
    shares = [metric.sign * (value - score) for value in others]
    return Explanation(
        str(metric),
        score,
        best,
        _with_shares(mine, shares[: len(mine)]),
        _with_shares(theirs, shares[len(mine) :]),
        str(scorer.signatures[str(metric)]),
    )


def _with_shares(
    sentences: Sequence[SentenceSpan], shares: Sequence[float]
) -> tuple[SentenceShare, ...]:
    return tuple(
        SentenceShare(s.text, s.start, s.end, share)
        for s, share in zip(sentences, shares, strict=True)
    )
