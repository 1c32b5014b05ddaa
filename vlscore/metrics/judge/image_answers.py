"""Answers of the image about a judge's errors: with whom it sides, and what an error then weighs.

A reference is a witness, too, and may be incomplete. With trust t in it, the log odds that it is
right about an error are log(t / (1 - t)) minus the log likelihood ratio of the image for the
candidate's version (Bayes' rule). An error counts by P(reference is right) / t: as without the
image where the image says nothing. Where the image sides with the candidate, the rest of the
error's weight counts as right.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.claims import Claim, ImageEvidence
from vlscore.metrics.judge.judgement import BASE, WEIGHTS, Judgement, Quote
from vlscore.perturb import ErrorCategory

#: Probability that a reference is right before the image is looked at.
TRUST = 0.5
#: An image sides with a report where a conformal p value is at most this, and all of the evidence
#: on the error together is for this report.
LEVEL = 0.1
#: Errors about which the image is asked.
_ASKED = (
    ErrorCategory.FALSE_FINDING,
    ErrorCategory.OMITTED_FINDING,
    ErrorCategory.WRONG_LOCATION,
)
CANDIDATE, REFERENCE, NOBODY = "candidate", "reference", "cannot tell"


class ImageAnswer(NamedTuple):
    """What the image says about one error.

    Attributes:
        supports: "candidate", "reference", or "cannot tell".
        reference_is_right: probability, with the trust in the reference as the prior.
        finding: the finding of the largest evidence; None without any.
    """

    supports: str
    reference_is_right: float
    finding: str | None


#: What one image says about findings: finding -> log likelihood ratio of its presence, p value
#: against its absence, and p value against its presence.
ImageFindings = Mapping[str, tuple[float, float, float]]


def findings_seen(evidence: ImageEvidence, vectors: NDArray[np.float64]) -> list[ImageFindings]:
    """Return what each of n images says, from vectors (n, d).

    The p values of a finding that the encoder reads no better than chance are 1.
    """
    scores = evidence.probes(vectors)
    p_values = (np.where(evidence.is_above_chance, p, 1.0) for p in evidence.p_values(scores))
    found = zip(evidence.log_likelihood_ratios(scores), *p_values, strict=True)
    return [
        {
            name: (float(r), float(p), float(a))
            for name, r, p, a in zip(evidence.findings, ratio, present, absent, strict=True)
        }
        for ratio, present, absent in found
    ]


def ask_image_judge(
    judgement: Judgement,
    candidate: Sequence[Claim],
    reference: Sequence[Claim],
    seen: ImageFindings,
    *,
    trust: float = TRUST,
    level: float = LEVEL,
) -> list[ImageAnswer]:
    """Return what the image says about each error of a judgement.

    It is asked about findings and their sides. It says nothing about an error of severity or of
    change: neither is what its probes were fitted to, and a wrong side in the same words is an
    error of its own, whose evidence counts once.

    Args:
        candidate, reference: claims of the two reports, matched with the errors by their words.
        trust: probability that the reference is right, before the image is looked at.
        level: an image sides with a report where a conformal p value is at most this; each error
            stands for itself.
    """
    return [
        _answer(
            _within(candidate, e.candidate), _within(reference, e.reference), seen, trust, level
        )
        if e.category in _ASKED
        else ImageAnswer(NOBODY, trust, None)
        for e in judgement.errors
    ]


def candidate_is_right(
    candidate: Sequence[Claim],
    reference: Sequence[Claim],
    seen: ImageFindings,
    trust: float = TRUST,
) -> float:
    """Return the probability that the candidate, and not the reference, is right.

    The image is asked about every finding, or side, that one of the reports states and the other
    does not; their likelihood ratios are multiplied, as if they did not depend on each other. Where
    the reports state the same, it is 1 - trust.
    """
    return 1 - _answer(candidate, reference, seen, trust, LEVEL).reference_is_right


def rating_with_image(
    judgement: Judgement, answers: Sequence[ImageAnswer], trust: float = TRUST
) -> float:
    """Return `rating`, where an error counts by P(reference is right) / trust.

    Below 1, that share of its weight is wrong, and the rest is right: the image sides with the
    candidate. Above 1, it is wrong by so much more.
    """
    right = BASE + sum(WEIGHTS[severity] for severity in judgement.found)
    wrong = 0.0
    for error, each in zip(judgement.errors, answers, strict=True):
        share = each.reference_is_right / trust
        wrong += error.weight * share
        right += error.weight * max(1 - share, 0.0)
    return right / (right + wrong)


def _within(claims: Sequence[Claim], quote: Quote | None) -> list[Claim]:
    if quote is None:
        return []
    return [claim for claim in claims if claim.span.overlaps(quote.span)]


def _answer(
    candidate: Sequence[Claim],
    reference: Sequence[Claim],
    seen: ImageFindings,
    trust: float,
    level: float,
) -> ImageAnswer:
    own, theirs = (
        {c.finding: c for c in each if c.stated and not c.of_group}
        for each in (candidate, reference)
    )
    # Log likelihood ratio for the candidate's version -> p values for it, and against it.
    weighed: list[tuple[float, float, float, str]] = []
    for claims, others, sign in ((own, theirs, 1), (theirs, own, -1)):
        for finding, claim in claims.items():
            whole = finding.partition(", ")[0]
            if finding in others or (whole != finding and whole not in others):
                # Both say it; or the finding itself is in question, and not only its side.
                continue
            if (found := _ratio_of(claim, seen)) is not None:
                ratio, p_present, p_absent, name = found
                p = (p_present, p_absent) if sign > 0 else (p_absent, p_present)
                weighed.append((sign * ratio, *p, name))
    if not weighed:
        return ImageAnswer(NOBODY, trust, None)
    ratio = sum(each[0] for each in weighed)
    _, p_for, p_against, name = max(weighed, key=lambda each: abs(each[0]))
    side = CANDIDATE if p_for <= level < p_against and ratio > 0 else NOBODY
    side = REFERENCE if p_against <= level < p_for and ratio < 0 else side
    odds = math.log(trust / (1 - trust)) - ratio
    return ImageAnswer(side, 1 / (1 + math.exp(-max(min(odds, 50.0), -50.0))), name)


def _ratio_of(claim: Claim, seen: ImageFindings) -> tuple[float, float, float, str] | None:
    """Return log likelihood ratio of a finding's presence, its p values, and whose they are."""
    if claim.needs_prior:
        return None
    if (found := seen.get(claim.finding)) is not None:
        return (*found, claim.finding)
    if claim.group is not None and (found := seen.get(claim.group)) is not None:
        # The group may be there without the finding, but not the finding without the group.
        return min(found[0], 0.0), 1.0, 1.0, claim.group
    return None
