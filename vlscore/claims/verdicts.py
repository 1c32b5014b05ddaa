"""Verdicts of images on claims, at a false discovery rate."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vlscore.claims.claim import Claim, claims_of
from vlscore.claims.conformal import decided
from vlscore.claims.evidence import ImageEvidence
from vlscore.claims.probes import Values

if TYPE_CHECKING:
    import pandas

SUPPORTED, CONTRADICTED, CANNOT_TELL = VERDICTS = ("supported", "contradicted", "cannot tell")


class ClaimOfImage(NamedTuple):
    """A claim about one image.

    Attributes:
        image: number of the image.
        report: what made the claim ("candidate", "reference").
        claim: the claim.
    """

    image: int
    report: str
    claim: Claim


def claims_of_reports(
    image: int, candidate: str | None, reference: str | None
) -> list[ClaimOfImage]:
    """Return the claims of both reports of a study about its image; None makes no claim."""
    return [
        ClaimOfImage(image, role, claim)
        for role, text in (("candidate", candidate), ("reference", reference))
        for claim in claims_of(text or "")
    ]


def verdicts_of(
    evidence: ImageEvidence,
    vectors: Values,
    claims: Sequence[ClaimOfImage],
    *,
    rate: float,
    has_prior: Sequence[bool] = (),
) -> "pandas.DataFrame":
    """Return the verdict on each claim.

    A claim is *supported* where the image shows what it says at the rate, *contradicted* where it
    shows the opposite, else *cannot tell*. Claims of one report role, finding and polarity are one
    family: it has one claim an image, so its claims depend on each other only by the calibration
    cases, and among its supported claims, and among its contradicted ones, an expected share of at
    most `rate` is wrong (`decided`).

    A finding without evidence of its own has no verdict; its group, which is a claim of its own,
    may have one. A claim of change needs an earlier image.

    Args:
        vectors: (n, d) of the images.
        rate: false discovery rate.
        has_prior: (n,) whether an image's vector also shows an earlier image; empty: none does.

    Returns: a row for each claim: image, report, finding, claim ("stated", "denied"), start and
        end of its words, has_evidence, verdict,
        probability that the claim is true (where findings are as frequent as in the calibration
        cases; nan without evidence), p_supported and p_contradicted.
    Raises: InvalidSetting for a rate outside (0, 1).
    """
    import pandas

    scores = evidence.probes(vectors)
    present, absent = evidence.p_values(scores)
    chance = 1 / (1 + np.exp(-evidence.log_odds(scores)))
    rows = np.array([each.image for each in claims], int)
    stated = np.array([each.claim.stated for each in claims], bool)
    columns = np.array([_column_of(evidence, each, has_prior) for each in claims], int)
    known = columns >= 0
    p_present, p_absent = (
        np.where(known, p[rows, columns], 1.0) if len(claims) else np.ones(0)
        for p in (present, absent)
    )
    p_true, p_false = (
        np.where(stated, one, other)
        for one, other in ((p_present, p_absent), (p_absent, p_present))
    )
    families = [(each.report, each.claim.finding, each.claim.stated) for each in claims]
    supports, contradicts = (decided(p, families, rate) for p in (p_true, p_false))
    # Where the image shows neither well, as between two clearly different kinds of images, both may
    # be rejected; the smaller p value decides.
    supports, contradicts = (
        supports & (~contradicts | (p_true < p_false)),
        contradicts & (~supports | (p_false < p_true)),
    )
    verdict = np.select([supports, contradicts], VERDICTS[:2], CANNOT_TELL)
    p_there = np.where(known, chance[rows, columns], np.nan) if len(claims) else np.ones(0)
    return pandas.DataFrame(
        {
            "image": rows,
            "report": [each.report for each in claims],
            "finding": [each.claim.finding for each in claims],
            "claim": np.where(stated, "stated", "denied"),
            "start": [each.claim.span.start for each in claims],
            "end": [each.claim.span.end for each in claims],
            "has_evidence": known,
            "verdict": verdict,
            "probability": np.where(stated, p_there, 1 - p_there),
            "p_supported": p_true,
            "p_contradicted": p_false,
        }
    )


def _column_of(evidence: ImageEvidence, each: ClaimOfImage, has_prior: Sequence[bool]) -> int:
    """Return the number of the finding in the evidence; -1 without evidence."""
    if each.claim.needs_prior and not (len(has_prior) and has_prior[each.image]):
        return -1
    return evidence.column.get(each.claim.finding, -1)
