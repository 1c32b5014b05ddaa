"""The judge asks the image: errors with which the image sides weigh less."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.file_metric import path_parameter
from vlscore.metrics.library.judge_metric import JudgeScore
from vlscore.metrics.memo import loaded_once
from vlscore.metrics.metric import Output, parameter

if TYPE_CHECKING:
    from vlscore.claims import Claim, ImageEvidence


class ImageJudge(JudgeScore):
    """Judges as `judge`, and weighs each error by what the image says about it."""

    name = "judge-image"
    title = "Judge with image"
    description = (
        "as judge, but an error weighs less if the image supports the candidate: a false finding "
        "that the image shows, a missing one that it does not show; 1 without an error"
    )
    citation = "none; docs/claims.md"
    further: ClassVar[tuple[Output, ...]] = (
        Output(
            "candidate",
            "number of errors in which the image sides with the candidate",
            True,
            (0.0, None),
        ),
        Output(
            "reference", "number of errors in which it sides with the reference", False, (0.0, None)
        ),
    )
    uses_image = True
    uses_embeddings = True

    score: str = parameter(
        "rating",
        "rating (the judge's, with errors weighed by the image), or image: the probability by the "
        "image that the candidate, and not the reference, is right about the findings that only "
        "one of them states; 1 - trust where they state the same",
        choices=("rating", "image"),
    )
    evidence: str | None = path_parameter("evidence.npz that `vlscore claims --fit` wrote")
    trust: float = parameter(
        0.5, "probability that the reference is right before the image is looked at", above=0.0
    )
    level: float = parameter(
        0.1, "largest p value at which the image sides with a report", above=0.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.trust < 1:
            raise InvalidSetting(f"trust is a probability below 1, not {self.trust:g}")

    def compute(self, batch: Batch) -> Computed:
        from vlscore.metrics.judge.image_answers import (
            CANDIDATE,
            REFERENCE,
            ask_image_judge,
            candidate_is_right,
            findings_seen,
            rating_with_image,
        )

        triples = batch.embeddings
        assert triples is not None
        evidence = self.read_evidence(str(triples.signature))
        vectors = np.asarray(triples.images, np.float64)
        failures: dict[int, VLScoreError] = dict(triples.failures)
        seen = findings_seen(evidence, np.nan_to_num(vectors))
        claims = batch.read(batch.memo.read, _claims)
        rows = np.full((len(batch), 3), np.nan)
        for row, judged in enumerate(self._judged(batch)):
            if isinstance(judged, VLScoreError):
                failures[row] = judged
            elif row not in failures:
                answers = ask_image_judge(
                    judged, *claims[row], seen[row], trust=self.trust, level=self.level
                )
                sides = [each.supports for each in answers]
                if self.score == "image":
                    first = candidate_is_right(*claims[row], seen[row], self.trust)
                else:
                    first = rating_with_image(judged, answers, self.trust)
                rows[row] = first, sides.count(CANDIDATE), sides.count(REFERENCE)
        return Computed(list(rows.T), failures=failures)

    def missing(self) -> str | None:
        if self.evidence is None:
            return (
                "it needs evidence: judge-image(evidence=DIR/evidence.npz), which `vlscore claims "
                "--fit` writes"
            )
        return super().missing()

    def facts(self) -> dict[str, Any]:
        if self.evidence is None:
            raise MissingDependency(str(self.missing()))
        from vlscore.claims import evidence_digest

        # The path says nothing of the content.
        return {**super().facts(), "evidence": f"file@{evidence_digest(self.evidence)}"}

    def read_evidence(self, signature: str) -> "ImageEvidence":
        """Return the evidence; raise InvalidSetting where it is of other vectors.

        Args: signature: what the vectors depend on, as a `StudyEmbedder` states it.
        """
        assert self.evidence is not None
        return _read(Path(self.evidence), signature)


@loaded_once(lambda path, signature: (path,), maxsize=4)
def _read(path: Path, signature: str) -> "ImageEvidence":
    from vlscore.claims import read_evidence

    return read_evidence(path, signature)


def _claims(texts: Sequence[str]) -> "list[list[Claim]]":
    from vlscore.claims import claims_of

    return [claims_of(text) for text in texts]
